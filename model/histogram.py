"""Histograms of durations: numbers of calls in the fixed buckets.

Few of the 1,120 buckets hold calls. Only those are stored: some hundred bytes instead of 9 kB.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .buckets import BUCKET_EDGES, BUCKET_MIDDLES, BUCKETS, bucket_of

_Numbers = NDArray[np.int64] | NDArray[np.uint16]


@dataclass(frozen=True, slots=True, eq=False)
class Histogram:
    """The buckets that hold calls, with their counts; immutable.

    The counts may also be sums over the calls of a bucket, such as the ns that they waited.
    """

    buckets: NDArray[np.uint16]
    """Bucket numbers, ascending."""
    counts: NDArray[np.uint32] | NDArray[np.uint64]
    """Calls in each of them, at least 1."""
    _total: int = field(default=-1, init=False, repr=False)

    @staticmethod
    def from_dense(counts: ArrayLike) -> Histogram:
        """Return the histogram with these counts, shape (BUCKETS,); ValueError for another shape."""
        array = np.asarray(counts, dtype=np.uint64)
        if array.shape != (BUCKETS,):
            raise ValueError(f"a histogram has shape ({BUCKETS},), not {array.shape}")
        used = array.nonzero()[0]
        return _histogram(used, array[used]) if len(used) else EMPTY

    @staticmethod
    def from_durations(durations_ns: ArrayLike) -> Histogram:
        """Count durations in ns."""
        return Histogram.from_dense(np.bincount(bucket_of(durations_ns).ravel(), minlength=BUCKETS))

    @staticmethod
    def from_pairs(buckets: ArrayLike, counts: ArrayLike) -> Histogram:
        """Return the histogram of bucket numbers with their counts, in any order; counts of the same bucket add up.

        Raises
        ------
        IndexError
            For a bucket number that is not in [0, BUCKETS).
        """
        numbers = np.asarray(buckets, dtype=np.int64)
        if not numbers.size:
            return EMPTY
        dense = np.zeros(BUCKETS, dtype=np.uint64)
        np.add.at(dense, numbers, np.asarray(counts, dtype=np.uint64))
        return Histogram.from_dense(dense)

    @staticmethod
    def cut(
        buckets: NDArray[np.uint16] | NDArray[np.int64], counts: NDArray[np.uint64], ends: NDArray[np.int64]
    ) -> list[Histogram]:
        """Return histograms that lie one after the other in two arrays; ``ends`` has where each of them ends.

        Bucket numbers must ascend in each, and no count may be 0; neither is checked.
        """
        whole = _histogram(buckets, counts)
        numbers, found, start = whole.counts, list[Histogram](), 0
        if numbers.dtype == np.uint64:  # one large count must not make those of all others wide
            return [
                _histogram(buckets[first:end], counts[first:end]) if end > first else EMPTY
                for first, end in pairwise([0, *ends.tolist()])
            ]
        for end in ends.tolist():
            found.append(Histogram(whole.buckets[start:end], numbers[start:end]) if end > start else EMPTY)
            start = end
        return found

    @staticmethod
    def sum(histograms: Iterable[Histogram]) -> Histogram:
        """Return the sum of histograms; the empty one if there is none."""
        every = list(histograms)
        if len(every) == 1:
            return every[0]
        dense = np.zeros(BUCKETS, dtype=np.uint64)
        for histogram in every:
            dense[histogram.buckets] += histogram.counts
        return Histogram.from_dense(dense)

    @staticmethod
    def sums(groups: Iterable[Sequence[Histogram]]) -> list[Histogram]:
        """Return the sum of each group of histograms; of many small ones much faster than ``sum`` of each."""
        every = [list(group) for group in groups]
        parts = [histogram for group in every for histogram in group]
        if not parts:
            return [EMPTY] * len(every)
        of_part = np.repeat(np.arange(len(every)), [len(group) for group in every])
        of_bucket = np.repeat(of_part, [len(histogram.buckets) for histogram in parts])
        keys = of_bucket * BUCKETS + np.concatenate([histogram.buckets for histogram in parts])
        counts = np.concatenate([histogram.counts for histogram in parts]).astype(np.uint64)
        keys, summed = added(keys, counts)
        ends = np.searchsorted(keys, BUCKETS * np.arange(1, len(every) + 1))
        return Histogram.cut(keys % BUCKETS, summed, ends)

    @property
    def dense(self) -> NDArray[np.uint64]:
        """The counts of all buckets, shape (BUCKETS,); a new array each time."""
        dense = np.zeros(BUCKETS, dtype=np.uint64)
        dense[self.buckets] = self.counts
        return dense

    @property
    def total(self) -> int:
        """Number of calls."""
        if self._total < 0:  # asked for again and again, and a sum of a few numbers takes numpy 5 us
            object.__setattr__(self, "_total", int(self.counts.sum()))
        return self._total

    @property
    def pairs(self) -> list[list[int]]:
        """``[[bucket, count], ...]``, ascending: its form in JSON."""
        return [[bucket, count] for bucket, count in zip(self.buckets.tolist(), self.counts.tolist(), strict=True)]

    def __add__(self, other: Histogram) -> Histogram:
        """Return the sum of both."""
        return Histogram.sum((self, other))

    def without(self, other: Histogram) -> Histogram:
        """Return the histogram less the calls of another, in each bucket at least 0."""
        dense, rest = self.dense, other.dense
        return Histogram.from_dense(dense - np.minimum(dense, rest))

    def __eq__(self, other: object) -> bool:
        """Return whether both hold the same counts."""
        if not isinstance(other, Histogram):
            return NotImplemented
        return np.array_equal(self.buckets, other.buckets) and np.array_equal(self.counts, other.counts)

    def __hash__(self) -> int:
        """Return a hash that equal histograms share."""
        return hash((self.buckets.tobytes(), self.counts.astype(np.uint64).tobytes()))

    def part(self, first: int, last: int) -> Histogram:
        """Return the calls in the buckets [first, last)."""
        low, high = np.searchsorted(self.buckets, (first, last))
        return Histogram(self.buckets[low:high], self.counts[low:high])

    def class_counts(self, edges: Sequence[int]) -> NDArray[np.int64]:
        """Count the calls of each class.

        Parameters
        ----------
        edges : sequence of int
            First bucket of each class but the lowest, ascending.

        Returns
        -------
        ndarray of int64, shape (len(edges) + 1,)
        """
        if not len(edges):
            return np.array([self.total], dtype=np.int64)
        below = np.concatenate(([0], np.cumsum(self.counts, dtype=np.int64)))
        places = np.searchsorted(self.buckets, edges)
        return np.diff(below[[0, *places, -1]])

    def time_ns(self) -> float:
        """Return the sum of the durations in ns, each as the middle of its bucket."""
        return float(self.counts @ BUCKET_MIDDLES[self.buckets])

    def mean(self, bias_ns: float = 0.0) -> float:
        """Return the mean duration in ns less ``bias_ns``, at least 0; 0 if it is empty."""
        return max(0.0, self.time_ns() / max(1, self.total) - bias_ns)

    def std(self) -> float:
        """Return the standard deviation of the durations in ns; 0 if it is empty."""
        total = self.total
        if not total:
            return 0.0
        away = BUCKET_MIDDLES[self.buckets] - self.time_ns() / total
        return math.sqrt(float(self.counts @ away**2) / total)

    def quantile(self, level: float) -> float:
        """Return a quantile in ns, interpolated within its bucket; 0 if it is empty."""
        return self.quantiles((level,))[0]

    def quantiles(self, levels: Sequence[float]) -> list[float]:
        """Return quantiles in ns: the least durations that so many calls do not exceed; zeros if it is empty.

        They are interpolated within their buckets. Levels beyond [0, 1] count as 0 or 1.
        """
        if not len(self.counts):
            return [0.0] * len(levels)
        reached = self.counts.cumsum(dtype=np.float64)
        target = np.minimum(np.maximum(np.asarray(levels, dtype=np.float64), 0.0), 1.0) * reached[-1]
        place = np.minimum(reached.searchsorted(target), len(reached) - 1)
        inside = 1.0 - (reached[place] - target) / self.counts[place]
        bucket = self.buckets[place].astype(np.intp)
        low, high = BUCKET_EDGES[bucket], BUCKET_EDGES[bucket + 1]
        found: list[float] = (low + inside * (high - low)).tolist()
        return found


def added(keys: NDArray[np.int64], counts: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return each key once, ascending, with the sum of its counts; both of shape (keys,)."""
    if not len(keys):
        return keys, counts
    order = np.argsort(keys, kind="stable")
    sorted_keys = keys[order]
    first = np.flatnonzero(np.diff(sorted_keys, prepend=sorted_keys[0] - 1))
    return sorted_keys[first], np.add.reduceat(counts[order], first)


