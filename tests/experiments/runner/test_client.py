"""On the machine at hand: runs of experiments are started, refused or given up, and leave nothing behind."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

import pytest

from specmine.experiments.load.cgroup_confinement import NAME, remove_leftovers
from specmine.experiments.results.journal import read_journal
from specmine.experiments.runner.client import ExperimentProcess, unit_command
from specmine.experiments.types import MS
from tests.support.live_host import TREE, alone, needs_groups
from tests.support.patience import patient


def test_systemd_starts_it_in_a_slice_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The unit is delegated, limited in time, gets our streams; a stand-in for systemd-run shows that it answers."""
    command = unit_command({"STATE_DIRECTORY": "/s", "HOME": "/root"})
    assert "systemd-run" in command
    assert {"--pipe", "--wait", "--collect", "--property=Delegate=yes", "--setenv=STATE_DIRECTORY=/s"} <= set(command)
    assert "--slice=specmineexperiments.slice" in command
    fake = tmp_path / "systemd-run"
    fake.write_text('#!/bin/sh\nwhile [ "${1#--}" != "$1" ]; do shift; done\nexec "$@"\n')
    fake.chmod(0o755)
    said = tmp_path / "systemctl"
    said.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/said\nexit 1\n')
    said.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    request = {"names": ["additional-load"], "parameters": {"seconds": 400 * MS}, "wait_seconds": patient(120.0)}
    results = ExperimentProcess({**request, "state": str(tmp_path / "state.json")}, systemd=True).answer()
    assert results[0]["valid"]
    assert (tmp_path / "said").read_text().splitlines() == [
        f"set-property --runtime specmineexperiments.slice CPUWeight={weight}" for weight in ("idle", "1")
    ]


@needs_groups
@pytest.mark.parametrize("how", ["close", "kill"])
def test_nothing_stays_when_the_run_is_given_up(tmp_path: Path, how: str) -> None:
    """Closing its input or killing it ends all load; the group goes at once, or at the next start."""
    assert TREE is not None
    forced = {"names": ["weights"], "state": str(tmp_path / "s.json"), "force": True, "wait_seconds": patient(120.0)}
    running = ExperimentProcess(forced, systemd=False)
    procs = TREE.root / NAME / "run" / "cgroup.procs"
    until = time.monotonic() + patient(180)
    pids: list[str] = []
    while len(pids) < 1 and time.monotonic() < until:
        with contextlib.suppress(OSError):
            pids = procs.read_text().split()
        time.sleep(0.02)
    assert pids
    if how == "kill":
        os.kill(running.pid, signal.SIGKILL)
    running.close()
    until = time.monotonic() + patient(60)
    while _living(pids) and time.monotonic() < until:
        time.sleep(0.02)
    assert not _living(pids)
    if how == "kill":
        with alone():
            remove_leftovers()
    assert not (TREE.root / NAME).exists()


@needs_groups
def test_one_run_at_a_time(tmp_path: Path) -> None:
    """While one holds the lock another is told so."""
    with alone():
        result = ExperimentProcess({"names": ["timers"], "state": str(tmp_path / "s.json")}, systemd=False).answer()[0]
    assert result["reason"]["code"] == "busy-lock"


def test_the_dangerous_is_refused_unless_asked_for(tmp_path: Path) -> None:
    """Real-time policies and load of ordinary weight need --dangerous."""
    for request in ({"names": ["timeslice"], "parameters": {"policy": "rr"}}, {"names": ["balancing"]}):
        wish = {**request, "state": str(tmp_path / "s.json"), "wait_seconds": patient(120.0)}
        result = ExperimentProcess(wish, systemd=False).answer()[0]
        assert result["reason"]["code"] == "dangerous"
        assert result["cpu_seconds"] == 0.0


@needs_groups
def test_what_was_forced_is_no_property_of_the_host(tmp_path: Path) -> None:
    """A limit asked for is found, or refused, but never taken for the host's; its window is marked all the same."""
    state = tmp_path / "state.json"
    forced = {
        "names": ["quota"],
        "state": str(state),
        "force": True,
        "parameters": {"quota": 20 * MS},
    }
    (result,) = ExperimentProcess(forced).answer()
    journal = read_journal(state)
    assert "quota" not in journal.entries or journal.entries["quota"]["valid"] is None
    assert [each["name"] for each in journal.windows] == (["quota"] if result["cpu_seconds"] else [])


def _living(pids: list[str]) -> list[str]:
    found = []
    for pid in pids:
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
                found.append(pid)
    return found


def test_nothing_in_the_present_folder_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may run an experiment in a folder where others write."""
    for name in ("json.py", "specmine.py", "numpy.py"):
        (tmp_path / name).write_text(f"open({str(tmp_path / 'was-here')!r}, 'w')\n")
    monkeypatch.chdir(tmp_path)
    request = {"names": ["cores"], "state": str(tmp_path / "journal"), "wait_seconds": 0.0}
    process = ExperimentProcess(request, systemd=False)
    try:
        process.stop()
        process.close()
    finally:
        assert not (tmp_path / "was-here").exists()
