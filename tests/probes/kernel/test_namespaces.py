"""In namespaces of its own specmine watches what runs in there, or says why it cannot."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from specmine.model.errors import HostError
from specmine.probes.kernel import namespaces
from tests.support.breakpoints import Text
from tests.support.paths import ROOT
from tests.support.patience import patient
from tests.support.source_driver import counts_of, running

OWN = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
WATCH = """
import os, sys
from specmine.model.batch import Sampling
from specmine.model.observation import Kind
from tests.support.source_driver import counts_of, driven, running

paths, forks = sys.argv[1:]
assert os.getpid() == 1
with running(paths, 600, 2000) as child, driven(child.pid) as driver:
    driver.source.apply(Sampling(hertz=199))
    driver.watch("z", Kind.PATH)
    driver.poll(lambda: len(driver.observations) >= 3)
    tails = {tuple(f.name for f in p.path.frames[-3:]) for p in driver.observations[-1].paths if p.path.complete}
    assert tails == {("b", "c", "z"), ("a", "b", "z"), ("a", "c", "z")}, tails
    assert driver.last.lost["unsent_events"] == 0
    driver.poll(lambda: any(f.on_cpu_ns for f in driver.hot_samples))
    counted = sum(each.calls for each in driver.activities)
    assert 0 < counted <= int(str(counts_of(child)["calls"])), counted
with running(forks, 600, 64) as child, driven(child.pid, "semop") as driver:
    driver.watch("semop", Kind.PATH)
    driver.poll(lambda: driver.observations)
    members = driver.source.parts.programs.members
    assert {os.readlink(f"/proc/{pid}/exe") for pid in members} == {forks} and len(members) > 1, members
    callers = {p.path.frames[-2].name for p in driver.observations[-1].paths if p.path.complete}
    assert callers >= {"take", "give"}, callers
"""

Programs = Callable[..., Path]


def environment() -> dict[str, str]:
    """Return what a process of ours needs to find the code."""
    return os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}


@pytest.mark.kernel
def test_what_runs_in_a_pid_namespace_is_watched_from_inside(program: Programs) -> None:
    """Calls, paths, samples and forks are those of the pids in there; the same program outside keeps its text."""
    with running(program("paths"), 600, 2000) as outside:
        ended = subprocess.run(
            [*OWN, sys.executable, "-c", WATCH, program("paths"), program("forks")],
            check=False, capture_output=True, text=True, env=environment(), timeout=patient(240),
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr
        with Text([outside.pid]) as text:
            assert not text.changed()
        assert int(str(counts_of(outside)["calls"])) > 0


def test_the_processes_of_another_namespace_are_no_use() -> None:
    """Without a /proc of its own specmine would take the host's processes for those that it may watch."""
    if os.geteuid():
        pytest.skip("needs root to make a namespace")
    code = "from specmine.probes.kernel.namespaces import check_own; check_own()"
    command = ["unshare", "--pid", "--fork", "--kill-child", sys.executable, "-c", code]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, env=environment())
    assert "HostError" in ended.stderr
    assert "shows another one's processes" in ended.stderr


def test_without_the_kernels_types_the_remedy_is_the_hosts_namespace(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Which ids processes have in a namespace is read from the kernel's structs."""
    monkeypatch.setattr(namespaces, "HOST_PID", "pid:[1]")
    monkeypatch.setattr(namespaces, "_TYPES", tmp_path / "none")
    with pytest.raises(HostError, match="BTF") as told:
        namespaces.check_own()
    assert "--pid=host" in told.value.remedy


def test_a_time_namespace_of_its_own_is_refused() -> None:
    """The kernel's programs read the host's clock: with another one, windows and calls would not fit together."""
    code = "from specmine.probes.kernel.namespaces import check_own; check_own()"
    command = ["unshare", "--user", "--time", "--monotonic", "100000", "--fork", sys.executable, "-c", code]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env=environment())
    if "unshare" in ended.stderr:
        pytest.skip(ended.stderr)
    assert "HostError" in ended.stderr
    assert "time namespace of its own" in ended.stderr
