"""A daemon that comes back knows what was open, also if it was killed or somebody acknowledged meanwhile."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from specmine.daemon.config.settings import Settings
from specmine.daemon.controller.checkpoint import function_record
from specmine.daemon.controller.decide import decide
from specmine.daemon.controller.events import Begun, Restored
from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.problems.restoration import with_violations
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.controller.violations.host_detection import HostDetection
from specmine.daemon.persistence.recorder import detection_in
from specmine.mining.detection.threshold import Calibration
from specmine.model.batch import Started
from specmine.model.json_codec import encode
from specmine.model.violation import ViolationState
from tests.support.changing import Life, lived, slower
from tests.support.planted import unimodal
from tests.support.simulated import PRICES, SECOND
from tests.support.violations import violation

AHEAD_NS = 5000 * SECOND
"""The next boot's clock shows so much less."""


@pytest.fixture(scope="module")
def life() -> Life:
    """Return a run in which the function became three times slower, and stayed so."""
    return lived((unimodal(),), 260.0, [(150.0, "smooth", slower(3.0))])


def come_back(life: Life, *, records: bool = True, **more: Any) -> ControllerState:
    """Return the state of a daemon on the next boot, after it has read its store."""
    before = life.state
    offset = before.utc_offset_ns
    host = {"utc_offset_ns": str(offset + AHEAD_NS), "boot_id": "boot2"}
    state, _ = decide(
        ControllerState(), Begun(started=Started(now_ns=SECOND, host=host, prices=PRICES), settings=Settings())
    )
    stored = {
        key: json.loads(json.dumps(function_record(each, before.now_ns, offset)))
        for key, each in before.functions.items()
    }
    event = Restored(
        now_ns=SECOND,
        functions=tuple(each.function for each in before.functions.values()),
        records=stored if records else {},
        violations=tuple(
            replace(one, **more).shifted(-AHEAD_NS)
            for each in before.functions.values()
            for one in each.violations.open
        ),
    )
    return decide(state, event)[0]


def only(state: ControllerState) -> FunctionState:
    """Return the one function."""
    (function,) = state.functions.values()
    return function


def test_a_restart_keeps_what_was_open_and_what_it_is_measured_by(life: Life) -> None:
    """Violation, yardstick and detector are the same, times on the clock of the new boot."""
    before, after = life.named("smooth").violations, only(come_back(life)).violations
    assert [one.shifted(AHEAD_NS) for one in after.open] == list(before.open)
    assert before.yardstick is not None and after.yardstick is not None
    assert after.yardstick.levels == before.yardstick.levels
    assert after.yardstick.usual.mean_ns == pytest.approx(before.yardstick.usual.mean_ns)
    assert [one.stream for one in after.detector.streams] == [one.stream for one in before.detector.streams]
    moved = [one.ended_ns + AHEAD_NS for one in after.detector.streams]
    assert moved == [one.ended_ns for one in before.detector.streams]


def test_a_violation_whose_function_has_no_record_is_open(life: Life) -> None:
    """The record may be lost, or be of another version: the row of the violation is enough."""
    function = only(come_back(life, records=False))
    assert [one.id for one in function.violations.open] == [one.id for one in life.named("smooth").violations.open]


def test_what_was_acknowledged_without_a_daemon_is_acknowledged(life: Life) -> None:
    """It closes, and the present state is the yardstick."""
    more: dict[str, Any] = {
        "state": ViolationState.ACKNOWLEDGED,
        "closed_ns": life.state.now_ns,
        "closed_by": "ann",
        "comment": "known",
    }
    function = only(come_back(life, **more))
    assert function.violations.open == ()
    (known,) = function.violations.closed
    assert (known.state, known.closed_by, known.comment) == (ViolationState.ACKNOWLEDGED, "ann", "known")


def test_rows_of_functions_that_nobody_knows_are_passed_over() -> None:
    """A violation of a function that the store does not describe cannot be shown."""
    assert with_violations({}, [violation("gone+0x1")], {}, Settings()) == {}


def test_the_calibration_of_the_host_comes_back() -> None:
    """How far the evidence of unchanged functions went is learned over a week, not over one life of the daemon."""
    known = HostDetection(calibration=Calibration(peaks=3.0, excess=2.5, seconds=90_000.0, told_ns=7 * SECOND))
    stored = json.loads(json.dumps(encode(known.shifted(AHEAD_NS))))
    back = detection_in({"detection": stored}).shifted(-AHEAD_NS)
    assert back.calibration == known.calibration
    assert back.threshold == known.threshold
    assert detection_in({"detection": {"calibration": "damaged"}}) == HostDetection()
