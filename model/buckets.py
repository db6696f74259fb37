"""The log-linear bucket layout of durations, the same from the kernel's counters to the reports.

32 buckets per power of two, so a bucket is at most 3.2 % wide. A test compares the layout with that of
``probes/bpf/histogram.h``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

SUB_BITS = 5
"""log2 of the buckets per power of two."""
FIRST_EXPONENT = 5
"""Durations below 2**5 ns share the first bucket with 32 ns."""
LAST_EXPONENT = 39
"""Durations of 2**40 ns (1,100 s) and more share the last bucket."""
BUCKETS = (LAST_EXPONENT - FIRST_EXPONENT + 1) << SUB_BITS
"""Number of buckets (1,120)."""


def bucket_of(duration_ns: ArrayLike) -> NDArray[np.int64]:
    """Return the bucket of each duration.

    Parameters
    ----------
    duration_ns : array_like of int
        Durations in ns, at least 0, any shape.

    Returns
    -------
    ndarray of int64
        Bucket numbers in [0, BUCKETS), same shape.
    """
    low, high = 1 << FIRST_EXPONENT, (1 << (LAST_EXPONENT + 1)) - 1
    value = np.clip(np.asarray(duration_ns, dtype=np.int64), low, high)
    # frexp is exact here: values stay below 2**40 < 2**53
    exponent = np.frexp(value.astype(np.float64))[1].astype(np.int64) - 1
    mantissa = value >> (exponent - SUB_BITS)  # in [32, 64)
    return ((exponent - FIRST_EXPONENT) << SUB_BITS) + (mantissa & ((1 << SUB_BITS) - 1))


def _edges() -> NDArray[np.float64]:
    index = np.arange(BUCKETS + 1, dtype=np.int64)
    exponent = (index >> SUB_BITS) + FIRST_EXPONENT
    mantissa = (index & ((1 << SUB_BITS) - 1)) + (1 << SUB_BITS)
    return _read_only(mantissa * np.exp2(exponent - SUB_BITS))


def _read_only(array: NDArray[np.float64]) -> NDArray[np.float64]:
    array.flags.writeable = False
    return array


BUCKET_EDGES = _edges()
"""Edges in ns, shape (BUCKETS + 1,): bucket i holds durations in [BUCKET_EDGES[i], BUCKET_EDGES[i + 1])."""
BUCKET_MIDDLES = _read_only(0.5 * (BUCKET_EDGES[:-1] + BUCKET_EDGES[1:]))
"""Middles of the buckets in ns, shape (BUCKETS,)."""


def shifted_edges(edges: tuple[int, ...], was_ns: float, is_ns: float) -> tuple[int, ...]:
    """Shift edges from durations with one bias of the probes to durations with another."""
    if abs(is_ns - was_ns) < 1.0:
        return edges
    durations = BUCKET_EDGES[list(edges)] + (is_ns - was_ns)
    return tuple(int(bucket) for bucket in bucket_of(np.round(durations)))
