"""The daemon compares builds lifetime by lifetime, tells news once, and goes on after a restart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from specmine.daemon.controller.events import Arrived
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.loop import Step
from specmine.daemon.metrics.cardinality import _of_changes
from specmine.daemon.metrics.collector import SnapshotCollector
from specmine.daemon.regression.history import (
    MOST_BUILDS,
    MOST_MEDIANS,
    BuildHistory,
    LifetimeMedian,
    entries,
    with_median,
)
from specmine.daemon.regression.watcher import MOST_ENDED, ChangeWatcher
from specmine.model.batch import Batch, Lifetime
from specmine.model.function import Function
from specmine.model.histogram import Histogram
from specmine.model.host.environment import Environment
from specmine.model.observation import Kind, Observation
from specmine.store import Contents, Verdict

SECOND = 10**9
UTC = 1_700_000_000 * SECOND


def settled(build: str, number: int, median_ns: float, *, name: str = "f", at: int = 0) -> LifetimeMedian:
    """Return one lifetime's median."""
    return LifetimeMedian(
        name=(name, "app"), function=f"{build}+0x10", build=build, lifetime=f"boot:{build}:{number}",
        median_ns=median_ns, utc_ns=UTC + (at or number) * SECOND,
    )  # fmt: skip


def grown(history: BuildHistory, build: str, factor: float, count: int, seed: int, name: str = "f") -> BuildHistory:
    """Return the history after some lifetimes that differ by 1 %."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        history = with_median(history, settled(build, number, 1e5 * factor * np.exp(rng.normal(0, 0.01)), name=name))
    return history


def test_a_slower_build_raises_one_alarm() -> None:
    """Twenty lifetimes of the old build, ten of one 10 % slower: worse, raised, with an interval above 1."""
    history = grown(grown(BuildHistory(), "old", 1.0, 20, 1), "new", 1.1, 10, 2)
    (found,) = entries(history)
    assert (found["verdict"], found["alarm"], found["direction"]) == ("worse", "raised", "worse")
    assert (found["base"], found["new"], found["lifetimes"]) == ("old", "new", [20, 10])
    assert found["interval"][0] > 1.0


def test_an_unchanged_build_raises_none() -> None:
    """The same code built again is not worse, and in the end equivalent."""
    history = grown(grown(BuildHistory(), "old", 1.0, 30, 1), "new", 1.0, 40, 2)
    (found,) = entries(history)
    assert (found["verdict"], found["alarm"]) == ("equivalent", "quiet")


def test_what_creeps_is_seen_against_the_first_build() -> None:
    """Six builds, each 1 % slower: no step is worth an alarm, the way from the first build is."""
    history = BuildHistory()
    for number in range(7):
        history = grown(history, f"v{number}", 1.01**number, 15, number)
    worse = {(each["base"], each["new"]) for each in entries(history) if each["verdict"] == "worse"}
    assert ("v0", "v6") in worse
    assert not [pair for pair in worse if pair[0] != "v0"]


def test_a_late_lifetime_of_an_old_build_changes_nothing() -> None:
    """The base of a comparison is fixed before the first new lifetime."""
    history = grown(grown(BuildHistory(), "old", 1.0, 10, 1), "new", 1.0, 5, 2)
    later = with_median(history, settled("old", 99, 9e9))
    assert entries(later) == entries(history)


def test_callers_come_with_the_cause() -> None:
    """Caller and callee both raised: the callee is the alarm and explains the caller; one on its own stands alone."""
    history = BuildHistory()
    for name in ("caller", "callee", "other"):
        history = grown(grown(history, "old", 1.0, 20, 1, name), "new", 1.2, 10, 2, name)
    found = {each["function"]: each for each in entries(history, {(("caller", "app"), ("callee", "app"))})}
    assert {name: each["cause"] for name, each in found.items()} == {"callee": True, "caller": False, "other": True}
    assert found["callee"]["explains"] == ["caller (app)"]


class Told:
    """Remembers what a watcher tells."""

    def __init__(self) -> None:
        self.verdicts: list[Verdict] = []
        self.changes: Sequence[Mapping[str, Any]] = ()

    def __call__(self, verdicts: Sequence[Verdict], changes: Sequence[Mapping[str, Any]]) -> None:
        """Take it up."""
        self.verdicts += verdicts
        self.changes = changes


def run_lifetimes(
    watcher: ChangeWatcher,
    build: str,
    factor: float,
    count: int,
    *,
    calls: int = 400,
    end: bool = True,
    named: str = "f",
    kind: Kind = Kind.TIME,
    bias_ns: float = 0.0,
) -> None:
    """Let lifetimes of a build pass: an observation each, and their end."""
    rng = np.random.default_rng(len(build))
    function = Function(build_id=build, offset=16, name=named, module="app")
    for number in range(count):
        identity = f"boot:{number}:{build}"
        lifetime = Lifetime(id=identity, pid=number, executable="/bin/app", build_id=build, start_ns=1, processes=1)
        durations = 1e5 * factor * np.exp(rng.normal(0, 0.01)) * rng.lognormal(0, 0.05, calls)
        seen = Observation(
            function=function.key, lifetime=identity, kind=kind, start_ns=1, end_ns=SECOND, bias_ns=bias_ns,
            histogram=Histogram.from_durations(durations), calls=calls, watched_ns=SECOND,
        )  # fmt: skip
        ended = Lifetime(id=identity, pid=number, executable="/bin/app", build_id=build, start_ns=1, processes=0)
        for batch in (
            Batch(now_ns=SECOND, functions=(function,), lifetimes=(lifetime,), observations=(seen,)),
            Batch(now_ns=2 * SECOND, lifetimes=(ended,) if end else ()),
        ):
            watcher.listen(Step(number=0, event=Arrived(batch=batch), state=ControllerState(), actions=()))


@pytest.mark.parametrize(("bias_ns", "counts"), [(2e3, True), (2e4, False)])
def test_lifetimes_of_calls_with_their_path_count(bias_ns: float, counts: bool) -> None:
    """A new build whose calls are only timed with their path is compared, unless the probes' cost may look like it."""
    told = Told()
    watcher = ChangeWatcher(told)
    run_lifetimes(watcher, "old", 1.0, 15)
    run_lifetimes(watcher, "new", 1.3, 15, kind=Kind.PATH, bias_ns=bias_ns)
    assert [each["verdict"] for each in told.changes] == (["worse"] if counts else [])


