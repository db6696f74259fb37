"""The CPU limits above a process: of groups of the test's own, and of a real one that stops a busy process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from specmine.daemon.host import cpu_limits as module
from specmine.daemon.host.cpu_limits import cpu_limits
from specmine.experiments.host import cgroups
from specmine.experiments.host.cgroups import Hierarchy
from specmine.experiments.load.cgroup_confinement import confined
from specmine.model.host.cpu_shortage import CpuLimit
from specmine.probes.process.cpu_shortages import LONGEST_NS, CpuShortages
from specmine.probes.process.tracker import Member
from tests.support.live_host import alone, needs_groups


def test_each_group_above_a_process_may_have_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups without a limit are left out; what is not counted is 0."""
    tree = Hierarchy(version=2, root=tmp_path)
    leaf = tmp_path / "pod" / "container" / "leaf"
    leaf.mkdir(parents=True)
    (tmp_path / "pod" / "cpu.max").write_text("200000 100000\n")
    (leaf.parent / "cpu.max").write_text("max 100000\n")
    (leaf / "cpu.max").write_text("25000 50000\n")
    (leaf / "cpu.stat").write_text("usage_usec 9\nnr_periods 40\nnr_throttled 30\nthrottled_usec 5\n")
    monkeypatch.setattr(module, "hierarchy", lambda: tree)
    monkeypatch.setattr(cgroups, "group_of", lambda pid, tree: leaf if pid == 7 else None)
    assert cpu_limits()(7) == [
        CpuLimit(group=str(leaf), cpus=0.5, periods=40, throttled=30),
        CpuLimit(group=str(tmp_path / "pod"), cpus=2.0, periods=0, throttled=0),
    ]
    assert cpu_limits()(8) == []


def test_a_host_without_the_controller_has_no_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is known, and nothing breaks."""
    monkeypatch.setattr(module, "hierarchy", lambda: None)
    assert cpu_limits()(os.getpid()) == []


@needs_groups
def test_a_real_limit_is_seen_to_stop_a_process() -> None:
    """In nearly all of its periods, and by the limit that was set."""
    with alone(), confined() as groups, subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            groups.limit("limited", (2_000_000, 20_000_000))
            Path(groups.procs("limited")).write_text(str(process.pid), encoding="ascii")
            member = Member(pid=process.pid, program=1, lifetime="life", start_ticks=1, file=None, called="busy")
            shortages = CpuShortages(cpu_limits())
            shortages.look([member], 0)
            time.sleep(1.0)
            (found,) = shortages.look([member], LONGEST_NS)
        finally:
            process.kill()
            process.wait()
    assert found.limit_cpus == pytest.approx(0.1)
    assert found.throttled > 0.8
