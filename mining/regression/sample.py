"""The durations of one function in one lifetime, and their summaries.

A lifetime is one draw: its processes, windows and calls share one initial state. So each lifetime is reduced to
a few robust summaries, and only these are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from specmine.model.buckets import BUCKET_EDGES, bucket_of
from specmine.model.histogram import Histogram

TRIMMED_SHARE = 0.05
"""Left out at either end by the trimmed mean."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Durations in ns as ascending cells with counts; a cell of raw durations has no width."""

    lower: Floats
    upper: Floats
    counts: NDArray[np.int64]

    @property
    def calls(self) -> int:
        """Number of calls."""
        return int(self.counts.sum())

    @property
    def middle(self) -> Floats:
        """Middles of the cells, ns."""
        return 0.5 * (self.lower + self.upper)


def sample_of_durations(durations_ns: ArrayLike) -> Sample:
    """Return the sample of single durations in ns, any order."""
    values = np.sort(np.asarray(durations_ns, dtype=np.float64).ravel())
    return Sample(values, values, np.ones(len(values), dtype=np.int64))


def sample_of_histogram(histogram: Histogram, bias_ns: float = 0.0) -> Sample:
    """Return the sample of a histogram, its durations less ``bias_ns`` but never below 0."""
    used = histogram.buckets
    edges = np.maximum(BUCKET_EDGES - bias_ns, 0.0)
    return Sample(edges[used], edges[1:][used], histogram.counts.astype(np.int64))


def histogram_of(sample: Sample) -> Histogram:
    """Return a sample in the fixed buckets."""
    return Histogram.from_pairs(bucket_of(np.round(sample.middle)), sample.counts)


def joined(samples: Sequence[Sample]) -> Sample:
    """Return the calls of several samples as one."""
    if not samples:
        return sample_of_durations([])
    lower, upper, counts = (
        np.concatenate([getattr(each, name) for each in samples]) for name in ("lower", "upper", "counts")
    )
    order = np.lexsort((upper, lower))
    return Sample(lower[order], upper[order], counts[order])


def part(sample: Sample, above_ns: float, up_to_ns: float) -> Sample:
    """Return the calls whose cells have their middle in (above_ns, up_to_ns]."""
    inside = (sample.middle > above_ns) & (sample.middle <= up_to_ns)
    return Sample(sample.lower[inside], sample.upper[inside], sample.counts[inside])


def order_statistic(sample: Sample, rank: ArrayLike) -> Floats:
    """Return the durations of 0-based ranks; the calls of a cell lie evenly in it."""
    index = np.asarray(rank, dtype=np.int64)
    above = np.cumsum(sample.counts)
    cell = np.searchsorted(above, index, side="right")
    counts = sample.counts[cell]
    place = (index - (above[cell] - counts) + 0.5) / counts
    return np.asarray(sample.lower[cell] + place * (sample.upper[cell] - sample.lower[cell]), dtype=np.float64)


def quantile(sample: Sample, probability: float) -> float:
    """Return a quantile in ns, linear between order statistics (Hyndman and Fan's type 7, numpy's default)."""
    calls = sample.calls
    place = probability * (calls - 1)
    low = int(place)
    high = min(low + 1, calls - 1)
    if len(sample.lower) == calls and sample.lower is sample.upper:  # single durations: nothing to look up
        first, second = sample.lower[low], sample.lower[high]
    else:
        first, second = order_statistic(sample, [low, high])
    return float(first + (place - low) * (second - first))


def mean(sample: Sample) -> float:
    """Return the mean in ns."""
    return float(sample.counts @ sample.middle / sample.calls)


def variance(sample: Sample) -> float:
    """Return the variance in ns**2 (divisor n - 1); 0 for a single call."""
    if sample.calls < 2:
        return 0.0
    away = sample.middle - mean(sample)
    return float(sample.counts @ (away * away) / (sample.calls - 1))


def trimmed(sample: Sample) -> float:
    """Return the mean in ns without the lowest and the highest ``TRIMMED_SHARE`` of the calls (rounded down)."""
    cut = int(TRIMMED_SHARE * sample.calls)
    below = np.cumsum(sample.counts)
    kept = np.clip(below, cut, sample.calls - cut)
    return float(np.diff(kept, prepend=cut) @ sample.middle / (sample.calls - 2 * cut))


def share_above(sample: Sample, limit_ns: float) -> float:
    """Return the share of calls longer than a limit; a call of exactly the limit is not."""
    width = sample.upper - sample.lower
    raw = (sample.lower > limit_ns).astype(np.float64)
    inside = np.clip((sample.upper - limit_ns) / np.where(width > 0, width, 1.0), 0.0, 1.0)
    return float(sample.counts @ np.where(width > 0, inside, raw) / sample.calls)


SUMMARIES: Mapping[str, Callable[[Sample], float]] = {
    "median": lambda sample: quantile(sample, 0.5),
    "mean": mean,
    "trimmed": trimmed,
    "p90": lambda sample: quantile(sample, 0.9),
    "p99": lambda sample: quantile(sample, 0.99),
}
"""Name to function of a sample, in ns; the median first because a changed tail moves it least."""

FEWEST_CALLS: Mapping[str, int] = {"median": 1, "mean": 1, "trimmed": 1, "p90": 10, "p99": 100}
"""A lifetime of fewer calls has no such summary: it would be the maximum under another name."""


def granularity_ns(samples: list[Sample]) -> float:
    """Return the smallest step between durations that occur, at least 0; 1 ns if all are one value."""
    values = np.unique(np.concatenate([each.lower for each in samples] or [np.zeros(0)]))
    if any(bool((each.upper > each.lower).any()) for each in samples):
        return 0.0  # calls lie evenly inside buckets: the summaries move in no steps
    return float(np.diff(values).min()) if len(values) > 1 else 1.0