def test_lifetimes_count_when_they_end() -> None:
    """A lifetime's calls count once it has ended; verdicts are told when they change."""
    told = Told()
    watcher = ChangeWatcher(told)
    run_lifetimes(watcher, "old", 1.0, 15)
    assert watcher.changes == ()
    run_lifetimes(watcher, "slow", 1.2, 8)
    assert [each.verdict for each in told.verdicts] == ["undecided", "worse"]
    assert told.verdicts[-1].subject == "change old -> slow"
    assert told.verdicts[-1].function == "slow+0x10"
    assert [each["alarm"] for each in told.changes] == ["raised"]
    assert told.changes[0]["ratio"] > 1.1


def test_lifetimes_that_live_or_say_little_do_not_count() -> None:
    """A lifetime that has not ended, and one of few calls, are not compared."""
    told = Told()
    watcher = ChangeWatcher(told)
    run_lifetimes(watcher, "old", 1.0, 5)
    run_lifetimes(watcher, "alive", 2.0, 5, end=False)
    run_lifetimes(watcher, "rare", 2.0, 5, calls=100)
    assert watcher.changes == ()


def test_waits_for_work_are_not_compared() -> None:
    """How long the library's waits take tells how much there was to do, not how fast a build is."""
    watcher = ChangeWatcher(Told())
    run_lifetimes(watcher, "old", 1.0, 15, named="epoll_wait")
    run_lifetimes(watcher, "slow", 2.0, 8, named="epoll_wait")
    assert watcher.changes == ()


def test_comparisons_are_exported() -> None:
    """Each function has the series of one comparison, its builds in one of them; all together stay few."""
    from tests.daemon.metrics.test_collector import status  # noqa: PLC0415

    history = grown(grown(BuildHistory(), "old", 1.0, 20, 1), "new", 1.1, 10, 2)
    for number in range(60):
        history = grown(grown(history, "old", 1.0, 3, 1, f"g{number}"), "new", 1.0, 1, 2, f"g{number}")
    shown = {**status(), "changes": entries(history)}
    families = {each.name: each for each in SnapshotCollector(lambda: ((), shown), series=2000).collect()}
    labels = {"program": "", "function": "f", "module": "app"}
    assert [each.labels for each in families["specmine_change_info"].samples if each.labels["function"] == "f"] == [
        {**labels, "base": "old", "new": "new"}
    ]
    alarms = families["specmine_change_alarm"].samples
    assert [each.value for each in alarms if each.labels == {**labels, "direction": "worse"}] == [1.0]
    assert len(alarms) == 50
    states = {each.labels["state"]: each.value for each in families["specmine_change_state"].samples
              if each.labels["function"] == "f"}  # fmt: skip
    assert states == {"worse": 1.0, "better": 0.0, "equivalent": 0.0, "undecided": 0.0}


