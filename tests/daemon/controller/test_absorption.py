"""What a batch tells that needs no decision."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specmine.daemon.config.settings import SECOND
from specmine.daemon.controller.absorption import recovered
from specmine.daemon.controller.sampling.surprise import TIMED_NS, Surprise
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.controller.violations.function_violations import FunctionViolations
from specmine.model.violation import ViolationState
from tests.support.planned import NOW_NS, unseen
from tests.support.violations import standing, violation

SURPRISED_NS = NOW_NS - 90 * SECOND


@pytest.mark.parametrize(
    ("state", "closed_ns", "again", "may"),
    [
        (ViolationState.RECOVERED, NOW_NS - 30 * SECOND, False, True),
        (ViolationState.RECOVERED, NOW_NS - 30 * SECOND, True, False),  # another one is open
        (ViolationState.RECOVERED, SURPRISED_NS - SECOND, False, False),  # it was over before that
        (ViolationState.ACKNOWLEDGED, NOW_NS - 30 * SECOND, False, False),  # it is still as slow
    ],
)
def test_what_was_slower_and_recovered_may_surprise_again(
    state: ViolationState, closed_ns: int, again: bool, may: bool
) -> None:
    """Of the functions that surprised; of others it is not asked."""
    slow, other = unseen(1), unseen(2)
    closed = (violation(slow.key).closed(state, closed_ns),)
    violations = replace(standing(violation(slow.key)) if again else FunctionViolations(), closed=closed)
    functions = {one.key: replace(one, violations=violations) for one in (slow, other)}
    surprise = Surprise(until_ns={slow.key: SURPRISED_NS + TIMED_NS, "gone": NOW_NS})
    assert recovered(ControllerState(functions=functions, surprise=surprise)) == ({slow.key} if may else set())
