"""How often whole numbers occur in blocks of calls, in memory that grows with the numbers that do occur."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

_DENSE = 1 << 22
"""Up to so many cells are counted in one array, 32 MiB."""
_GATHERED = 1 << 21

Numbers = NDArray[np.int64]


class Sums:
    """How often each number was added; numbers below ``size``."""

    def __init__(self, size: int) -> None:
        self._dense = np.zeros(size, dtype=np.int64) if size <= _DENSE else None
        self._parts: list[tuple[Numbers, Numbers]] = []
        self._held = 0

    def add(self, numbers: Numbers) -> None:
        if self._dense is not None:
            self._dense += np.bincount(numbers, minlength=len(self._dense))
            return
        found, calls = np.unique(numbers, return_counts=True)
        self._parts.append((found, calls))
        self._held += len(found)
        if self._held > _GATHERED and len(self._parts) > 1:
            merged = self._merged()
            # once most numbers are known, merging again after each block would cost more than it saves
            self._parts, self._held = [merged], 0

    def total(self) -> tuple[Numbers, Numbers]:
        """Return the numbers that were added, ascending, and how often."""
        if self._dense is not None:
            found = np.flatnonzero(self._dense)
            return found, self._dense[found]
        return self._merged()

    def _merged(self) -> tuple[Numbers, Numbers]:
        if not self._parts:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        numbers = np.concatenate([each for each, _ in self._parts])
        order = np.argsort(numbers, kind="stable")
        numbers, calls = numbers[order], np.concatenate([each for _, each in self._parts])[order]
        at = np.flatnonzero(np.diff(numbers, prepend=-1))
        return numbers[at], np.add.reduceat(calls, at) if len(at) else calls


def by_first(numbers: Numbers, calls: Numbers, size: int) -> Iterator[tuple[int, Numbers, Numbers]]:
    """Yield each quotient of ascending numbers by ``size`` with the remainders and the calls of each."""
    quotient, rest = np.divmod(numbers, size)
    at = np.flatnonzero(np.diff(quotient, prepend=-1))
    for begin, end in zip(at.tolist(), [*at[1:].tolist(), len(quotient)], strict=False):
        yield int(quotient[begin]), rest[begin:end], calls[begin:end]


def ranks(series: Numbers, counts: Numbers) -> Numbers:
    """Return the rank of each call in its series, from 0; ``counts`` has the calls before and is updated."""
    order = np.argsort(series, kind="stable")
    ordered = series[order]
    at = np.flatnonzero(np.diff(ordered, prepend=-1))
    lengths = np.diff(np.append(at, len(ordered)))
    found = np.empty(len(series), dtype=np.int64)
    found[order] = np.arange(len(series)) - np.repeat(at, lengths) + np.repeat(counts[ordered[at]], lengths)
    counts[ordered[at]] += lengths
    return found


def stacked(tables: dict[int, Numbers], size: int) -> tuple[Numbers, Numbers]:
    """Return all tables in one, and where each begins."""
    start = np.zeros(size, dtype=np.int64)
    place = 0
    for number, table in tables.items():
        start[number] = place
        place += len(table)
    return np.concatenate(list(tables.values())) if tables else np.empty(0, dtype=np.int64), start