def test_series_go_on_with_the_next_build() -> None:
    """One comparison is told: of those with an alarm the newest, else the newest. Only its builds change."""
    history, told = grown(BuildHistory(), "old", 1.0, 20, 1), []
    for at, (build, factor, count) in enumerate((("same", 1.0, 20), ("slow", 1.3, 20), ("fixed", 1.0, 1)), start=1):
        for number in range(count):
            history = with_median(history, settled(build, number, 1e5 * factor, at=1000 * at + number))
        found = list(_of_changes((), {"changes": entries(history)}))
        told += [labels[3:] for name, labels, _ in found if name == "specmine_change_info"]
        others = [labels for name, labels, _ in found if name != "specmine_change_info"]
        assert {labels[:3] for labels in others} == {("", "f", "app")}
        assert not {"old", "same", "slow", "fixed"} & {each for labels in others for each in labels[3:]}
    assert told == [("old", "same"), ("old", "slow"), ("old", "slow")]


def test_a_restart_forgets_nothing() -> None:
    """Restored from nothing the watcher is empty; contents without functions are passed over."""
    watcher = ChangeWatcher(Told())
    watcher.restore(Contents(), ())
    assert watcher.changes == ()


def test_a_change_tells_whether_the_machine_code_differs() -> None:
    """The digests of both builds are compared; without them nothing is said."""
    said = []
    for codes in (("1:a:l0", "1:b:l0"), ("1:a:l0", "1:a:l0"), ("", "1:a:l0")):
        watcher = ChangeWatcher(Told())
        run_lifetimes(watcher, "old", 1.0, 3)
        functions = tuple(
            Function(build_id=build, offset=16, name="f", module="app", code=code)
            for build, code in zip(("old", "slow"), codes, strict=True)
        )
        batch = Batch(now_ns=SECOND, functions=functions)
        run_lifetimes(watcher, "slow", 1.2, 2)
        watcher.listen(Step(number=0, event=Arrived(batch=batch), state=ControllerState(), actions=()))
        watcher.acknowledge([], None)
        watcher.listen(Step(number=0, event=Arrived(batch=Batch(now_ns=1)), state=ControllerState(), actions=()))
        said.append(watcher.changes[0]["machine_code"])
    assert said == ["changed", "same", None]


@pytest.mark.parametrize(("excess_ns", "explained"), [(4e6, True), (2.5e6, False)])
def test_a_change_names_the_host_if_that_explains_it(excess_ns: float, explained: bool) -> None:
    """Most calls one timeslice longer than before: the host is named; by any other excess it is not."""
    environment = Environment(slice_seconds=0.004).document()
    rng = np.random.default_rng(3)
    told = Told()
    watcher = ChangeWatcher(told)
    for build, late in (("old", 0.0), ("late", 0.6)):
        function = Function(build_id=build, offset=16, name="f", module="app")
        for number in range(15):
            identity = f"boot:{number}:{build}"
            lifetime = Lifetime(id=identity, pid=number, executable="/bin/app", build_id=build, start_ns=1, processes=1)
            durations = 1e6 * np.exp(rng.normal(0, 0.01, 400)) + excess_ns * (rng.random(400) < late)
            seen = Observation(
                function=function.key, lifetime=identity, kind=Kind.TIME, start_ns=1, end_ns=SECOND,
                histogram=Histogram.from_durations(durations), calls=400, watched_ns=SECOND,
            )  # fmt: skip
            for batch in (
                Batch(now_ns=SECOND, functions=(function,), lifetimes=(lifetime,), observations=(seen,)),
                Batch(now_ns=2 * SECOND, lifetimes=(replace(lifetime, processes=0),)),
            ):
                state = ControllerState(environment=environment)
                watcher.listen(Step(number=0, event=Arrived(batch=batch), state=state, actions=()))
    (change,) = told.changes
    assert (change["verdict"], change["host"]["explained"]) == ("worse", explained)
    assert ("1 timeslice" in change["host"]["reason"]) is explained
    assert [each["times"] for each in change["host"]["shifts"]] == [1 if explained else None]


def test_short_lives_leave_nothing_behind() -> None:
    """Ten thousand lifetimes and a hundred builds take no more memory than a few hundred and eight."""
    watcher = ChangeWatcher(lambda *_: None)
    for number in range(1_000):
        life = Lifetime(id=f"boot:{number}:1", pid=number, executable="/app", build_id="b", start_ns=0, processes=1)
        for told in (life, replace(life, processes=0)):
            batch = Batch(now_ns=number, lifetimes=(told,))
            watcher.listen(Step(number=0, event=Arrived(batch=batch), state=ControllerState(), actions=()))
    assert len(watcher._builds) <= MOST_ENDED
    history = BuildHistory()
    for build in range(40):
        history = grown(history, str(build), 1.0, 3, build)
    history = grown(history, "39", 1.0, 2 * MOST_MEDIANS, 1)
    ((_, builds),) = history.medians.items()
    assert list(builds) == ["0", *(str(build) for build in range(40 - MOST_BUILDS + 1, 40))]
    assert len(builds["39"]) == MOST_MEDIANS
