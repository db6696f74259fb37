"""The daemon's scheduler of host experiments: starts, takes up, stores, backs off, stops; and what a scrape shows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from specmine.daemon.config.loader import ConfigError, parse_config
from specmine.daemon.config.tree import ExperimentSettings
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.documents.status import DaemonFacts, status_of
from specmine.daemon.host.experiment_runner import ExperimentRunner
from specmine.daemon.metrics.collector import SnapshotCollector
from specmine.experiments.library import EXPERIMENTS
from specmine.experiments.results.document import document, skipped
from specmine.experiments.results.journal import read_journal, write_journal
from specmine.experiments.runner import lock
from specmine.experiments.runner.load_gate import FIRST_CHECK_S
from specmine.experiments.types import SECOND, Experiment, Finding, Host
from specmine.model.errors import HostError
from specmine.model.function import Reason

HOST = Host(cpus=(0, 1), boot_id="boot", kernel="6.18")
VALUE = Finding(value=0.004, interval=(0.0039, 0.0041), ground_truth=0.004, samples=60)
BUSY = Finding(reason=Reason(code="busy-host", text="CPU 1 is 94% busy"))


class FakeRun:
    """A child that answers when it is told to."""

    def __init__(self, request: Mapping[str, Any], outcome: Finding | None, utc_ns: int) -> None:
        self.request, self._outcome, self._utc_ns = request, outcome, utc_ns
        self.done = self.closed = False

    def ended(self) -> bool:
        """Tell whether it was told to end."""
        return self.done

    def answer(self) -> list[dict[str, Any]]:
        """Write the journal as the real child does, and return the result."""
        if self._outcome is None:
            raise HostError("it broke")
        experiment, path = EXPERIMENTS[self.request["names"][0]], Path(self.request["state"])
        if self._outcome.reason is not None:
            result = skipped(experiment, self._outcome.reason, HOST, utc_ns=self._utc_ns, now_ns=0)
        else:
            result = document(
                experiment, self._outcome, HOST, utc_ns=self._utc_ns, window_ns=(0, SECOND), cpu_ns=SECOND, cpus=(1,)
            )
        journal = read_journal(path)
        journal.add(result)
        write_journal(path, journal)
        return [result]

    def stop(self) -> None:
        """End soon."""
        self.done = True

    def close(self) -> None:
        """Remember that it was ended."""
        self.closed = True


class FakeLook:
    """A look at a host that is as busy as it is told."""

    def __init__(self, world: World) -> None:
        self._world, self._began_ns = world, world.now_ns

    def refusals(self, chosen: list[Experiment], request: Mapping[str, Any]) -> list[Mapping[str, Any] | None]:
        """Refuse everything while the host is busy."""
        assert self._world.now_ns - self._began_ns >= FIRST_CHECK_S * SECOND
        assert [each.name for each in chosen] == request["names"]
        if not self._world.busy:
            return [None]
        return [
            skipped(
                chosen[0], Reason(code="busy-host", text="CPU 1 is 94% busy"), HOST, utc_ns=self._world.now_ns, now_ns=0
            )
        ]


class World:
    """A scheduler with everything around it faked; time passes when it is told to."""

    def __init__(self, folder: Path, outcome: Finding | None = VALUE, **settings: Any) -> None:
        self.path = folder / "experiments.json"
        self.runs: list[FakeRun] = []
        self.reports: list[str] = []
        self.stored: dict[str, Mapping[str, Any]] = {}
        self.outcome = outcome
        self.now_ns = 0
        self.busy = False
        self.scheduler = ExperimentRunner(
            ExperimentSettings(**{"enabled": True, "delay_ns": 60 * SECOND, **settings}),
            self.path,
            host=lambda: HOST,
            report=self.reports.append,
            publish=self.stored.__setitem__,
            start=self._start,
            check=lambda: FakeLook(self),
        )

    def _start(self, request: Mapping[str, Any]) -> FakeRun:
        assert not self.runs or self.runs[-1].done, "two at once"
        self.runs.append(FakeRun(request, self.outcome, self.now_ns))
        return self.runs[-1]

    def live(self, seconds: int, *, off: bool = False) -> None:
        """Turn every second; what was started ends after three."""
        for _ in range(seconds):
            self.now_ns += SECOND
            self.scheduler.turn(self.now_ns, self.now_ns, off=off)
            if self.runs and not self.runs[-1].done and len(self.runs[-1].request) and self.now_ns % (3 * SECOND) == 0:
                self.runs[-1].done = True


def test_each_is_run_once_and_stored(tmp_path: Path) -> None:
    """After the start each configured experiment gets its turn, one at a time, and the store has the journal."""
    world = World(tmp_path, run=("timers", "noise"))
    world.live(1200)
    assert [run.request["names"] for run in world.runs] in ([["timers"], ["noise"]], [["noise"], ["timers"]])
    assert set(world.scheduler.entries) == {"timers", "noise"}
    assert set(world.stored["experiments"]["entries"]) == {"timers", "noise"}
    assert world.reports == []


def test_off_means_off(tmp_path: Path) -> None:
    """Disabled, or with the kill switch on, nothing is started; what runs is ended."""
    world = World(tmp_path, enabled=False)
    world.live(1200)
    assert world.runs == []
    world = World(tmp_path, run=("timers",))
    world.live(1200, off=True)
    assert world.runs == []
    while not world.runs:
        world.live(1)
    assert not world.runs[-1].done
    world.live(1, off=True)
    assert world.runs[-1].closed
    assert world.scheduler.entries == {}
    assert world.reports == []


def test_beside_busy_tasks_no_process_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy host is seen by the daemon itself: skips are counted, tries grow rarer, a quiet one runs."""
    monkeypatch.setattr(lock, "default_path", lambda: tmp_path / "lock")
    world = World(tmp_path, run=("timers",))
    world.busy = True
    world.live(3000)
    assert world.runs == []
    assert world.reports == []
    assert 2 <= world.scheduler.entries["timers"]["skipped"]["busy-host"] <= 5
    assert world.stored["experiments"]["entries"]["timers"]["valid"] is None
    world.busy = False
    world.live(5000)
    assert len(world.runs) == 1
    assert world.scheduler.entries["timers"]["valid"]["value"] == VALUE.value


