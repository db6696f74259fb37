"""What every reader speaks: chunks of recorded calls, the names in them, and the lines that cannot be read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specmine.model.call_path import CallPath, Frame
from specmine.model.errors import InputError

ALL = "all"
"""Function of calls that name none."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chunk:
    """Some recorded calls in the order of the file; all arrays of one length."""

    paths: NDArray[np.int32]
    """Numbers of call paths in ``Names``; a path says of which function the call is."""
    durations_ns: NDArray[np.float64]
    """Finite, at least 0."""
    lifetimes: NDArray[np.int32]
    """Numbers of lifetimes in ``Names``."""
    times_ns: NDArray[np.int64] | None = None
    """When each call ended, on any one clock; None if the file does not say."""


class Names:
    """Functions, call paths and lifetimes by the numbers that stand for them, in the order of their appearance."""

    def __init__(self) -> None:
        """Start with no name."""
        self.functions: list[Frame] = []
        self.paths: list[CallPath] = []
        self.function_of: list[int] = []
        """Number of the function of each path."""
        self.lifetimes: list[str] = []
        self.origins: list[tuple[str, str]] = []
        """Build and host of each lifetime, '' where the file does not say."""
        self.inner: Counter[int] = Counter()
        """Calls by function inside another call of the same function: counted, not durations."""
        self.censored: Counter[int] = Counter()
        """Calls by function whose end is not in the recording."""
        self.unentered: Counter[int] = Counter()
        """Ends by function whose calls' beginning is not in the recording."""
        self.rings: Counter[int] = Counter()
        """Spans by function that are their own ancestors: what called them is unknown."""
        self._functions: dict[Frame, int] = {}
        self._paths: dict[tuple[int, CallPath], int] = {}
        self._lifetimes: dict[tuple[str, str, str], int] = {}

    def function(self, frame: Frame) -> int:
        """Return the number of a function."""
        number = self._functions.setdefault(frame, len(self.functions))
        if number == len(self.functions):
            self.functions.append(frame)
        return number

    def path(self, function: Frame, callers: tuple[Frame, ...], *, complete: bool = True) -> int:
        """Return the number of the call path that leads over ``callers``, outermost first, to a function.

        No callers and not ``complete``: how the function was called is unknown.
        """
        path = CallPath((*callers, function), complete)
        owner = self.function(function)
        number = self._paths.setdefault((owner, path), len(self.paths))
        if number == len(self.paths):
            self.paths.append(path)
            self.function_of.append(owner)
        return number

    def lifetime(self, name: str, build: str = "", host: str = "") -> int:
        """Return the number of a lifetime."""
        number = self._lifetimes.setdefault((name, build, host), len(self.lifetimes))
        if number == len(self.lifetimes):
            self.lifetimes.append(name)
            self.origins.append((build, host))
        return number

    def path_of_text(self, function: str, path: str) -> int:
        """Return the number of a path written as in CSV: frames joined by ``;``, outermost first.

        Parameters
        ----------
        function : str
            ``all`` if it is empty.
        path : str
            ``\\;`` is a semicolon inside a name. The function is appended where it is not the last frame; an
            empty path is unknown.
        """
        own = Frame(function or ALL, "")
        names = _split(path)
        if not names:
            return self.path(own, (), complete=False)
        callers = names[:-1] if names[-1] == own.name else names
        return self.path(own, tuple(Frame(name, "") for name in callers))


class Faults:
    """Lines that cannot be read: the first is an error, unless they are to be skipped and counted."""

    def __init__(self, source: str, *, skip: bool = False) -> None:
        """Remember what the file is called and whether bad lines may be skipped."""
        self.source = source
        self.skip = skip
        self.skipped = 0
        self.first: tuple[int, str] | None = None
        """Line and complaint of the first one skipped."""

    def bad(self, line: int, why: str) -> None:
        """Take a bad line.

        Raises
        ------
        InputError
            With the number of the line, unless bad lines are skipped.
        """
        if not self.skip:
            raise InputError(f"{self.source}: line {line}: {why}", remedy="mend it, or leave such out with --skip-bad")
        self.skipped += 1
        self.first = self.first or (line, why)


class Calls:
    """Calls gathered one by one until there are enough for a chunk: for formats that are read line by line."""

    SIZE = 1 << 16

    def __init__(self) -> None:
        """Start empty."""
        self._paths: list[int] = []
        self._durations: list[float] = []
        self._lifetimes: list[int] = []
        self._times: list[int] = []

    def add(self, path: int, duration_ns: float, lifetime: int, time_ns: int | None = None) -> None:
        """Add a call; either all have a time or none."""
        self._paths.append(path)
        self._durations.append(duration_ns)
        self._lifetimes.append(lifetime)
        if time_ns is not None:
            self._times.append(time_ns)

    @property
    def full(self) -> bool:
        """Return whether it is time to take a chunk."""
        return len(self._paths) >= self.SIZE

    def take(self) -> Chunk:
        """Return what was gathered and start anew."""
        timed = len(self._times) == len(self._paths)
        chunk = Chunk(
            paths=np.array(self._paths, dtype=np.int32),
            durations_ns=np.array(self._durations, dtype=np.float64),
            lifetimes=np.array(self._lifetimes, dtype=np.int32),
            times_ns=np.array(self._times, dtype=np.int64) if timed else None,
        )
        self.__init__()  # type: ignore[misc]
        return chunk


def _split(path: str) -> list[str]:
    if "\\;" in path:
        path = path.replace("\\;", "\0")
        return [name.replace("\0", ";") for name in path.split(";") if name]
    return [name for name in path.split(";") if name]
