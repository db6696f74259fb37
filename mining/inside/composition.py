"""The time of each class, divided over timed callees and the rest, which is the function's own. Pure.

All is counted in the very calls of the class, so the parts add up to the whole: this is no estimate from averages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from specmine.model.buckets import BUCKETS
from specmine.model.call_path import Frame
from specmine.model.histogram import Histogram
from specmine.model.inside.parts import OTHERS, CalleeTime, Inside
from specmine.model.inside.sums import pooled_inside

ENOUGH_CALLS = 100
"""Calls during which more callees were timed are preferred from this number on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalleePart:
    """What one callee took of the calls of a class."""

    callee: Frame
    """``OTHERS`` for callees that are not told apart."""
    share: float
    """Of the time of the class."""
    waiting: float = 0.0
    """Share of the callee's own time in these calls: runnable without a CPU, ..."""
    blocked: float = 0.0
    """... and waiting for anything else."""
    calls: float = 0.0
    """Calls of it in one call of the class."""
    mean_ns: float = 0.0
    """Time of it in one call of the class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassInside:
    """One class: its callees, the largest share first, and the rest."""

    calls: int = 0
    mean_ns: float = 0.0
    callees: tuple[CalleePart, ...] = ()
    own: float = 0.0
    """Share of the time that no timed callee took: the function's own code, and what it calls that is not timed."""
    own_waiting: float = 0.0
    """Share of the time of the class that is such time, runnable without a CPU."""
    own_blocked: float = 0.0
    """The same, waiting for anything else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """All classes of a function."""

    classes: tuple[ClassInside, ...]
    timed: tuple[Frame, ...]
    """Callees that were timed during all these calls."""
    partly: tuple[Frame, ...] = ()
    """Callees that were not: their time is in ``own``."""
    split: bool = False
    """It is known what of the time was waiting and blocked."""


def best_known(parts: Iterable[Inside]) -> Inside | None:
    """Return the calls during which most callees were timed, None if there are none.

    Calls with other callees timed are left out, since what those took would pass for the function's own time.
    """
    pooled = [part for part in pooled_inside(parts) if part.calls.total and (part.timed or part.partly)]
    best = max(
        pooled,
        key=lambda part: (part.calls.total >= ENOUGH_CALLS, len(part.timed), -len(part.partly), part.calls.total),
        default=None,
    )
    return None if best is None else _of_timed(best)


def _of_timed(part: Inside) -> Inside:
    """Return a part without the callees that were not timed all the while; what is known of their time is own time."""
    untold = [one for each in part.sets for one in each.callees if one.callee in part.partly]
    if not untold:
        return part
    sets = (
        replace(each, callees=tuple(one for one in each.callees if one.callee not in part.partly)) for each in part.sets
    )
    return replace(
        part,
        sets=tuple(each for each in sets if each.callees or each.blocked),
        waiting_ns=Histogram.sum((part.waiting_ns, *(one.waiting_ns for one in untold))),
        blocked_ns=Histogram.sum((part.blocked_ns, *(one.blocked_ns for one in untold))),
    )


def composition(known: Inside, edges: Sequence[int], bias_ns: float = 0.0) -> Composition:
    """Divide the time of each class.

    Parameters
    ----------
    known : Inside
        Calls with what was timed inside them.
    edges : sequence of int
        First bucket of each class but the lowest.
    bias_ns : float
        What the function's own probes added to each duration.

    Returns
    -------
    Composition
        One entry per class; shares of a class with calls add up to 1.
    """
    return Composition(
        classes=tuple(_class(known, low, high, bias_ns) for low, high in pairwise([0, *edges, BUCKETS])),
        timed=known.timed,
        partly=known.partly,
        split=known.split,
    )


def by_callee(known: Inside) -> dict[Frame, list[CalleeTime]]:
    """Return the sums of each callee, over all sets of callees that it is in."""
    found: dict[Frame, list[CalleeTime]] = {}
    for each in known.sets:
        for one in each.callees:
            found.setdefault(one.callee, []).append(one)
    return dict(sorted(found.items()))


def _class(known: Inside, low: int, high: int, bias_ns: float) -> ClassInside:
    calls = known.calls.part(low, high)
    number = calls.total
    if not number:
        return ClassInside()

    def within(histograms: Iterable[Histogram]) -> int:
        return sum(each.part(low, high).total for each in histograms)

    sums = {
        callee: (
            within(one.time_ns for one in times),
            within(one.calls for one in times),
            within(one.waiting_ns for one in times),
            within(one.blocked_ns for one in times),
        )
        for callee, times in by_callee(known).items()
    }
    inner = sum(time for time, *_ in sums.values())
    whole = max(calls.time_ns() - bias_ns * number, float(inner))
    if whole <= 0:
        return ClassInside(calls=number)
    own = whole - inner
    waiting = min(own, known.waiting_ns.part(low, high).total)
    blocked = min(own - waiting, known.blocked_ns.part(low, high).total)
    made = [
        CalleePart(
            callee=callee,
            share=time / whole,
            waiting=min(1.0, waited / time) if time else 0.0,
            blocked=min(1.0, stood / time) if time else 0.0,
            calls=called / number,
            mean_ns=time / number,
        )
        for callee, (time, called, waited, stood) in sums.items()
        if called
    ]
    made.sort(key=lambda part: (part.callee == OTHERS, -part.share, part.callee))
    return ClassInside(
        calls=number,
        mean_ns=whole / number,
        callees=tuple(made),
        own=own / whole,
        own_waiting=waiting / whole,
        own_blocked=blocked / whole,
    )