def quantiles_of(histograms: Sequence[Histogram], levels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return quantiles of several histograms, ns, as ``Histogram.quantiles`` does of one, but much faster.

    Parameters
    ----------
    histograms : sequence of Histogram
        None of them is empty.
    levels : ndarray, shape (len(histograms), k)
    """
    sizes = np.array([len(each.buckets) for each in histograms])
    buckets = np.concatenate([each.buckets for each in histograms]).astype(np.intp)
    counts = np.concatenate([each.counts for each in histograms]).astype(np.float64)
    reached, last = counts.cumsum(), sizes.cumsum() - 1
    before = np.concatenate(([0.0], reached[last[:-1]]))
    target = before[:, None] + np.clip(levels, 0.0, 1.0) * (reached[last] - before)[:, None]
    first = last - sizes + 1
    place = np.clip(reached.searchsorted(target), first[:, None], last[:, None])
    inside = 1.0 - (reached[place] - target) / counts[place]
    low, high = BUCKET_EDGES[buckets[place]], BUCKET_EDGES[buckets[place] + 1]
    found: NDArray[np.float64] = low + inside * (high - low)
    return found


def _histogram(used: _Numbers, number: NDArray[np.uint64]) -> Histogram:
    """Return the histogram of these buckets; its arrays have the smallest type that fits and are read-only."""
    buckets = used.astype(np.uint16)
    counts = number.astype(np.uint32) if not len(number) or int(np.maximum.reduce(number)) < 1 << 32 else number
    buckets.flags.writeable = counts.flags.writeable = False
    return Histogram(buckets, counts)


EMPTY = _histogram(np.empty(0, np.intp), np.empty(0, np.uint64))
"""The histogram without a call."""
