"""What is suspected is urgent only as long as more windows can decide it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specmine.daemon.config.settings import SECOND
from specmine.daemon.controller.violations.function_violations import (
    DOUBT_NS,
    EARNED,
    PATIENCE,
    FunctionViolations,
)
from specmine.mining.detection.alarm import Alarm, Stream
from specmine.mining.detection.detector import SHOWN, DetectorState
from specmine.mining.detection.state import first_state
from specmine.model.violation import Direction, What

NOW_NS = 5_000 * SECOND
STREAM = Stream(what=What.LEVEL, part="all")


def suspected(
    windows: int, log_e: float, since_ns: int = NOW_NS - 60 * SECOND, direction: Direction = Direction.SLOWER
) -> FunctionViolations:
    """Return a function with one alarm, whose newest window ends now."""
    alarm = Alarm(
        stream=STREAM, direction=direction, factor=0.5, factor_low=0.4, factor_high=0.6, since_ns=since_ns,
        windows=windows, log_e=log_e, opened=False,
    )  # fmt: skip
    one = replace(first_state(STREAM, 10.0, 0.001), ended_ns=NOW_NS)
    return FunctionViolations(detector=DetectorState(streams=(one,)), alarms=(alarm,))


@pytest.mark.parametrize(
    ("windows", "log_e", "urgent"),
    [
        (3, 3.5, True),
        (6, 3.5, False),
        (6, 5.0, True),
        (12, 8.0, False),
        (12, 9.5, True),
        (40, SHOWN - 1, False),
        (40, SHOWN + 1, True),
        (3, 2.5, False),
    ],
)
def test_what_windows_bring_little_evidence_of_is_not_urgent(windows: int, log_e: float, urgent: bool) -> None:
    """Unless people are shown it; it is in doubt nevertheless, so nothing is learned from it."""
    violations = suspected(windows, log_e)
    assert bool(violations.urgency) is urgent
    assert bool(violations.evidence) is (log_e >= 3)


@pytest.mark.parametrize(("log_e", "doubted"), [(5.0, False), (6.5, True)])
def test_faster_calls_are_never_urgent_and_take_more_evidence_to_be_in_doubt(log_e: float, doubted: bool) -> None:
    """As in the simulation that the threshold comes from. Windows of slower ones come first."""
    violations = suspected(3, log_e, direction=Direction.FASTER)
    assert not violations.urgency
    assert bool(violations.evidence) is doubted
    assert violations.changed_ns(3.0) is None
    after = FunctionViolations().with_alarms(violations.alarms).with_alarms(())
    assert not after.urgency


def test_since_when_it_has_changed_is_told_of_enough_evidence() -> None:
    """Of a suspicion that is strong enough, and of nothing else."""
    assert suspected(3, 9.0).changed_ns(6.0) == NOW_NS - 60 * SECOND
    assert suspected(3, 5.0).changed_ns(6.0) is None
    assert FunctionViolations().changed_ns(0.0) is None


def test_after_an_alarm_windows_come_soon_for_a_while() -> None:
    """Not every window has a call that pauses; in the long run few come in vain."""
    doubted = FunctionViolations().with_alarms(suspected(3, 5.0).alarms)
    first = doubted.with_alarms(())
    second = first.with_alarms(())
    third = second.with_alarms(())
    assert [bool(one.urgency) for one in (first, second, third)] == [True, True, False]
    assert not any(one.evidence for one in (first, second, third))
    violations, soon = FunctionViolations(), 0
    for number in range(600):
        violations = violations.with_alarms(suspected(3, 5.0).alarms if number % 3 == 0 else ())
        soon += bool(violations.urgency) and not violations.alarms
    assert soon <= PATIENCE + EARNED * 600


def test_what_is_old_is_neither_urgent_nor_in_doubt() -> None:
    """After ten minutes."""
    violations = suspected(3, 9.0, NOW_NS - DOUBT_NS)
    assert (violations.urgency, violations.evidence) == (0.0, 0.0)
