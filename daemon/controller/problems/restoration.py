"""What a store says of violations, joined with the records of functions that it holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from specmine.daemon.config.settings import Settings
from specmine.daemon.controller.function import FunctionState, Identity
from specmine.daemon.controller.violations.function_violations import CLOSED, FunctionViolations, OpenViolation
from specmine.model.function import Function
from specmine.model.violation import Violation, ViolationState

from .acknowledgement import acknowledged


def with_violations(
    functions: Mapping[str, FunctionState],
    stored: Sequence[Violation],
    described: Mapping[str, Function],
    settings: Settings,
) -> dict[str, FunctionState]:
    """Return functions with the violations of a store.

    A violation that the store has as open is open, whatever the older record of its function says. One that a person
    acknowledged in the store while no daemon ran is acknowledged now.

    Parameters
    ----------
    functions : mapping of str to FunctionState
        As their records say.
    stored : sequence of Violation
        Oldest first, times on this boot's clock.
    described : mapping of str to Function
        All functions that the store names: one whose record is lost keeps its violations.
    settings : Settings
    """
    result = dict(functions)
    for one in stored:
        function = result.get(one.function)
        if function is None and one.function in described and one.state is ViolationState.OPEN:
            function = FunctionState(identity=Identity(function=described[one.function]))
        if function is None:
            continue
        known = {each.id: each for each in function.violations.open}
        if one.state is ViolationState.OPEN and one.id not in known:
            standing = OpenViolation(violation=one)
            violations = replace(function.violations, standing=(*function.violations.standing, standing))
            result[one.function] = replace(function, violations=violations)
        elif one.state is ViolationState.ACKNOWLEDGED and one.id in known:
            at_ns = one.found_ns if one.closed_ns is None else one.closed_ns
            result[one.function] = acknowledged(
                function, frozenset({one.id}), one.closed_by, one.comment, at_ns, settings
            )
        elif one.state is ViolationState.RECOVERED or one.id not in known:
            result[one.function] = replace(function, violations=_with_closed(function.violations, one))
    return result


def _with_closed(violations: FunctionViolations, one: Violation) -> FunctionViolations:
    """Return them with one that closed; the record may still have it as open, or not know it."""
    if any(each.id == one.id for each in violations.closed):
        return violations
    closed = violations.with_closed((one,))
    ordered = sorted(closed.closed, key=lambda each: (each.closed_ns or 0, each.id))
    return replace(closed, closed=tuple(ordered)[-CLOSED:])
