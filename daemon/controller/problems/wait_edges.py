"""Which violated functions wait for which: calls of one, in other threads, end the waits of another. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.violations.evidence import CALLEE
from specmine.daemon.controller.violations.growth import more_ns, wait_growth

from .violation_facts import followed_since, now_of, usually


def waits_among(
    opened: Mapping[str, FunctionState], called: Mapping[str, Collection[str]]
) -> dict[tuple[str, str], float]:
    """Return the pairs (who waits, who ends the waits), and which share of the first one's difference that is.

    Parameters
    ----------
    opened : mapping of str to FunctionState
        Functions with an open violation.
    called : mapping of str to collection of str
        Whom each of them calls, directly or not: a thread's loop that ends waits calls the very functions that wait.

    Notes
    -----
    Of the stack that ended a wait the innermost function with a violation counts. Two functions that wait for each
    other explain neither.
    """
    found = {}
    for key, function in opened.items():
        for other, part in _ended(key, function, opened).items():
            if part >= CALLEE and key not in called.get(other, ()):
                found[key, other] = part
    return {pair: part for pair, part in found.items() if pair[::-1] not in found}


def _ended(key: str, function: FunctionState, opened: Mapping[str, FunctionState]) -> dict[str, float]:
    """Return which share of a function's difference is waits that calls of others ended."""
    first = min(function.violations.open, key=lambda one: one.since_ns)
    usual, followed = usually(function), followed_since(first, function)
    if usual is None or followed is None:
        return {}
    now = now_of(function)
    if wait_growth(usual, now, followed) is None:
        return {}
    before, after = usual.parts_ns, now.parts_ns
    if before is None or after is None:
        return {}
    named = {each.function.frame: other for other, each in opened.items() if other != key}
    times = defaultdict[str, int](int)
    for wait in followed.waits:
        for waker in wait.wakers:
            other = next((named[frame] for frame in waker.frames if frame in named), None)
            if other is not None:
                times[other] += waker.blocked_ns.total
    whole = sum(wait.blocked_ns.total for wait in followed.waits)
    blocked = min(1.0, (after[2] - before[2]) / more_ns(usual, now))
    return {other: blocked * time / whole for other, time in times.items()}
