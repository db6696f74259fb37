"""Where timed calls waited, and for what: of phases in which the waits of one function were followed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from specmine.model.call_path import Frame
from specmine.model.histogram import Histogram


class WaitKind(StrEnum):
    """What a thread waits for."""

    FUTEX = "futex"
    """A lock, a condition or another thread, by the futex system calls."""
    FILE = "file"
    """A file, a folder or a disk."""
    SOCKET = "socket"
    PIPE = "pipe"
    POLL = "poll"
    """Any of several descriptors: poll, select, epoll."""
    SLEEP = "sleep"
    """A time."""
    FAULT = "fault"
    """A page of memory: no system call."""
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Waker:
    """Who ended waits: the system call that it was in can end waits of this kind."""

    frames: tuple[Frame, ...] = ()
    """Its stack: innermost first; () for another program."""
    blocked_ns: Histogram
    """How long the waits were that it ended, as in ``Wait``."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Wait:
    """Waits of one kind at one place."""

    kind: WaitKind
    call: str = ""
    """Name of the system call; '' without one, or for one that is not known."""
    frames: tuple[Frame, ...] = ()
    """Where: innermost first, up to the function, without it; () where the function itself waits."""
    within: Frame | None = None
    """The timed function nearest to the wait; None: it is the function itself."""
    waits: Histogram
    """Their number, by how long the call had taken when the wait ended."""
    blocked_ns: Histogram
    """How long they were, likewise. The time for which a thread was runnable is no part of it."""
    wakers: tuple[Waker, ...] = ()
    """By whom the threads were woken, as far as that is known; an interrupt is nobody."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Waits:
    """The waits within the calls of a function, as followed for some time."""

    function: str
    """Key of the function."""
    calls: Histogram
    """Durations of its timed calls that ended meanwhile."""
    followed_ns: int
    """For how long."""
    end_ns: int
    """When that ended, CLOCK_MONOTONIC."""
    waits: tuple[Wait, ...] = ()


def pooled_waits(parts: Iterable[Waits]) -> Waits | None:
    """Add up what was followed of one function; None if nothing was."""
    every = tuple(parts)
    if not every:
        return None
    same: dict[tuple[object, ...], list[Wait]] = {}
    for part in every:
        for one in part.waits:
            same.setdefault((one.kind, one.call, one.frames, one.within or Frame("", "")), []).append(one)
    return Waits(
        function=every[-1].function,
        calls=Histogram.sum(part.calls for part in every),
        followed_ns=sum(part.followed_ns for part in every),
        end_ns=max(part.end_ns for part in every),
        waits=tuple(
            replace(
                group[0],
                waits=Histogram.sum(one.waits for one in group),
                blocked_ns=Histogram.sum(one.blocked_ns for one in group),
                wakers=pooled_wakers(waker for one in group for waker in one.wakers),
            )
            for _, group in sorted(same.items(), key=lambda item: item[0])
        ),
    )


def pooled_wakers(parts: Iterable[Waker]) -> tuple[Waker, ...]:
    """Add up those of the same stack."""
    same: dict[tuple[Frame, ...], list[Histogram]] = {}
    for part in parts:
        same.setdefault(part.frames, []).append(part.blocked_ns)
    return tuple(Waker(frames=frames, blocked_ns=Histogram.sum(each)) for frames, each in sorted(same.items()))
