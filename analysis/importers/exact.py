"""Recorded durations as exact ones: each is put somewhere within what it stands for, by the clock of its function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from specmine.mining.borders.raw_resolution import Resolution, resolution_of, spread
from specmine.mining.borders.stability import StableBorder
from specmine.mining.borders.stretch import NONE, Stretch, stretch_of
from specmine.model.buckets import BUCKETS, bucket_of

from .spool import Block, Spool

_SAMPLE = 1 << 14
"""Durations of a function by which its resolution is judged ..."""
_ALL_SAMPLES = 1 << 22
"""... and of all functions together, 32 MiB."""
_LEAST = 1 << 8
EVEN = 0.6180339887498949
"""Multiples of the golden ratio lie evenly in [0, 1), however many are taken."""

PLACES = (0.7548776662466927, 0.5698402909980532)
"""The same in two dimensions (Roberts 2018): pairs that depend on neither each other nor the above."""

Numbers = NDArray[np.int64]


class ExactDurations:
    """The resolution of every function's durations, and what a duration becomes by it."""

    def __init__(self, resolutions: Sequence[Resolution], stretches: Sequence[Stretch]) -> None:
        """Take the resolution of each function, and the stretch that shows its classes best."""
        self.resolutions, self.stretches = tuple(resolutions), tuple(stretches)
        self._borders: dict[int, tuple[NDArray[np.float64], Numbers, Numbers]] = {}
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
            places = np.modf((block.first + own) * EVEN)[0]
            durations[own] = spread(durations[own], self.resolutions[function], places)
        return durations

    def cut(self, function: int, borders: Sequence[StableBorder]) -> None:
        """Count calls of a function in buckets of their class from now on, also where a border lies in a bucket."""
        edges = np.array([0, *(border.edge for border in borders), BUCKETS], dtype=np.int64)
        self._borders[function] = np.array([border.duration_ns for border in borders]), edges[:-1], edges[1:] - 1

    def buckets(self, block: Block, functions: Numbers) -> Numbers:
        """Return the buckets of the calls of a block."""
        durations = self.of(block, functions)
        buckets = bucket_of(durations)
        if not self._borders:
            return buckets
        for function, own in _by_number(functions):
            if function in self._borders:
                borders, low, high = self._borders[function]
                place = np.searchsorted(borders, durations[own], side="left")
                buckets[own] = np.clip(buckets[own], low[place], high[place])
        return buckets

    def stretched(self, block: Block, functions: Numbers, resolution_ns: float) -> Numbers:
        """Return the buckets of stretched durations, -1 for functions that are not stretched.

        Each duration is moved by a triangular error of +-``resolution_ns``: closer classes are not distinguished.
        """
        durations = self.of(block, functions)
        buckets = np.full(len(durations), -1, dtype=np.int64)
        for function, own in _by_number(functions):
            if self.stretches[function] == NONE:
                continue
            one, other = (np.modf((block.first + own) * factor)[0] for factor in PLACES)
            moved = durations[own] + resolution_ns * (one + other - 1.0)
            buckets[own] = self.stretches[function].buckets(moved)
        return buckets


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
    samples = [np.concatenate(own) if own else np.empty(0) for own in kept]
    resolutions = [resolution_of(sample, above_ns=above_ns) for sample in samples]
    return ExactDurations(resolutions, list(map(stretch_of, samples, resolutions)))


def _by_number(numbers: Numbers) -> Iterator[tuple[int, Numbers]]:
    """Yield each number with the places where it stands."""
    order = np.argsort(numbers, kind="stable")
    at = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    for begin, end in zip(at.tolist(), [*at[1:].tolist(), len(numbers)], strict=False):
        yield int(numbers[order[begin]]), order[begin:end]
