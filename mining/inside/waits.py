"""Where the calls of each class waited, and for what, as shares. Pure.

The waits were followed in phases, in some of the calls: these are estimates from samples, unlike the times of callees.
A wait counts for the class in which its call was when it ended. So of a call that waits several times the first waits
may count for a lower class than the call.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from specmine.model.buckets import BUCKETS
from specmine.model.call_path import Frame
from specmine.model.inside.waits import Wait, WaitKind, Waits

_C_LIBRARY = re.compile(r"(libc|libpthread|libc\.musl|ld-linux|ld-musl|ld)[-.\d]")
"""Begins of the names of modules that only pass a wait on to the kernel."""
LEAST_WOKEN = 0.1
"""Who ended less of the time at a place is not told: an interrupt may come during a call that can end such waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WakerPart:
    """Who ended some waits."""

    place: Frame | None
    """The innermost function of its stack that is not of the C library; None: another program."""
    share: float
    """Of the time of these waits."""
    frames: tuple[Frame, ...] = ()
    """Its stack, where most of that was: innermost first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitPart:
    """The waits of one kind at one place, in the calls of a class."""

    kind: WaitKind
    call: str
    """Name of the system call; '' without one, or for one that is not known."""
    place: Frame | None
    """The innermost function that is not of the C library; None: the function whose calls these are."""
    within: Frame | None
    """The timed function nearest to the wait; None: likewise."""
    share: float
    """Of the time that the calls of the class waited."""
    waits: float
    """Number in one call of the class."""
    mean_ns: float
    """Time in one call of the class."""
    frames: tuple[Frame, ...] = ()
    """Where most of that was: innermost first."""
    wakers: tuple[WakerPart, ...] = ()
    """By whom the threads were woken, as far as that is known; the largest share first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassWaits:
    """One class."""

    calls: int
    """Calls that ended while waits were followed."""
    parts: tuple[WaitPart, ...] = ()
    """The largest first."""

    @property
    def mean_ns(self) -> float:
        """Time that one call waited."""
        return sum(part.mean_ns for part in self.parts)


def waits_of(known: Waits, edges: Sequence[int] = ()) -> tuple[ClassWaits, ...]:
    """Divide the waits of each class by kind and place.

    Parameters
    ----------
    known : Waits
        What was followed.
    edges : sequence of int
        First bucket of each class but the lowest.
    """
    return tuple(_class(known, low, high) for low, high in pairwise([0, *edges, BUCKETS]))


def place_of(wait: Wait) -> Frame | None:
    """Return the innermost function of a wait that is not of the C library; None: the function itself."""
    return _place(wait.frames)


def is_of_c_library(frame: Frame) -> bool:
    """Tell whether a function only passes a wait on to the kernel."""
    return bool(_C_LIBRARY.match(frame.module))


def _place(frames: Sequence[Frame]) -> Frame | None:
    return next((frame for frame in frames if not is_of_c_library(frame)), None)


def _class(known: Waits, low: int, high: int) -> ClassWaits:
    number = known.calls.part(low, high).total
    groups: dict[tuple[str, str, Frame | None, Frame | None], list[tuple[int, int, Wait]]] = {}
    for wait in known.waits:
        time, count = wait.blocked_ns.part(low, high).total, wait.waits.part(low, high).total
        if time and number:
            groups.setdefault((wait.kind.value, wait.call, place_of(wait), wait.within), []).append((time, count, wait))
    whole = sum(time for group in groups.values() for time, _, _ in group)
    parts = [
        WaitPart(
            kind=group[0][2].kind,
            call=call,
            place=place,
            within=within,
            share=sum(time for time, _, _ in group) / whole,
            waits=sum(count for _, count, _ in group) / number,
            mean_ns=sum(time for time, _, _ in group) / number,
            frames=max(group, key=lambda each: each[0])[2].frames,
            wakers=_wakers([wait for _, _, wait in group], low, high, sum(time for time, _, _ in group)),
        )
        for (_, call, place, within), group in groups.items()
    ]
    parts.sort(key=lambda part: (-part.share, part.kind.value, part.call, part.place or Frame("", "")))
    return ClassWaits(calls=number, parts=tuple(parts))


def _wakers(waits: Sequence[Wait], low: int, high: int, whole: int) -> tuple[WakerPart, ...]:
    """Return who ended waits of so many ns, by place."""
    groups: dict[Frame | None, list[tuple[int, tuple[Frame, ...]]]] = {}
    for waker in (each for wait in waits for each in wait.wakers):
        time = waker.blocked_ns.part(low, high).total
        if time:
            place = _place(waker.frames) or next(iter(waker.frames), None)
            groups.setdefault(place, []).append((time, waker.frames))
    parts = [
        WakerPart(place=place, share=sum(time for time, _ in group) / whole, frames=max(group)[1])
        for place, group in groups.items()
        if sum(time for time, _ in group) >= LEAST_WOKEN * whole
    ]
    return tuple(sorted(parts, key=lambda part: (-part.share, part.place or Frame("", ""))))
