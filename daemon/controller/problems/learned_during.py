"""Functions that were learned while another one of their program was slower. Pure.

Nobody knows whether what was learned then is usual. So it is no assertion: calls that are slower still are reported,
calls that are faster are not, and the verdict is unknown. Once the other one holds again the function is learned anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from specmine.daemon.config.settings import Settings
from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.history import History
from specmine.daemon.controller.phase import FINISHED, State
from specmine.daemon.controller.transitions import learned_anew, reasoned
from specmine.daemon.controller.violations.function_violations import FunctionViolations
from specmine.daemon.controller.violations.yardstick import Disturbance, Yardstick
from specmine.model.violation import CauseKind, Direction, Violation, ViolationState

_ASSERTED = frozenset({State.EXPLAINING, *FINISHED})


def with_learned_during(functions: dict[str, FunctionState], settings: Settings, now_ns: int) -> None:
    """Note in place which functions were learned while another one was slower, and learn them anew once that is over.

    Parameters
    ----------
    functions : dict of str to FunctionState
    settings : Settings
    now_ns : int
    """
    slower = [
        (one, function)
        for function in functions.values()
        for one in function.violations.open
        if one.direction is Direction.SLOWER
    ]
    for key, function in functions.items():
        yardstick = function.violations.yardstick
        if yardstick is None or not (slower or yardstick.during):
            continue
        still = tuple(one for one in yardstick.during if any(one.violation == each.id for each, _ in slower))
        over = [one for one in yardstick.during if one not in still]
        if over and not function.violations.standing and not _are_acknowledged(over, functions):
            functions[key] = _anew(function, settings, now_ns)
            continue
        if function.violations.standing:
            still = yardstick.during  # what is open is measured by it
        known = {one.violation for one in still}
        new = tuple(
            Disturbance(violation=one.id, function=other.function.title)
            for one, other in slower
            if one.id not in known and _is_around(one, other, function, yardstick)
        )
        during = (*still, *new)
        if during != yardstick.during:
            violations = replace(function.violations, yardstick=replace(yardstick, during=during))
            functions[key] = reasoned(replace(function, violations=violations), now_ns)


def _is_around(one: Violation, other: FunctionState, function: FunctionState, yardstick: Yardstick) -> bool:
    """Tell whether the windows of a yardstick were taken, for the most part, after a violation can have begun."""
    settling = yardstick.settling
    if other.key == function.key or settling is None or yardstick.inherited_ns is not None:
        return False
    everywhere = one.cause.kind is CauseKind.HOST
    if not everywhere and not set(other.identity.programs) & set(function.identity.programs):
        return False
    return settling.began_ns + yardstick.since_ns > 2 * earliest_ns(one, other)


def earliest_ns(one: Violation, function: FunctionState) -> int:
    """Return when a violation of a function can have begun at the earliest: at the end of the window before.

    Where windows are a minute apart its moment may be told a minute late.
    """
    windows = (*function.history.timing, *function.history.paths)
    return max((each.end_ns for each in windows if each.end_ns <= one.since_ns), default=one.since_ns)


def _are_acknowledged(over: Iterable[Disturbance], functions: Mapping[str, FunctionState]) -> bool:
    """Tell whether a person said of each that it is known: then the present state is the usual one."""
    accepted = {
        one.id
        for function in functions.values()
        for one in function.violations.closed
        if one.state is ViolationState.ACKNOWLEDGED
    }
    return all(one.violation in accepted for one in over)


def _anew(function: FunctionState, settings: Settings, now_ns: int) -> FunctionState:
    """Return a function without what it was learned as; windows since the other one holds again count already."""
    first_ns = now_ns - settings.recover_after_ns
    history: History = function.history
    history = replace(
        history,
        timing=tuple(one for one in history.timing if one.start_ns >= first_ns),
        paths=tuple(one for one in history.paths if one.start_ns >= first_ns),
        tried=0,
    )
    violations = FunctionViolations(closed=function.violations.closed, lost=function.violations.lost)
    function = replace(function, history=history, violations=violations)
    if function.state in _ASSERTED:
        return learned_anew(function, now_ns)
    chain = None if function.state is State.TIMING else function.inference.chain
    return replace(function, inference=replace(function.inference, chain=chain))
