"""When call paths are explained: a function of one path does not wait for windows that tell nothing more."""

from __future__ import annotations

import numpy as np
import pytest

from specmine.daemon.config.settings import Settings
from specmine.daemon.controller.explanation import ONE_PATH_CALLS, has_one_path
from specmine.daemon.controller.phase import State
from specmine.daemon.loop import Step, run
from specmine.daemon.worker.process import InlineWorker
from specmine.model.call_path import CallPath, Frame
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation, PathHistogram
from tests.support.planted import MIXED, Planted, Way
from tests.support.simulated import SECOND, FakeClock, SimulatedSource


def observed(*calls: tuple[str, int]) -> Observation:
    """Return an observation with so many calls over each path; those over `lost` are incomplete."""
    paths = tuple(
        PathHistogram(
            path=CallPath((Frame(caller, "app"), Frame("f", "app")), complete=caller != "lost"),
            histogram=Histogram.from_durations(np.full(number, 20_000.0)),
        )
        for caller, number in calls
    )
    whole = Histogram.sum(one.histogram for one in paths)
    return Observation(
        function="f", kind=Kind.PATH, lifetime="l", start_ns=0, end_ns=SECOND, calls=whole.total, histogram=whole,
        watched_ns=SECOND, paths=paths,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("windows", "expected"),
    [
        ([[("a", ONE_PATH_CALLS)]], True),
        ([[("a", ONE_PATH_CALLS // 2)], [("a", ONE_PATH_CALLS // 2)]], True),
        ([[("a", ONE_PATH_CALLS - 1)]], False),
        ([[("a", ONE_PATH_CALLS)], [("b", 1)]], False),
        ([[("a", ONE_PATH_CALLS), ("lost", ONE_PATH_CALLS // 20)]], True),
        ([[("a", ONE_PATH_CALLS), ("lost", ONE_PATH_CALLS // 5)]], False),
        ([[("lost", 2 * ONE_PATH_CALLS)]], False),
    ],
)
def test_one_path_needs_enough_calls_and_no_other(windows: list[list[tuple[str, int]]], expected: bool) -> None:
    """Two windows make enough together; a single call over another path, or many incomplete ones, are waited for."""
    assert has_one_path([observed(*calls) for calls in windows]) is expected


def windows_until_explained(callers: tuple[str, ...]) -> tuple[int, str]:
    """Return how many observations with paths a function had when it was found unexplained, and the reason."""
    ways = tuple(Way(callers=f"main;{caller}", weight=1.0, classes=MIXED) for caller in callers)
    clock = FakeClock()
    source = SimulatedSource((Planted(name="f", rate=20_000.0, ways=ways),), clock)
    found: list[tuple[int, str]] = []

    def listen(step: Step) -> None:
        for each in step.state.functions.values():
            if each.state is State.UNEXPLAINED and not found:
                result = each.explanation.result
                found.append((len(each.history.paths), result.why if result is not None else ""))

    run(source, Settings(), clock, InlineWorker(), listeners=[listen], deadline_ns=60 * SECOND)
    return found[0]


def test_the_only_path_is_told_after_two_windows() -> None:
    """More calls over the only path explain nothing; of two paths that are alike many are needed to say so."""
    few, why = windows_until_explained(("x",))
    many, other = windows_until_explained(("x", "y"))
    assert (why, other) == ("one-path", "one-group")
    assert few <= 2
    assert many >= Settings().mining.chain_observations
