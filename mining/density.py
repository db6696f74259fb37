"""Valleys of the density of log durations, over windows that all hold the same share of the calls.

With Q the quantile function of log durations, the density over a window of share m at u is m / (Q(u + m) - Q(u));
its logarithm has the standard error 1 / sqrt(n m) wherever the window lies and however the durations are
distributed (a nearest-neighbour density), so one threshold fits a sharp fast class beside a broad slow one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .observation import BUCKETS, bucket_edges

EDGES = bucket_edges()
EDGES[0] *= 0.5  # the first bucket also holds all shorter durations: it is no peak
LOG_EDGES = np.log(EDGES)
EDGES.flags.writeable = LOG_EDGES.flags.writeable = False

_LEAST = 10  # calls in a window: the error of fewer is no longer that of a logarithm
_CELLS = 5  # steps by which a window moves over its own share
_WIDEST = 0.2  # share of calls from which on the number of windows needs no allowance


@dataclass(frozen=True, slots=True, kw_only=True)
class Valley:
    """A dense region, a sparse one and a dense one, at one window size; positions are shares of the calls below."""

    left: float
    low: float
    right: float
    """Starts of the three windows."""
    share: float
    """Share of the calls in each."""
    drop: float
    """Fall of the log density from the lower peak."""
    significance: float
    """The same in standard errors, less what is allowed for the number of windows of this size."""
    edge: int
    """Bucket edge of least density in the lowest window."""


def valleys(
    cdf: NDArray[np.float64], total: int, *, shares: Sequence[float], z: float, depth: float, apart_ns: float
) -> list[Valley]:
    """Return the valleys that stand out, one for each pair of peaks, each at the window size that shows it best.

    Parameters
    ----------
    cdf : ndarray of float64, shape (BUCKETS + 1,)
        Share of the calls below each of ``EDGES``.
    total : int
        Calls.
    shares : sequence of float
        Shares of the calls in a window.
    z : float
        Least significance.
    depth : float
        Least fall of the density, as a share of the lower peak.
    apart_ns : float
        Peaks must be farther apart.

    Notes
    -----
    One pass of hysteresis over the log density leaves the longest alternation of peaks and valleys that differ by
    the threshold. Smaller windows look at more places: where x standard errors are asked of the widest windows,
    sqrt(x^2 + 2 log(M / m)) are asked of windows of share m, which gives all sizes about the same rate of false
    valleys (Duembgen and Walther, Annals of Statistics 36, 2008, section 2).
    """
    groups: list[list[Valley]] = []
    for share in sorted(shares):
        if total * share < _LEAST:
            continue
        cells = round(_CELLS / share)
        mass = _CELLS / cells
        # what a blur puts below the layout is left tail, not a peak at its first edge
        quantile = np.interp(np.linspace(cdf[0], cdf[-1], cells + 1), cdf, LOG_EDGES)
        level = -np.log(np.maximum(quantile[_CELLS:] - quantile[:-_CELLS], 1e-9))
        error = math.sqrt(2 / max(total * mass - 0.5, 0.5))
        allowance = 2 * max(math.log(_WIDEST / mass), 0.0)
        needed = max(math.sqrt(z * z + allowance) * error, -math.log1p(-depth))
        below = np.minimum(np.maximum.accumulate(level), np.maximum.accumulate(level[::-1])[::-1]) - level
        if below.max() < needed:
            continue
        for left, low, right in alternating(level, needed):
            centres = np.exp(quantile[[left + _CELLS // 2, right + _CELLS // 2]])
            if centres[1] - centres[0] <= apart_ns:
                continue
            drop = float(min(level[left], level[right]) - level[low])
            valley = Valley(
                left=left / cells,
                low=low / cells,
                right=right / cells,
                share=mass,
                drop=drop,
                significance=math.sqrt(max((drop / error) ** 2 - allowance, 0.0)),
                edge=_lowest(cdf, quantile[low], quantile[low + _CELLS]),
            )
            same = [group for group in groups if not _peak_between(valley, group[0], level, needed)]
            if len(same) == 0:
                groups.append([valley])
            elif len(same) == 1:  # more than one: a small class in this window, which smaller ones see
                same[0].append(valley)
    return [max(group, key=lambda valley: valley.significance) for group in groups]


def alternating(level: NDArray[np.float64], needed: float) -> list[tuple[int, int, int]]:
    """Return (left peak, valley, right peak) for each valley at least ``needed`` below both its peaks."""
    result: list[tuple[int, int, int]] = []
    values = level.tolist()
    peak = low = pending = 0
    left = -1
    falling = False
    for index, value in enumerate(values):
        if falling:
            if value < values[low]:
                low = index
            elif value >= values[low] + needed:
                left, pending, peak, falling = peak, low, index, False
        elif value > values[peak]:
            peak = index
        elif value <= values[peak] - needed:
            if left >= 0:
                result.append((left, pending, peak))
            low, falling = index, True
    if not falling and left >= 0:
        result.append((left, pending, peak))
    return result


def _peak_between(a: Valley, b: Valley, level: NDArray[np.float64], needed: float) -> bool:
    """Return whether the density at the window size of ``a`` has a peak between two valleys: else they are one."""
    cells = round(_CELLS / a.share)
    middle = [min(max(round((v.low + 0.5 * v.share - 0.5 * a.share) * cells), 0), len(level) - 1) for v in (a, b)]
    low, high = min(middle), max(middle)
    peak = float(level[low : high + 1].max())
    return peak - max(float(level[low]), float(level[high])) >= needed


def _lowest(cdf: NDArray[np.float64], low: float, high: float) -> int:
    """Return the bucket edge of least density in a window of log durations."""
    first = int(np.searchsorted(LOG_EDGES, low, side="left"))
    last = int(np.searchsorted(LOG_EDGES, high, side="right")) - 1
    if last <= first:
        return min(max(first, 1), BUCKETS - 1)
    at = LOG_EDGES[first : last + 1]
    reach = 0.25 * (high - low)
    mass = np.interp(at + reach, LOG_EDGES, cdf) - np.interp(at - reach, LOG_EDGES, cdf)
    lowest = np.flatnonzero(mass <= mass.min() + 1e-12)
    return min(max(first + int(lowest[len(lowest) // 2]), 1), BUCKETS - 1)
