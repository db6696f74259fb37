"""A person says that a violation is known: it closes, and the present state is the yardstick from now on.

Where calls take again what is asserted, the present state is what it was before: the yardstick stays.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from specmine.daemon.config.settings import Settings
from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.phase import FINISHED
from specmine.daemon.controller.transitions import learned_anew, reasoned
from specmine.daemon.controller.violations.asserted import Asserted
from specmine.daemon.controller.violations.change import since
from specmine.daemon.controller.violations.detection import accepted, calmed
from specmine.daemon.controller.violations.function_violations import Block, FunctionViolations
from specmine.daemon.controller.violations.lifecycle import is_back
from specmine.daemon.controller.violations.yardstick import begun
from specmine.mining.assertions.checks import Verification
from specmine.model.violation import Violation, ViolationState


def all_acknowledged(
    functions: Mapping[str, FunctionState], ids: Collection[str], by: str, comment: str, now_ns: int, settings: Settings
) -> dict[str, FunctionState]:
    """Return functions whose violations of these ids are acknowledged; the others stay as they are."""
    known = frozenset(ids)
    return {key: acknowledged(each, known, by, comment, now_ns, settings) for key, each in functions.items()}


def acknowledged(
    function: FunctionState, ids: Collection[str], by: str, comment: str, now_ns: int, settings: Settings
) -> FunctionState:
    """Return a function whose violations of these ids are acknowledged; one without any stays as it is.

    Once none is open, what was observed since the change is the yardstick. Classes are found again: their borders
    moved with the durations.

    Parameters
    ----------
    function : FunctionState
    ids : collection of str
    by, comment : str
        Who says so, and why.
    now_ns : int
    settings : Settings
    """
    standing = [one for one in function.violations.standing if one.violation.id in ids]
    if not standing:
        return function
    known = [one.violation for one in standing]
    closed = [one.closed(ViolationState.ACKNOWLEDGED, now_ns, by, comment) for one in known]
    violations = function.violations.with_closed(closed)
    if violations.standing:
        return replace(function, violations=violations)
    yardstick = violations.yardstick
    if yardstick is not None and all(is_back(one, yardstick) for one in standing):
        violations = replace(violations, detector=calmed(violations.detector), alarms=(), examined=(), block=Block())
        return reasoned(replace(function, violations=violations), now_ns)
    function = replace(function, violations=_adopted(function, violations, known))
    learned = function.inference.learned
    if function.state in FINISHED and learned is not None and learned.borders:
        return learned_anew(function, now_ns)
    chain = function.inference.chain
    inference = replace(function.inference, learned=chain if chain is not None and chain.stable else learned)
    function = replace(function, inference=inference, verification=Verification(checked_ns=now_ns))
    return reasoned(function, now_ns)


def _adopted(
    function: FunctionState, violations: FunctionViolations, known: Collection[Violation]
) -> FunctionViolations:
    """Return violations measured by what was observed since the first of some violations began."""
    first_ns = min(one.since_ns for one in known)
    observed = [one for one in since(function.history.longest, first_ns) if one.end_ns > first_ns]
    yardstick = begun(function.function.build_id, Asserted(), observed, first_ns)
    return replace(
        violations,
        yardstick=yardstick,
        detector=accepted(violations.detector),
        alarms=(),
        examined=(),
        block=Block(),
    )
