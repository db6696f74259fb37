"""Call paths: the frames from a thread's start to a function, and their edges."""

from __future__ import annotations

from typing import NamedTuple, Protocol, Self


class Frame(NamedTuple):  # not a dataclass: paths are hashed all the time, and a tuple's hash is ten times as fast
    """One frame of a call path, as it is shown: function name and base name of the mapped file."""

    name: str
    module: str


GAP = Frame("", "")
"""Stands for frames that are left out of a path; no edge leads over it."""
NEAR = 4
"""The function and three callers: who asks for its calls. Farther out is how the thread or process came to be."""


class CallPath(NamedTuple):
    """The frames from the thread's start to the function, outermost first, the function last.

    ``complete`` is False when the stack walk did not reach the thread's start. Such a path is counted and marked; it
    never distinguishes behaviours.
    """

    frames: tuple[Frame, ...]
    complete: bool = True

    @property
    def near(self) -> tuple[Frame, ...]:
        """The function with its nearest callers, which a program forked anew has as before."""
        return self.frames[-NEAR:]

    def edges(self) -> frozenset[tuple[Frame, Frame]]:
        """Return the caller -> callee pairs; repeated ones collapse."""
        return frozenset(
            (caller, callee)
            for caller, callee in zip(self.frames[:-1], self.frames[1:], strict=True)
            if caller is not GAP and callee is not GAP
        )

    def distances(self) -> dict[tuple[Frame, Frame], int]:
        """Return how far each edge is from the function, in edges; of repeated ones the nearest."""
        distance: dict[tuple[Frame, Frame], int] = {}
        last = len(self.frames) - 1
        for i, edge in enumerate(zip(self.frames[:-1], self.frames[1:], strict=True)):
            if not any(frame is GAP for frame in edge):
                distance[edge] = last - (i + 1)  # later ones are nearer
        return distance


class Distinguished(Protocol):
    """What expressions distinguish: call paths, or kinds of calls by what happened inside."""

    @property
    def frames(self) -> tuple[Frame, ...]:
        """The frames that it names."""
        ...

    @property
    def complete(self) -> bool:
        """False: not all of its edges are known."""
        ...

    def edges(self) -> frozenset[tuple[Frame, Frame]]:
        """Return its caller -> callee pairs."""
        ...

    def distances(self) -> dict[tuple[Frame, Frame], int]:
        """Return how far each edge is from the function."""
        ...

    def __lt__(self, other: Self, /) -> bool:
        """Return whether it comes first."""
        ...
