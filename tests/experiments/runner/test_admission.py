"""The first look: a busy host is told, and noted, before any process is started; a quiet one starts what was asked."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from specmine.experiments.library import EXPERIMENTS
from specmine.experiments.load.cgroup_confinement import Confinement
from specmine.experiments.load.worker_binary import worker_binary
from specmine.experiments.results.journal import Journal, read_journal
from specmine.experiments.runner import admission, load_gate, lock, run
from specmine.experiments.runner.admission import run_admitted
from specmine.experiments.runner.client import ExperimentProcess
from specmine.experiments.runner.run import RunEnvironment, RunRequest
from specmine.experiments.types import SECOND, Counters
from tests.support.live_host import alone, needs_groups


class Process:
    """Stands in for the process of the experiments: remembers what it was asked, and answers with the names."""

    requests: list[Mapping[str, Any]]

    def __init__(self) -> None:
        self.requests = []

    def __call__(self, request: Mapping[str, Any]) -> ExperimentProcess:
        """Take a request."""
        self.requests.append(request)
        return cast(ExperimentProcess, self)

    def answer(self) -> list[dict[str, Any]]:
        """Return one result for each name."""
        return [{"name": name, "valid": True, "reason": None} for name in self.requests[-1]["names"]]


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[float]:
    """Let each CPU be busy for the shares of this list, one look after the other; the last one stays."""
    shares, at = [0.9], [0.0, 0.0]

    def counters() -> Counters:
        now, total = at
        at[:] = now + 1, total + (shares[0] if now % 2 == 0 else 0)
        if now % 2 and len(shares) > 1:
            shares.pop(0)
        return Counters(at_ns=round(now * SECOND), busy=dict.fromkeys(range(64), total))

    monkeypatch.setattr(admission, "read_counters", counters)
    monkeypatch.setattr(run, "read_counters", counters)
    monkeypatch.setattr(lock, "default_path", lambda: tmp_path / "lock")
    monkeypatch.setattr(load_gate, "FIRST_CHECK_S", 0.001)
    monkeypatch.setattr(load_gate, "CHECK_S", 0.001)
    monkeypatch.setattr(admission, "_PAUSE_S", 0.001)
    return shares


def _asked(tmp_path: Path, *names: str, **more: Any) -> tuple[list[dict[str, Any]], list[Mapping[str, Any]]]:
    process = Process()
    return run_admitted({"names": names, "state": str(tmp_path / "s.json"), **more}, start=process), process.requests


@pytest.mark.usefixtures("busy")
def test_a_busy_host_starts_nothing_and_the_skip_is_noted(tmp_path: Path) -> None:
    """The answer has the reason, no process is started, the journal counts the skip and holds no value."""
    (result,), requests = _asked(tmp_path, "timeslice")
    assert requests == []
    assert (result["valid"], result["value"], result["cpu_seconds"]) == (False, None, 0.0)
    assert result["reason"]["code"] == "busy-host"
    entry = read_journal(tmp_path / "s.json").entries["timeslice"]
    assert (entry["skipped"], entry["valid"], entry["runs"]) == ({"busy-host": 1}, None, 0)


@pytest.mark.usefixtures("busy")
def test_what_needs_no_quiet_cpu_runs_all_the_same(tmp_path: Path) -> None:
    """Only those that may start are asked of the process, and the results come in the order of the names."""
    results, requests = _asked(tmp_path, "timeslice", "timers", "noise", "additional-load")
    assert [each["name"] for each in results] == ["timeslice", "timers", "noise", "additional-load"]
    assert [each["valid"] for each in results] == [False, False, False, True]
    assert [each["names"] for each in requests] == [["additional-load"]]


@pytest.mark.usefixtures("busy")
def test_force_passes_the_look_and_danger_comes_before_it(tmp_path: Path) -> None:
    """Forced, the process is started on a busy host; what needs --dangerous is told that, not that the host is busy."""
    _, requests = _asked(tmp_path, "timeslice", force=True)
    assert len(requests) == 1
    (result,), requests = _asked(tmp_path, "balancing")
    assert (result["reason"]["code"], requests) == ("dangerous", [])


def test_a_quiet_host_is_waited_for(tmp_path: Path, busy: list[float]) -> None:
    """Busy for two looks and then quiet: the process is started, with the rest of the time to wait."""
    busy[:] = [0.9, 0.9, 0.0]
    results, requests = _asked(tmp_path, "timeslice", wait_seconds=60.0)
    assert results[0]["valid"]
    assert 0 < requests[0]["wait_seconds"] <= 60


@pytest.mark.usefixtures("busy")
def test_another_run_is_told_at_once_and_leaves_no_trace(tmp_path: Path) -> None:
    """While a run holds the lock the answer is busy-lock, not that its load makes the host busy."""
    with lock.exclusive(lock.default_path()):
        (result,), requests = _asked(tmp_path, "timeslice")
    assert (result["reason"]["code"], requests) == ("busy-lock", [])
    assert read_journal(tmp_path / "s.json").entries == {}


@pytest.mark.usefixtures("busy")
def test_the_process_looks_again() -> None:
    """What became busy since the first look is refused inside, too, before any load."""
    confinement = Confinement(how="nothing is started in it")
    environment = RunEnvironment(worker=worker_binary(), journal=Journal(), confinement=confinement)
    result = run.perform(EXPERIMENTS["timeslice"], RunRequest(), environment)
    assert (result["reason"]["code"], result["cpu_seconds"]) == ("busy-host", 0.0)


@needs_groups
def test_a_host_that_is_busy_is_left_alone(tmp_path: Path) -> None:
    """On this machine: with a busy loop on each CPU the experiment is skipped, and no process is started for it."""
    cpus = sorted(os.sched_getaffinity(0))
    spinners = [subprocess.Popen(["taskset", "-c", str(cpu), "sh", "-c", "while :; do :; done"]) for cpu in cpus]
    try:
        time.sleep(0.3)
        with alone():
            pass
        (result,), requests = _asked(tmp_path, "timeslice")
    finally:
        for each in spinners:
            each.kill()
            each.wait()
    assert requests == []
    assert (result["value"], result["valid"], result["cpu_seconds"]) == (None, False, 0.0)
    assert result["reason"]["code"] in ("busy-host", "busy-lock")
