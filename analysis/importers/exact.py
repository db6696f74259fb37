"""Recorded durations as exact ones: each is put somewhere within what it stands for, by the clock of its function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from specmine.mining.borders.raw_resolution import FINE, Resolution, resolution_of, spread

from .spool import Block, Spool

_SAMPLE = 1 << 14
"""Durations of a function by which its resolution is judged ..."""
_ALL_SAMPLES = 1 << 22
"""... and of all functions together, 32 MiB."""
_LEAST = 1 << 8
_EVEN = 0.6180339887498949
"""Multiples of the golden ratio lie evenly in [0, 1), however many are taken."""

Numbers = NDArray[np.int64]


class ExactDurations:
    """The resolution of every function's durations, and what a duration becomes by it."""

    def __init__(self, resolutions: Sequence[Resolution]) -> None:
        """Take the resolution of each function."""
        self.resolutions = tuple(resolutions)
        self._coarse = np.array([not each.is_fine for each in resolutions], dtype=bool)

    def of(self, block: Block, functions: Numbers) -> NDArray[np.float64]:
        """Return the durations of a block, whose calls are of these functions."""
        durations = block.durations_ns
        coarse = np.flatnonzero(self._coarse[functions])
        if not len(coarse):
            return durations
        durations = durations.copy()
        for function, calls in _by_number(functions[coarse]):
            own = coarse[calls]
            places = np.modf((block.first + own) * _EVEN)[0]
            durations[own] = spread(durations[own], self.resolutions[function], places)
        return durations


def exact_durations(spool: Spool, owner: Numbers, calls: Numbers, *, above_ns: float) -> ExactDurations:
    """Return the resolution of each function's durations, judged by a sample that is even over the recording.

    Parameters
    ----------
    spool : Spool
    owner : ndarray of int64
        Function of each path.
    calls : ndarray of int64
        Calls of each function.
    above_ns : float
        Finer steps do not matter.
    """
    most = max(_LEAST, min(_SAMPLE, _ALL_SAMPLES // max(len(calls), 1)))
    stride = np.maximum(calls // most, 1)
    kept: list[list[NDArray[np.float64]]] = [[] for _ in calls]
    seen = np.zeros(len(calls), dtype=np.int64)
    for block in spool.blocks():
        for function, own in _by_number(owner[block.paths]):
            step = int(stride[function])
            kept[function].append(block.durations_ns[own[-int(seen[function]) % step :: step]])
            seen[function] += len(own)
    return ExactDurations(
        [resolution_of(np.concatenate(own), above_ns=above_ns) if own else FINE for own in kept],
    )


def _by_number(numbers: Numbers) -> Iterator[tuple[int, Numbers]]:
    """Yield each number with the places where it stands."""
    order = np.argsort(numbers, kind="stable")
    at = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    for begin, end in zip(at.tolist(), [*at[1:].tolist(), len(numbers)], strict=False):
        yield int(numbers[order[begin]]), order[begin:end]
