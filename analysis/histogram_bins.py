"""The bins of a histogram that a document holds."""

from __future__ import annotations

from collections.abc import Sequence

Bin = tuple[float, float, float]
"""Lower end, upper end in s, calls."""


def histogram_bins(histogram: Sequence[Sequence[float]] | None, bias_s: float = 0.0) -> list[Bin]:
    """Return the bins of the histogram of a document, ascending.

    Parameters
    ----------
    histogram : sequence, optional
        ``[[bucket, calls], ...]`` of the buckets of ``model/observation.py`` that are not empty.
    bias_s : float
        What the probes add to a duration; it is taken off.
    """
    from specmine.model.buckets import BUCKET_EDGES, BUCKETS  # noqa: PLC0415

    edges = BUCKET_EDGES / 1e9
    bins = []
    for bucket, calls in sorted(map(tuple, histogram or [])):
        if 0 <= bucket < BUCKETS:  # a document from elsewhere may have more
            low, high = (max(1e-9, float(edges[int(bucket) + end]) - bias_s) for end in (0, 1))
            bins.append((low, max(high, low * 1.001), float(calls)))
    return bins
