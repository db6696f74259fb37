"""The calls of some runs as one: bins to draw, and quantiles."""

from __future__ import annotations

from collections.abc import Sequence

from specmine.analysis.histogram_bins import Bin, histogram_bins
from specmine.analysis.lifetimes.lifetime import FunctionLifetime
from specmine.mining.regression.sample import FEWEST_CALLS, Sample, histogram_of, joined, quantile

QUANTILES = {"median": 0.5, "p90": 0.9, "p99": 0.99}
Group = Sequence[FunctionLifetime]


def all_calls(group: Group) -> Sample:
    """Return the calls of some lifetimes as one."""
    return joined([each.sample for each in group])


def calls_of(group: Group) -> int:
    """Return how many calls they had."""
    return sum(each.sample.calls for each in group)


def bins_of(group: Group) -> list[Bin]:
    """Return the calls of some lifetimes in the fixed buckets, s."""
    sample = all_calls(group)
    if not sample.calls:
        return []
    histogram = histogram_of(sample)
    return histogram_bins(list(zip(histogram.buckets.tolist(), histogram.counts.tolist(), strict=True)))


def quantile_of(group: Group, name: str) -> float | None:
    """Return the ``median``, ``p90`` or ``p99`` of all calls, s; None of too few calls."""
    sample = all_calls(group)
    fewest = 1 if name == "median" else FEWEST_CALLS[name]
    return 1e-9 * quantile(sample, QUANTILES[name]) if sample.calls >= fewest else None
