"""Histograms of durations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .buckets import BUCKET_EDGES, BUCKETS, bucket_of

Counts = NDArray[np.uint64]
"""Counts per bucket, shape (BUCKETS,)."""


def histogram_of(durations_ns: ArrayLike) -> Counts:
    """Count durations in ns into the fixed layout."""
    return np.bincount(bucket_of(durations_ns).ravel(), minlength=BUCKETS).astype(np.uint64)


def quantiles(counts: NDArray[np.uint64], levels: Sequence[float]) -> list[float]:
    """Return quantiles of a histogram in ns, interpolated within the bucket; zeros if it is empty."""
    total = int(counts.sum())
    if not total:
        return [0.0] * len(levels)
    below = np.concatenate(([0], np.cumsum(counts, dtype=np.float64)))
    return [float(each) for each in np.interp(np.asarray(levels) * total, below, BUCKET_EDGES)]


def frozen_counts(counts: ArrayLike) -> Counts:
    """Return a read-only copy of the counts; ValueError if the shape is not (BUCKETS,)."""
    array = np.array(counts, dtype=np.uint64)
    if array.shape != (BUCKETS,):
        raise ValueError(f"a histogram has shape ({BUCKETS},), not {array.shape}")
    array.flags.writeable = False
    return array
