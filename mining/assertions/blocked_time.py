"""Whether calls that were blocked are slower for that: waiting must have the difference, not only go with it.

A call that is slow for another reason may be blocked more often too. And a call counts as blocked by a share of its
duration, so that of two calls that are blocked equally long only the short one may count.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from specmine.mining.inside.call_kinds import KindWindow

from .expression import Formula, Literal, named_edges

_LEAST = 0.5  # of what blocked calls take more than others, so much they were blocked, at least


def blocked_enough(formula: Formula, windows: Iterable[KindWindow], shared: Collection[str]) -> bool:
    """Tell whether the calls that a formula calls blocked take longer than others, and by that.

    Parameters
    ----------
    formula : Formula
    windows : iterable of KindWindow
        All calls from which it was found.
    shared : collection of str
        Names that the formula shows with their module.
    """
    windows = tuple(windows)
    literals = {lit for conj in formula for lit in conj if lit.blocked}
    return all(_is_reason(literal, windows, shared) for literal in literals)


def _is_reason(literal: Literal, windows: Iterable[KindWindow], shared: Collection[str]) -> bool:
    calls, time_ns, blocked_ns = [0, 0], [0.0, 0.0], [0.0, 0.0]
    for window in windows:
        for kind, histogram in window.calls.items():
            which = (literal.caller, literal.callee) in named_edges(kind, shared)
            calls[which] += histogram.total
            time_ns[which] += histogram.time_ns()
            blocked_ns[which] += window.blocked_ns.get(kind, 0)
    if not all(calls):
        return False
    more = time_ns[True] / calls[True] - time_ns[False] / calls[False]
    stood = blocked_ns[True] / calls[True] - blocked_ns[False] / calls[False]
    return more > 0 and stood >= _LEAST * more
