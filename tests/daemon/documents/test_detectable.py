"""Which slowdowns would be found, and how soon."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specmine.daemon.config.settings import Settings
from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.documents.detectable import detectable_facts
from specmine.daemon.loop import run
from specmine.daemon.socket.handlers import with_detectable
from specmine.daemon.worker.process import InlineWorker
from specmine.mining.detection.alarm import Stream
from specmine.mining.detection.detector import THRESHOLD, DetectorState
from specmine.mining.detection.power import detectable
from specmine.mining.detection.state import first_state
from specmine.model.violation import What
from tests.support.planted import unimodal
from tests.support.simulated import SECOND, FakeClock, SimulatedSource

SHORT = Settings(window_ns=SECOND, limit_ns=10 * SECOND)


@pytest.fixture(scope="module")
def learned() -> ControllerState:
    """Return what is known after a short run of a program."""
    clock = FakeClock()
    return run(SimulatedSource([unimodal()], clock), SHORT, clock, InlineWorker(), deadline_ns=40 * SECOND)


def varying(state: ControllerState, key: str, spread: float, apart_s: float, windows: float = 500.0) -> FunctionState:
    """Return the function that has an assertion, as if its windows varied by so much and came so far apart."""
    function = next(each for each in state.functions.values() if each.violations.yardstick is not None)
    stream = replace(
        first_state(Stream(what=What.LEVEL, part="all"), 0.0, 1e-4),
        variance=spread**2,
        square=spread**2,
        interval=apart_s,
        seen=windows,
    )
    named = replace(function.identity, function=replace(function.function, name=key, offset=hash(key) & 0xFFFF))
    violations = replace(function.violations, detector=DetectorState(streams=(stream,)))
    return replace(function, identity=named, violations=violations)


@pytest.mark.parametrize(
    ("spread", "apart_s", "doubled"),
    [(0.05, 5.0, 60.0), (0.1, 100.0, 300.0), (0.9, 120.0, None)],
)
def test_twice_as_slow_is_found_the_later_the_more_windows_vary(
    learned: ControllerState, spread: float, apart_s: float, doubled: float | None
) -> None:
    """What is told is what the detector finds when it watches such a change: in time, and not sooner."""
    function = varying(learned, f"f{spread}", spread, apart_s)
    found = detectable_facts(function, 0, THRESHOLD)
    assert found is not None and found["doubled_seconds"] == doubled
    for span in (60.0, 300.0, 900.0):
        in_time = doubled is not None and span >= doubled
        assert (detectable(function.violations.detector, within=span) <= 2.0) == in_time


def test_few_windows_tell_nothing(learned: ControllerState) -> None:
    """How far windows vary is not known yet; it is said how many are missing, and how far apart they are."""
    found = detectable_facts(varying(learned, "new", 0.05, 42.0, 30.0), 0, THRESHOLD)
    assert found is not None
    assert (found["ratio"], found["doubled_seconds"]) == (None, None)
    assert (found["windows"], found["windows_needed"], found["window_seconds"]) == (30, 90, 42.0)


def test_only_of_what_is_asserted(learned: ControllerState) -> None:
    """A function of which nothing is asserted has null."""
    function = varying(learned, "unasserted", 0.05, 5.0)
    unasserted = replace(function, violations=replace(function.violations, yardstick=None))
    state = replace(learned, functions={function.key: function, "other": unasserted})
    document = with_detectable({"functions": [{"key": function.key}, {"key": "other"}]}, state)
    assert [each["detectable"] is None for each in document["functions"]] == [False, True]
