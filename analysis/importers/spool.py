"""Recorded calls put by until all are there: how a recording is cut depends on its end.

A call becomes a path, a duration and, where there are any, a lifetime and a time: 6 to 24 bytes in a temporary
file, so memory holds one block of them however many there are.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .records import Chunk

_IN_MEMORY = 1 << 24
_LONGEST_NS = float(1 << 41)
"""More than the last bucket begins with."""
_BLOCK = 1 << 19


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Block:
    """Some calls in the order of the file; all arrays of one length."""

    first: int
    """Number of the first call in the file."""
    paths: NDArray[np.int64]
    durations_ns: NDArray[np.float64]
    lifetimes: NDArray[np.int64]
    times_ns: NDArray[np.int64] | None


class Spool:
    """The calls of a recording, to be read as often as needed."""

    def __init__(self) -> None:
        """Start empty."""
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115  (closed by close)
        self._parts: list[tuple[int, list[tuple[str, str]]]] = []
        self.records = 0
        self.timed = True
        """True if every call has a time."""

    def put(self, chunk: Chunk) -> None:
        """Append calls."""
        for start in range(0, len(chunk.paths), _BLOCK):
            some = slice(start, start + _BLOCK)
            times = None if chunk.times_ns is None else chunk.times_ns[some]
            durations = np.minimum(chunk.durations_ns[some], _LONGEST_NS)
            self._write(chunk.paths[some], durations, chunk.lifetimes[some], times)

    def blocks(self) -> Iterator[Block]:
        """Yield all calls in the order of the file."""
        self._file.seek(0)
        first = 0
        for length, columns in self._parts:
            found = {
                name: np.frombuffer(self._file.read(np.dtype(kind).itemsize * length), dtype=kind)
                for name, kind in columns
            }
            whole = {name: column.astype(np.int64) for name, column in found.items() if name != "durations"}
            yield Block(
                first=first,
                paths=whole["paths"],
                durations_ns=found["durations"].astype(np.float64),
                lifetimes=whole.get("lifetimes", np.zeros(length, dtype=np.int64)),
                times_ns=whole.get("times") if self.timed else None,
            )
            first += length

    def close(self) -> None:
        """Forget everything."""
        self._file.close()

    def _write(
        self,
        paths: NDArray[np.int32],
        durations: NDArray[np.float64],
        lifetimes: NDArray[np.int32],
        times: NDArray[np.int64] | None,
    ) -> None:
        columns = {"paths": paths.astype(_narrow(paths)), "durations": _narrow_durations(durations)}
        if lifetimes.any():
            columns["lifetimes"] = lifetimes.astype(_narrow(lifetimes))
        if times is None:
            self.timed = False
        else:
            columns["times"] = times.astype("i8")
        for column in columns.values():
            self._file.write(column.tobytes())
        self._parts.append((len(paths), [(name, column.dtype.str) for name, column in columns.items()]))
        self.records += len(paths)


def _narrow_durations(durations: NDArray[np.float64]) -> NDArray[Any]:
    """Return durations as whole ns below 4 s where they are."""
    narrow = np.minimum(durations, 4e9).astype("u4")
    return narrow if bool((narrow == durations).all()) else durations


def _narrow(numbers: NDArray[np.int32]) -> str:
    return "u2" if len(numbers) == 0 or int(numbers.max()) < 1 << 16 else "u4"
