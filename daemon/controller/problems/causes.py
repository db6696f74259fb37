"""Why the violations that are open are open: one problem a cause. Pure.

Functions that are slower only through another one are explained by it. What remains gets its cause from the facts
around it: its time split into running, waiting and blocked, calls a second, builds, runs and the host.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from specmine.daemon.config.settings import SECOND
from specmine.daemon.controller.allocation.called import EVIDENCE
from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.hotness import HALF_LIFE_NS, LEAST_CPU_NS, share, total_of, waits_for_work
from specmine.daemon.controller.sampling.profile import Profile
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.controller.violations.cause import cause_of
from specmine.daemon.controller.violations.evidence import CALLEE
from specmine.daemon.controller.violations.facts import Callee
from specmine.daemon.controller.violations.function_violations import OpenViolation
from specmine.daemon.controller.violations.growth import steady, wait_growth
from specmine.mining.regression.alarm import causes, reached
from specmine.model.violation import Cause, CauseKind, Direction

from .call_edges import calls_among, part_through
from .sampled_growth import DECIDED_NS, with_more_samples
from .violation_facts import facts_of, followed_since, now_of, usually
from .wait_edges import waits_among

TOGETHER_NS = 300 * SECOND
"""Changes that began within so long of each other may have one cause."""


def with_causes(
    functions: dict[str, FunctionState], before: Mapping[str, FunctionState], state: ControllerState, common: bool
) -> None:
    """Renew the causes in place, if a violation opened, closed or changed.

    Parameters
    ----------
    functions : dict of str to FunctionState
    before : mapping of str to FunctionState
        The same before the last event.
    state : ControllerState
        For lifetimes, builds and the host.
    common : bool
        Most functions of the host are off at once.
    """
    opened = {key: each for key, each in functions.items() if each.violations.standing}
    touched = [key for key, each in opened.items() if not _is_same(before.get(key), each)]
    gone = any(each.violations.standing and key not in opened for key, each in before.items() if key in functions)
    if not touched and not gone:
        return
    because = _because(opened, functions, state.unfollowed)
    total = total_of(functions.values(), state.elsewhere)
    for key in sorted(opened):
        function = opened[key]
        through = because.get(key)
        standing = tuple(
            _decided(
                one,
                function,
                through,
                functions,
                state,
                share(function, total),
                common,
                fresh=_is_fresh(one, before.get(key)),
                seen=_has_waits(function, before.get(key)),
            )
            for one in function.violations.standing
        )
        if any(new is not old for new, old in zip(standing, function.violations.standing, strict=True)):
            functions[key] = replace(function, violations=replace(function.violations, standing=standing))


def is_to_be_explained(state: ControllerState) -> bool:
    """Tell whether samples are to say why a function is slower: one is suspected, or was found a moment ago."""
    return any(
        one.violations.urgency >= EVIDENCE
        or any(state.now_ns - each.found_ns < DECIDED_NS for each in one.violations.open)
        for one in state.functions.values()
        if (one.violations.alarms or one.violations.standing) and not waits_for_work(one)
    )


def _is_same(before: FunctionState | None, now: FunctionState) -> bool:
    if before is None or before.waits is not now.waits:
        return False
    return before.violations.standing == now.violations.standing


def _has_waits(now: FunctionState, before: FunctionState | None) -> bool:
    """Tell whether more is known of where its calls wait."""
    return bool(now.waits) and (before is None or before.waits is not now.waits)


def _is_fresh(one: OpenViolation, before: FunctionState | None) -> bool:
    """Tell whether a violation is new, or its numbers have just been renewed."""
    known = before.violations.standing if before is not None else ()
    return all(each.violation.id != one.violation.id or each.refreshed_ns != one.refreshed_ns for each in known)


def _because(
    opened: Mapping[str, FunctionState], functions: Mapping[str, FunctionState], unfollowed: Mapping[str, Profile]
) -> dict[str, Callee]:
    """Return for each function that others explain the one that has most of its difference."""

    calls = calls_among(tuple(opened), functions, unfollowed)
    direct = {key: {callee for caller, callee in calls if caller == key} for key in opened}
    called = {key: reached(key, direct) for key in opened}
    parts: dict[tuple[str, str], float | None] = {
        pair: part for pair, part in waits_among(opened, called).items() if _together(opened[pair[0]], opened[pair[1]])
    }
    for caller, callee in calls:
        if _together(opened[caller], opened[callee]):
            part = _part_of(opened[caller], opened[callee])
            if part is None or part >= CALLEE:
                parts[caller, callee] = part
    found: dict[str, Callee] = {}
    explained = causes(tuple(opened), tuple(parts))
    for cause, callers in explained.items():
        for caller in callers:
            part = parts.get((caller, cause))
            known = found.get(caller)
            if known is None or (part or 0.0) > (known.part or 0.0):
                waits = cause not in called[caller]
                found[caller] = Callee(key=cause, name=opened[cause].function.title, part=part, is_waited_for=waits)
    return found


def _together(caller: FunctionState, callee: FunctionState) -> bool:
    """Tell whether two functions changed in the same direction at about the same time."""
    return any(
        one.direction is other.direction and abs(one.since_ns - other.since_ns) <= TOGETHER_NS
        for one in caller.violations.open
        for other in callee.violations.open
    )


def _part_of(caller: FunctionState, callee: FunctionState) -> float | None:
    """Return the share of a caller's difference, per second, that a callee has; None: not known."""

    lost = [_lost_a_second(each) for each in (caller, callee)]
    if lost[0] is None or lost[1] is None or lost[0] <= 0:
        return None
    return max(0.0, lost[1] * part_through(caller.key, callee) / lost[0])


