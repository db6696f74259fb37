"""Recorded calls put by until all are there: how a recording is cut depends on its end.

A call becomes a path, a bucket and, where there are any, a lifetime and a time: 4 to 18 bytes in a temporary
file, so memory holds one block of them however many there are.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specmine.model.buckets import bucket_of

from .records import Chunk

_IN_MEMORY = 1 << 24
_LONGEST_NS = float(1 << 41)
"""More than the last bucket begins with."""
_BLOCK = 1 << 19


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Block:
    """Some calls in the order of the file; all arrays of one length."""

    paths: NDArray[np.int64]
    buckets: NDArray[np.int64]
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
            buckets = bucket_of(np.minimum(chunk.durations_ns[some], _LONGEST_NS).astype(np.int64))
            self._write(chunk.paths[some], buckets, chunk.lifetimes[some], times)

    def blocks(self) -> Iterator[Block]:
        """Yield all calls in the order of the file."""
        self._file.seek(0)
        for length, columns in self._parts:
            found = {
                name: np.frombuffer(self._file.read(np.dtype(kind).itemsize * length), dtype=kind).astype(np.int64)
                for name, kind in columns
            }
            yield Block(
                paths=found["paths"],
                buckets=found["buckets"],
                lifetimes=found.get("lifetimes", np.zeros(length, dtype=np.int64)),
                times_ns=found.get("times") if self.timed else None,
            )

    def close(self) -> None:
        """Forget everything."""
        self._file.close()

    def _write(
        self,
        paths: NDArray[np.int32],
        buckets: NDArray[np.int64],
        lifetimes: NDArray[np.int32],
        times: NDArray[np.int64] | None,
    ) -> None:
        columns = {"paths": paths.astype(_narrow(paths)), "buckets": buckets.astype("u2")}
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


def _narrow(numbers: NDArray[np.int32]) -> str:
    return "u2" if len(numbers) == 0 or int(numbers.max()) < 1 << 16 else "u4"