def test_a_child_that_breaks_is_one_line_and_tried_later(tmp_path: Path) -> None:
    """An error ends nothing: it is reported, and the next try comes after a longer pause."""
    world = World(tmp_path, outcome=None, run=("timers",))
    world.live(3000)
    assert 2 <= len(world.runs) <= 5
    assert world.reports[0] == "the experiment timers failed: it broke"


def test_what_cannot_be_known_here_is_not_tried_again_and_again(tmp_path: Path) -> None:
    """Without a reference there is no overhead; asking every five minutes would not help."""
    unknown = Finding(reason=Reason(code="no-reference", text="no times of another machine"))
    world = World(tmp_path, outcome=unknown, run=("virtualization-constant",))
    world.live(6000)
    assert len(world.runs) == 1


def test_a_skip_never_makes_an_old_value_fresh(tmp_path: Path) -> None:
    """After a skip the scrape shows the old value with its old time, not valid, the skip counted by reason."""
    world = World(tmp_path, run=("timers",))
    world.live(1200)
    fresh = _scraped(world)
    world.scheduler.entries = {}
    world.path.rename(tmp_path / "kept.json")
    world = World(tmp_path, outcome=BUSY, run=("timers",))
    (tmp_path / "kept.json").rename(world.path)
    world.scheduler.entries = read_journal(world.path).entries
    world.now_ns = 40 * 3600 * SECOND
    world.live(1200)
    later = _scraped(world)
    for name in ("value", "timestamp_seconds", "ground_truth", "samples"):
        key = (f"specmine_experiment_{name}", ("timers",))
        assert later[key] == fresh[key]
    assert fresh["specmine_experiment_valid", ("timers",)] == 1
    assert later["specmine_experiment_valid", ("timers",)] == 0
    assert later["specmine_experiment_skipped_total", ("timers", "busy-host")] >= 1


def _scraped(world: World) -> dict[tuple[str, tuple[str, ...]], float]:
    daemon = DaemonFacts(experiments=world.scheduler.entries)
    status = status_of(ControllerState(), daemon)
    found = SnapshotCollector(lambda: ([], status), series=2000).collect()
    return {(each.name, tuple(each.labels.values())): each.value for family in found for each in family.samples}


def test_an_unknown_experiment_is_refused_by_the_configuration() -> None:
    """A slip in the list is named, with the names that there are."""
    with pytest.raises(ConfigError, match=r"no experiment 'timeslize'.*timeslice"):
        parse_config("experiments:\n  run: [timeslize]\n")
