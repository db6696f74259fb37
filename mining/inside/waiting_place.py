"""Where most of the waiting of some calls is: the innermost function that has nearly all of it. Pure.

Calls that wait for a lock and calls that wait for the disk while they hold it wait in one function. So what is named is
not the place that has most, if a caller of it has much more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from specmine.model.call_path import Frame
from specmine.model.inside.waits import Wait, WaitKind, Waits

from .waits import is_of_c_library, place_of

NEARLY_ALL = 0.8
"""Share of the waiting time that a function has to have."""
MUCH = 0.1
"""What has less of it is not told."""
MOSTLY = 0.5
"""Who ended so much of the waiting time is named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacePart:
    """What calls wait for at one place."""

    kind: WaitKind
    call: str
    """Name of the system call; '' without one, or for one that is not known."""
    place: Frame | None
    """The innermost function that is not of the C library; None: the function whose calls these are."""
    share: float
    """Of the time that calls wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingPlace:
    """The innermost function in which calls wait nearly all of the time that they wait."""

    place: Frame | None
    """None: only the function whose calls these are."""
    share: float
    """Of the time that calls wait."""
    mean_ns: float
    """Time that one call waits, there or elsewhere."""
    callers: tuple[Frame, ...]
    """Between the place and the function whose calls these are, innermost first."""
    parts: tuple[PlacePart, ...]
    """The largest first."""
    waker: Frame | None
    """Who ended most of the largest part: the innermost function that is not of the C library."""


def where_waited(known: Waits) -> WaitingPlace | None:
    """Return where calls wait; None if no call, or no wait, was followed.

    Parameters
    ----------
    known : Waits
        What was followed.
    """
    waits = [wait for wait in known.waits if wait.blocked_ns.total]
    whole = sum(wait.blocked_ns.total for wait in waits)
    if not known.calls.total or not whole:
        return None
    parts, largest = _parts(waits, whole)
    within = defaultdict[Frame, int](int)
    for wait in waits:
        for frame in set(wait.frames):
            within[frame] += wait.blocked_ns.total
    # outwards along the stack that has most: a caller has what its callees have
    stack = max(largest, key=lambda wait: wait.blocked_ns.total).frames
    at = next(
        (at for at, frame in enumerate(stack) if not is_of_c_library(frame) and within[frame] >= NEARLY_ALL * whole),
        None,
    )
    return WaitingPlace(
        place=None if at is None else stack[at],
        share=1.0 if at is None else within[stack[at]] / whole,
        mean_ns=whole / known.calls.total,
        callers=() if at is None else stack[at + 1 :],
        parts=tuple(part for part in parts if part.share >= MUCH) or parts[:1],
        waker=_waker(largest),
    )


def _parts(waits: Iterable[Wait], whole: int) -> tuple[tuple[PlacePart, ...], list[Wait]]:
    """Return what is waited for, and the waits of the largest part: whichever function around them was timed."""
    groups = defaultdict[tuple[WaitKind, str, Frame | None], list[Wait]](list)
    for wait in waits:
        groups[wait.kind, wait.call, place_of(wait)].append(wait)
    found = sorted(
        (
            (PlacePart(kind=kind, call=call, place=place, share=_time(group) / whole), group)
            for (kind, call, place), group in groups.items()
        ),
        key=lambda each: (-each[0].share, each[0].kind.value, each[0].call, each[0].place or Frame("", "")),
    )
    return tuple(part for part, _ in found), found[0][1]


def _waker(waits: Sequence[Wait]) -> Frame | None:
    """Return who ended most of some waits; None: another program, nobody, or none that ended so much."""
    times = defaultdict[Frame, int](int)
    for waker in (each for wait in waits for each in wait.wakers):
        place = next((frame for frame in waker.frames if not is_of_c_library(frame)), None)
        if place is not None:
            times[place] += waker.blocked_ns.total
    most = max(times, key=lambda each: (times[each], each), default=None)
    return most if most is not None and times[most] >= MOSTLY * _time(waits) else None


def _time(waits: Iterable[Wait]) -> int:
    return sum(wait.blocked_ns.total for wait in waits)
