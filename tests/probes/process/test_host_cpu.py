"""For how long the host's CPUs were busy."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from specmine.probes.process.host_cpu import LOOK_NS, HostCpu


def test_it_is_the_time_in_which_cpus_were_not_idle(tmp_path: Path) -> None:
    """Summed over the CPUs; what cannot be read is not known."""
    uptime = tmp_path / "uptime"
    host, cpus = HostCpu(uptime), os.sysconf("SC_NPROCESSORS_ONLN")
    assert host.busy_ns(0) == 0
    uptime.write_text(f"100.50 {100.5 * cpus - 20:.2f}\n")
    assert host.busy_ns(LOOK_NS) == pytest.approx(20e9, abs=1e7)
    uptime.write_text(f"100.50 {100.5 * cpus + 20:.2f}\n")
    assert host.busy_ns(2 * LOOK_NS) == 0
    uptime.write_text("no numbers")
    assert host.busy_ns(3 * LOOK_NS) == 0


def test_it_is_read_only_a_few_times_a_second(tmp_path: Path) -> None:
    """Between two looks it stays as it was."""
    uptime = tmp_path / "uptime"
    uptime.write_text("100.0 0.0\n")
    host = HostCpu(uptime)
    first = host.busy_ns(0)
    uptime.write_text("200.0 0.0\n")
    assert host.busy_ns(LOOK_NS - 1) == first
    assert host.busy_ns(LOOK_NS) == 2 * first


def test_it_grows_by_what_this_process_does() -> None:
    """A loop of a fifth of a second is among it."""
    host = HostCpu()
    before, began = host.busy_ns(0), os.times()
    while (ended := os.times()).user + ended.system < began.user + began.system + 0.2:
        pass
    assert host.busy_ns(LOOK_NS) - before >= 0.1e9
