"""Numbers from samples: robust middles with intervals, rules to stop, clusters of one dimension. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Z95 = 1.959964
SAME_SPEED = 1.05
"""Largest ratio of the times of the same work before and after, at which the CPU counts as unchanged."""


def median_interval(values: ArrayLike) -> tuple[float, tuple[float, float]]:
    """Return the median and its 95 % interval by order statistics.

    Parameters
    ----------
    values : array_like
        At least one number; independent of their distribution.

    Returns
    -------
    median, (low, high)
        The order statistics at n/2 -+ z sqrt(n)/2, which is exact to O(1/n) for any continuous distribution.
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    n = len(ordered)
    half = Z95 * math.sqrt(n) / 2
    low, high = max(0, math.floor(n / 2 - half)), min(n - 1, math.ceil(n / 2 + half))
    return float(np.median(ordered)), (float(ordered[low]), float(ordered[high]))


def mean_interval(values: ArrayLike) -> tuple[float, tuple[float, float]]:
    """Return the mean and its 95 % interval (normal approximation; of one value: itself)."""
    numbers = np.asarray(values, dtype=np.float64)
    mean = float(numbers.mean())
    half = Z95 * float(numbers.std(ddof=1)) / math.sqrt(len(numbers)) if len(numbers) > 1 else 0.0
    return mean, (mean - half, mean + half)


def median_is_known(values: ArrayLike, *, at_least: int, half_width: float) -> bool:
    """Return True if the median is known to +-``half_width`` of itself at 95 %, from ``at_least`` values.

    The stop condition *InternalTimesStable* of the thesis (section 4.4.3), which gives no formula.
    """
    numbers = np.asarray(values)
    if len(numbers) < at_least:
        return False
    median, (low, high) = median_interval(numbers)
    return max(high - median, median - low) <= half_width * abs(median)


def spread(values: ArrayLike) -> float:
    """Return the interquartile range."""
    low, high = np.percentile(np.asarray(values, dtype=np.float64), (25, 75))
    return float(high - low)


def speed_kept(before: ArrayLike, after: ArrayLike) -> float:
    """Return the ratio of the times of the same work at two moments, at least 1; 1: the speed did not change.

    Virtual CPUs change their speed by the second, here by up to 1.7 times. A comparison with work done before such a
    change is wrong by the same factor.
    """
    times = [float(np.median(np.asarray(each, dtype=np.float64))) for each in (before, after)]
    return max(times) / max(1.0, min(times))


def clusters(values: ArrayLike, *, diameter: float, smallest: int) -> list[NDArray[np.float64]]:
    """Cluster numbers by quality threshold, largest cluster first.

    Parameters
    ----------
    values : array_like
        Numbers.
    diameter : float
        Largest span of a cluster.
    smallest : int
        Fewest members of a cluster; what is left over belongs to none.

    Notes
    -----
    Heyer, Kruglyak, Yooseph, *Exploring Expression Data* (1999), in one dimension: the longest run of the sorted
    values within ``diameter`` is a cluster and is taken out, until the longest is too small.
    """
    rest = np.sort(np.asarray(values, dtype=np.float64))
    found: list[NDArray[np.float64]] = []
    while len(rest) >= max(1, smallest):
        ends = np.searchsorted(rest, rest + diameter, side="right")
        sizes = ends - np.arange(len(rest))
        start = int(np.argmax(sizes))
        if sizes[start] < smallest:
            break
        found.append(rest[start : ends[start]])
        rest = np.concatenate((rest[:start], rest[ends[start] :]))
    return found


def quantiles(values: ArrayLike, shares: Sequence[float] = (0.05, 0.25, 0.5, 0.75, 0.95)) -> list[float]:
    """Return quantiles rounded to 6 significant digits, for evidence."""
    numbers = np.asarray(values, dtype=np.float64)
    return [] if len(numbers) == 0 else [significant(float(each)) for each in np.quantile(numbers, shares)]


def significant(value: float, digits: int = 6) -> float:
    """Round to significant digits."""
    return float(f"{value:.{digits}g}")
