"""From entries and exits of functions to calls with their paths: one stack for each thread."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from specmine.model.call_path import Frame

from .records import Calls, Names


@dataclass(slots=True)
class _Open:
    """A call that has begun."""

    frame: Frame
    path: int
    start_ns: int
    inner: bool
    """Inside another call of the same function."""


@dataclass(slots=True)
class _Thread:
    frames: list[Frame] = field(default_factory=list)
    calls: list[_Open] = field(default_factory=list)
    entered: dict[tuple[int, Frame], int] = field(default_factory=dict)
    """Path by the caller's and the function: most calls repeat one."""


class CallStacks:
    """The calls that are open in each thread of a recording.

    The outermost call of a recursive function is the duration, inner ones are counted.
    """

    def __init__(self, names: Names) -> None:
        """Start with no thread."""
        self._names = names
        self._threads: dict[Hashable, _Thread] = {}
        self.timed = True
        """False if the recording has no clock: calls then have no time."""
        self.unmatched = 0
        """Exits of functions whose entry the recording does not hold."""

    def enter(self, thread: Hashable, frame: Frame, time_ns: int = 0, *, rooted: bool = True) -> None:
        """Open a call; not ``rooted``: if none is open in this thread, how it was called is unknown."""
        own = self._threads.get(thread)
        if own is None:
            own = self._threads[thread] = _Thread()
        key = (own.calls[-1].path if own.calls else -1, frame)
        path = own.entered.get(key)
        if path is None:
            path = self._names.path(frame, tuple(own.frames), complete=rooted or bool(own.frames))
            own.entered[key] = path
        own.calls.append(_Open(frame, path, time_ns, frame in own.frames))
        own.frames.append(frame)

    def leave(
        self, thread: Hashable, frame: Frame | None, calls: Calls, time_ns: int, duration_ns: float | None = None
    ) -> None:
        """Close a call and add it to ``calls``.

        Parameters
        ----------
        thread : hashable
        frame : Frame, optional
            Which function ends; calls above it whose exit was lost are dropped. None: the innermost.
        calls : Calls
        time_ns : int
            Now.
        duration_ns : float, optional
            How long it took, if the recording says so; else since its entry.
        """
        own = self._threads.get(thread)
        if own is None or not own.calls or (frame is not None and frame not in own.frames):
            self.unmatched += 1
            return
        while frame is not None and own.calls[-1].frame != frame:
            self._drop(own)
        call = own.calls.pop()
        own.frames.pop()
        if call.inner:
            self._names.inner[self._names.function_of[call.path]] += 1
        else:
            took = duration_ns if duration_ns is not None else max(0, time_ns - call.start_ns)
            calls.add(call.path, took, self._names.lifetime(""), time_ns if self.timed else None)

    def close(self) -> None:
        """Count calls that are still open as calls without an end."""
        for own in self._threads.values():
            while own.calls:
                self._drop(own)

    def _drop(self, own: _Thread) -> None:
        call = own.calls.pop()
        own.frames.pop()
        if not call.inner:
            self._names.censored[self._names.function_of[call.path]] += 1
