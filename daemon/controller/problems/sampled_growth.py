"""In what samples of stacks find more, where calls of a violated function work longer. Pure.

A function whose calls work twice as long is on twice as many stacks. So is all that calls it, diluted by what else
these do, and what it calls has a part of that. So of all functions on the same stacks it has most evidence of more
samples. It need not be timed, nor be known: where only windows count such a one is never named. Of several that have
nearly all of it, each in the one above, the innermost says most.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import replace

from specmine.daemon.config.settings import SECOND
from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.sampling.history import Growth
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.controller.violations.facts import Facts
from specmine.daemon.controller.violations.time_difference import parts_of
from specmine.model.violation import Cause, CauseKind, Direction, MoreSamples, Violation

from .call_edges import callers_of
from .violation_facts import now_of, quantile_of, usually

DECIDED_NS = 120 * SECOND
"""The cause of a violation is decided anew with each window, and burst of samples, for so long."""
WORKING = (CauseKind.CODE, CauseKind.LOAD, CauseKind.UNKNOWN)
"""Causes of which samples of the CPU clock tell more."""
WORKS_LONGER = (
    "Samples find where its calls work longer, with the same machine code: other data or another configuration."
)

NEW, LEAST_BLOCKED = 10.0, 0.3
"""A callee that takes so many times its usual CPU time was hardly called before. Where the second share of the
difference is being blocked, it is that callee which blocks: a write that syncs now is little work, and a long wait."""
EVIDENCE = 8.0
"""That a function takes more CPU time than usual."""
AS_GOOD, AS_MUCH = 0.8, 0.9
"""Of functions that have so much of the largest evidence, and of the growth of that one, the innermost is named: if it
grew by so much of its factor. A helper of many callers grew by less, and says nothing of the one that changed."""
CONCENTRATED = 1.2
"""A caller is named if it grew by so many times as large a factor: twice the load is twice as much of all callers."""
LEAST_PART = 0.5
"""It has so much of what calls of the violated function take more."""
LEAST_WORK = 0.3
"""Share of the difference that must be work for more CPU time to be why."""
MOST_LOOKED_AT = 40
"""Of so many functions with most evidence it is seen whether they are on the same stacks."""
STEADY = 1.25
"""Numbers that changed by a smaller factor stay as they were told."""
NOTHING = Growth(cpus=0.0, usual_cpus=0.0, evidence=0.0)


def more_samples(function: FunctionState, since_ns: int, part: float, state: ControllerState) -> MoreSamples | None:
    """Return in what samples find more since a violation began, above or below its function on stacks.

    Parameters
    ----------
    function : FunctionState
        Whose violation it is.
    since_ns : int
        When that began.
    part : float
        How much of the time of its calls is more than usual, in [0, 1].
    state : ControllerState
        For samples, callers and names.

    Returns
    -------
    MoreSamples, optional
        None: it is the function itself, or samples do not tell.
    """
    growth = state.samples.growth_since(since_ns)
    own = growth.get(function.key, NOTHING)
    near = _on_the_same_stacks(function.key, growth, state)
    if not near:
        return None
    best = growth[max(near, key=lambda key: (growth[key].evidence, key))]
    as_good = [
        key
        for key in near
        if growth[key].least_part_of(best) >= AS_GOOD and growth[key].factor >= AS_MUCH * max(best.factor, own.factor)
    ]
    if not as_good:
        return None
    inner = _innermost(as_good, growth, state)
    found, named = growth[inner], state.catalog.get(inner)
    if inner == function.key or named is None or found.more < LEAST_PART * part * own.cpus:
        return None
    return MoreSamples(
        function=named.name,
        module=named.module,
        is_caller=inner in callers_of(function.key, state.functions, state.unfollowed),
        cpus=float(f"{found.cpus:.2g}"),
        usual_cpus=float(f"{found.usual_cpus:.2g}"),
    )


def _on_the_same_stacks(own: str, growth: Mapping[str, Growth], state: ControllerState) -> list[str]:
    """Return a function, what it calls, and callers that grew by a larger factor, as far as they grew."""
    above = callers_of(own, state.functions, state.unfollowed)
    factor = CONCENTRATED * growth.get(own, NOTHING).factor
    grown = heapq.nlargest(MOST_LOOKED_AT, growth, key=lambda key: (growth[key].evidence, key))
    return [
        key
        for key in grown
        if growth[key].evidence >= EVIDENCE
        and (
            key == own
            or (key in above and growth[key].factor >= factor)
            or own in callers_of(key, state.functions, state.unfollowed)
        )
    ]


def _innermost(keys: Sequence[str], growth: Mapping[str, Growth], state: ControllerState) -> str:
    """Return the function that calls none of the others; of several the one with most evidence."""
    above = {key: callers_of(key, state.functions, state.unfollowed) for key in keys}
    calls = {key: sum(key in above[other] and other not in above[key] for other in keys) for key in keys}
    return min(keys, key=lambda key: (calls[key], -growth[key].evidence, key))


def with_more_samples(cause: Cause, violation: Violation, function: FunctionState, state: ControllerState) -> Cause:
    """Return a cause with what samples find more of, if it is one that samples can tell of.

    Calls that only wait are on no more stacks. Where nothing else explains slower calls, that their callees or one of
    their callers take more CPU time does.

    Parameters
    ----------
    cause : Cause
        As decided from everything else.
    violation : Violation
        With its cause before.
    function : FunctionState
        Whose violation it is.
    state : ControllerState
    """
    usual, now = usually(function), now_of(function)
    slower = violation.direction is Direction.SLOWER and usual is not None and now.mean_ns > usual.mean_ns
    if usual is None or not slower or cause.kind not in WORKING:
        return cause
    part = 1 - usual.mean_ns / now.mean_ns
    found = steady_samples(violation.cause.more_samples, more_samples(function, violation.since_ns, part, state))
    parts = parts_of(Facts(direction=violation.direction, usual=usual, now=now, quantile=quantile_of(violation)))
    works = parts is None or parts[0] >= LEAST_WORK  # else a busier callee comes with whatever calls wait for
    blocks = parts is not None and parts[2] >= LEAST_BLOCKED
    if found is not None and cause.kind is not CauseKind.CODE and blocks and _is_new(found):
        text = f"It calls {found.function}, in which samples hardly found it before, and is blocked longer."
        return replace(cause, kind=CauseKind.CALLEE, text=text, more_samples=found)
    if found is not None and cause.kind is CauseKind.UNKNOWN and works:
        evidence = tuple(sorted(cause.evidence, key=lambda each: each.kind is not CauseKind.LOAD))
        return replace(cause, kind=CauseKind.LOAD, text=WORKS_LONGER, evidence=evidence, more_samples=found)
    return replace(cause, more_samples=found)


def _is_new(found: MoreSamples) -> bool:
    """Tell whether it is a callee, and one that was hardly called before."""
    return not found.is_caller and found.cpus >= NEW * found.usual_cpus


def renewed_by_samples(functions: Mapping[str, FunctionState], state: ControllerState) -> Mapping[str, FunctionState]:
    """Return functions whose young violations say what the burst that has just ended adds."""
    renewed = dict(functions)
    for key, function in functions.items():
        standing = tuple(
            replace(one, violation=replace(one.violation, cause=cause))
            if not one.violation.because
            and state.now_ns - one.violation.found_ns < DECIDED_NS
            and (cause := with_more_samples(one.violation.cause, one.violation, function, state)) != one.violation.cause
            else one
            for one in function.violations.standing
        )
        if any(new is not old for new, old in zip(standing, function.violations.standing, strict=True)):
            renewed[key] = replace(function, violations=replace(function.violations, standing=standing))
    return renewed


def steady_samples(before: MoreSamples | None, now: MoreSamples | None) -> MoreSamples | None:
    """Return what samples find more of as it was told before, where only its numbers changed, and little."""
    if before is None or now is None:
        return now or before
    same = (before.function, before.module, before.is_caller) == (now.function, now.module, now.is_caller)
    return before if same and 1 / STEADY < now.cpus / max(before.cpus, 1e-9) < STEADY else now