def _lost_a_second(function: FunctionState) -> float | None:
    """Return the time that a function takes more than usual, ns a second, either way positive."""
    usual, now, rate = usually(function), now_of(function), function.probe.counted_rate
    if usual is None or not now.calls or rate is None:
        return None
    return abs(now.mean_ns - usual.mean_ns) * rate


def lost_share(time_share: float, times: float, renewed: float) -> float:
    """Return the share of a program's time that slower calls cost.

    Parameters
    ----------
    time_share : float
        Share of the time that samples find in the function, those before the change included.
    times : float
        How many times as long its calls take.
    renewed : float
        Which part of what is remembered of samples came since.
    """
    # before the change the share was so much that both together make what was found
    before = time_share / (renewed * times + 1 - renewed)
    return min(1.0, before * max(0.0, times - 1))


def _renewed(since_ns: int, state: ControllerState) -> float:
    """Return which part of the time profiles came since a moment."""
    half_ns = max(HALF_LIFE_NS, math.log(2) * LEAST_CPU_NS * SECOND / max(state.account.cpu_rate, 1.0))
    return float(-math.expm1(-math.log(2) * max(0, state.now_ns - since_ns) / half_ns))


def _decided(
    one: OpenViolation,
    function: FunctionState,
    through: Callee | None,
    functions: Mapping[str, FunctionState],
    state: ControllerState,
    time_share: float,
    common: bool,
    *,
    fresh: bool,
    seen: bool,
) -> OpenViolation:
    """Return an open violation with its cause, the function that explains it, and what it costs."""
    violation = one.violation
    usual, now = usually(function), now_of(function)
    key = through.key if through is not None else ""
    # a window that holds again says nothing of why others did not
    young = fresh and state.now_ns - violation.found_ns < DECIDED_NS
    cause = violation.cause
    if usual is not None and now.calls and (young or key != violation.because or cause == Cause()):
        facts = facts_of(violation, function, through, functions, state, usual, now)
        cause = cause_of(replace(facts, common=common))
        if cause.growth is not None:
            cause = replace(cause, growth=steady(violation.cause.growth, cause.growth))
        cause = with_more_samples(cause, violation, function, state)
    elif usual is not None and seen and cause.kind is CauseKind.WAIT:
        followed = followed_since(violation, function)
        cause = replace(cause, growth=steady(cause.growth, wait_growth(usual, now, followed)))
    lost = violation.time_share if not fresh else 0.0
    if fresh and usual is not None and now.mean_ns > 0 and violation.direction is Direction.SLOWER:
        lost = lost_share(time_share, now.mean_ns / max(usual.mean_ns, 1.0), _renewed(violation.since_ns, state))
    lost = float(f"{lost:.2g}")
    if (cause, key, lost) == (violation.cause, violation.because, violation.time_share):
        return one
    return replace(one, violation=replace(violation, cause=cause, because=key, time_share=lost))
