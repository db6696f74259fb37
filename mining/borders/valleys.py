"""Valleys of the density of log durations, over windows that all hold the same share of the calls.

Let Q be the quantile function of log durations. The density over a window of share m at u is m / (Q(u + m) - Q(u)),
a nearest-neighbour density. Its logarithm has the standard error 1 / sqrt(n m) at every place and for every
distribution. So one threshold fits a narrow fast class and a broad slow one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from specmine.model.buckets import BUCKET_EDGES, BUCKETS

EDGES = BUCKET_EDGES.copy()
EDGES[0] *= 0.5  # the first bucket also holds all shorter durations, and must not look like a peak
LOG_EDGES = np.log(EDGES)
EDGES.flags.writeable = LOG_EDGES.flags.writeable = False

_LEAST = 10  # calls in a window: with fewer the standard error of the logarithm does not hold
_CELLS = 5  # cells of a sparse window; windows move by one cell
_DENSE = 9  # cells of a dense window: peaks are broader than valleys, and caused most of the error
_ASIDE = (_DENSE - _CELLS) // 2  # cells of a dense window on each side of a sparse one with the same centre
_CLEAR = (_DENSE + _CELLS) // 2  # distance of centres from which no call is in both windows
_NEARLY = 0.9  # share of the greatest significance
_SURELY = 4.0  # standard errors that are subtracted from a fall to compare it with others
_WIDEST = 0.2  # share of calls in a window from which the number of windows needs no allowance
_COARSE = 25  # windows of equal shares from which flatness is judged
_TOP = 0.6  # windows denser than this share of the densest (a tenth of them passed over) belong to the plateau
_PLATEAU = (0.75, 0.9)  # shares of the calls on the plateau between which flatness rises
_FLAT_Z = 4.0  # least significance on a plateau: under 1 % of log-uniform histories of ten observations reach it
_APART = 1e3  # exceeds differences of log densities, and so separates window sizes in accumulated maxima
_NOWHERE = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Valley:
    """A dense, a sparse and a dense region, at one window size."""

    left: tuple[float, float]
    low: tuple[float, float]
    right: tuple[float, float]
    """The three windows, each from and to a share of the calls below."""
    drop: float
    """Fall of the log density from the lower peak."""
    error: float
    """Its standard error."""
    significance: float
    """The fall in standard errors, less an allowance for the number of windows of this size."""

    def holds(self, other: Valley) -> bool:
        """Return whether another valley lies between the peaks of this one."""
        return self.left[0] < 0.5 * sum(other.low) < self.right[1]


@dataclass(frozen=True, slots=True, eq=False)
class _Windows:
    """Places of the windows of several sizes, one size after the other in flat arrays."""

    rows: tuple[tuple[int, int], ...]
    """First index of each size, and the number of cells that all calls are cut into."""
    at: NDArray[np.float64]
    """Shares of the calls below each cell."""
    sparse: NDArray[np.bool_]
    dense: NDArray[np.bool_]
    """Cells at which a sparse window begins, and those where it lies in the middle of a dense window."""
    row: NDArray[np.intp]
    """Number of the size that each cell belongs to."""
    offset: NDArray[np.float64]
    mass: NDArray[np.float64]
    """Share of the calls in a sparse window, per size."""
    allowance: NDArray[np.float64]
    """Allowance for the number of windows, in squared standard errors, per size."""


@lru_cache(maxsize=64)
def _windows(shares: tuple[float, ...]) -> _Windows:
    cells = [round(_CELLS / share) for share in shares]
    begin = np.concatenate(([0], np.cumsum([n + 1 for n in cells]))).tolist()
    place = [np.arange(n + 1) for n in cells]
    mass = _CELLS / np.array(cells)
    return _Windows(
        rows=tuple(zip(begin[:-1], cells, strict=True)),
        at=np.concatenate([np.linspace(0.0, 1.0, n + 1) for n in cells]),
        sparse=np.concatenate([p + _CELLS <= n for p, n in zip(place, cells, strict=True)]),
        dense=np.concatenate([(p >= _ASIDE) & (p + _CELLS + _ASIDE <= n) for p, n in zip(place, cells, strict=True)]),
        row=np.repeat(np.arange(len(cells)), [len(p) for p in place]),
        offset=np.repeat(np.arange(len(cells)) * _APART, [len(p) for p in place]),
        mass=mass,
        allowance=2 * np.maximum(np.log(_WIDEST / mass), 0.0),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Levels:
    """The log density in all windows, and where it falls enough."""

    windows: _Windows
    quantile: NDArray[np.float64]
    sparse: NDArray[np.float64]
    dense: NDArray[np.float64]
    error: NDArray[np.float64]
    """Standard error of the difference of both, per size."""
    needed: NDArray[np.float64]
    deep: NDArray[np.bool_]
    """Sparse windows that have windows denser by ``needed`` on both sides."""


def _levels(cdf: NDArray[np.float64], total: int, *, shares: Sequence[float], z: float, depth: float) -> _Levels | None:
    used = tuple(share for share in sorted(shares) if total * share >= _LEAST)
    if not used:
        return None
    windows = _windows(used)
    # calls that smoothing moves below the layout are a left tail, not a peak at its first edge
    quantile = np.interp(cdf[0] + (cdf[-1] - cdf[0]) * windows.at, cdf, LOG_EDGES)
    sparse = np.full(len(quantile), _NOWHERE)
    dense = np.full(len(quantile), -_NOWHERE)
    sparse[:-_CELLS] = -np.log(np.maximum(quantile[_CELLS:] - quantile[:-_CELLS], 1e-9))
    dense[_ASIDE : _ASIDE - _DENSE] = math.log(_DENSE / _CELLS) - np.log(
        np.maximum(quantile[_DENSE:] - quantile[:-_DENSE], 1e-9)
    )
    sparse[~windows.sparse] = _NOWHERE
    dense[~windows.dense] = -_NOWHERE
    error = np.sqrt((1 + _CELLS / _DENSE) / np.maximum(total * windows.mass - 0.5, 0.5))
    needed = np.maximum(np.sqrt(z * z + windows.allowance) * error, -math.log1p(-depth))
    before = np.full(len(quantile), -_NOWHERE)
    after = np.full(len(quantile), -_NOWHERE)
    before[_CLEAR:] = np.maximum.accumulate(dense + windows.offset)[:-_CLEAR] - windows.offset[_CLEAR:]
    after[:-_CLEAR] = np.maximum.accumulate((dense - windows.offset)[::-1])[::-1][_CLEAR:] + windows.offset[:-_CLEAR]
    return _Levels(
        windows=windows,
        quantile=quantile,
        sparse=sparse,
        dense=dense,
        error=error,
        needed=needed,
        deep=np.minimum(before, after) - sparse >= needed[windows.row],
    )


def has_valleys(cdf: NDArray[np.float64], total: int, *, shares: Sequence[float], z: float, depth: float) -> bool:
    """Return whether there may be valleys; faster than ``valleys``."""
    levels = _levels(cdf, total, shares=shares, z=z, depth=depth)
    return levels is not None and bool(levels.deep.any())


def valleys(
    cdf: NDArray[np.float64], total: int, *, shares: Sequence[float], z: float, depth: float, apart_ns: float
) -> list[Valley]:
    """Return the significant valleys, one for each pair of peaks, in the windows that show it best.

    Parameters
    ----------
    cdf : ndarray of float64, shape (BUCKETS + 1,)
        Share of the calls below each of ``EDGES``.
    total : int
        Calls.
    shares : sequence of float
        Shares of the calls in the window of a valley; those of its peaks hold 1.8 times as many.
    z : float
        Least significance.
    depth : float
        Least fall of the density, as a share of the lower peak.
    apart_ns : float
        Peaks must be farther apart.

    Notes
    -----
    One pass with hysteresis over the log density yields the longest alternation of peaks and valleys that differ by
    the threshold. Smaller windows test more places. The widest windows need x standard errors; windows of share m need
    sqrt(x^2 + 2 log(M / m)). Then all sizes have about the same rate of false valleys (Duembgen and Walther, Annals of
    Statistics 36, 2008, section 2).
    """
    levels = _levels(cdf, total, shares=shares, z=z, depth=depth)
    if levels is None or not levels.deep.any():
        return []
    windows, dense, sparse = levels.windows, levels.dense, levels.sparse
    at = _turns(levels)
    turns, highs, lows = at.tolist(), dense[at].tolist(), sparse[at].tolist()
    starts = [*np.searchsorted(at, [begin for begin, _ in windows.rows]).tolist(), len(at)]
    groups: list[list[Valley]] = []
    for row in sorted(set(windows.row[levels.deep].tolist())):
        begin, cells = windows.rows[row]
        here = slice(starts[row], starts[row + 1])
        level, places = sparse[begin : begin + cells + 1], levels.quantile[begin : begin + cells + 1]
        needed = float(levels.needed[row])
        for ends in alternating(turns[here], highs[here], lows[here], needed):
            left, low, right = (place - begin for place in ends)
            drop = float(min(dense[ends[0]], dense[ends[2]]) - sparse[ends[1]])
            if math.exp(places[right + _CELLS // 2]) - math.exp(places[left + _CELLS // 2]) <= apart_ns:
                continue
            squared = (drop / float(levels.error[row])) ** 2 - float(windows.allowance[row])
            valley = Valley(
                left=((left - _ASIDE) / cells, (left + _CELLS + _ASIDE) / cells),
                low=(low / cells, (low + _CELLS) / cells),
                right=((right - _ASIDE) / cells, (right + _CELLS + _ASIDE) / cells),
                drop=drop,
                error=float(levels.error[row]),
                significance=math.sqrt(max(squared, 0.0)),
            )
            same = [group for group in groups if not _peak_between(valley, group[0], level, needed)]
            if len(same) == 0:
                groups.append([valley])
            elif len(same) == 1:  # more than one: this window covers a small class that smaller windows resolve
                same[0].append(valley)
    least = z + max(_FLAT_Z - z, 0.0) * _flatness(cdf)
    return [valley for valley in map(_shown_best, groups) if valley.significance >= least]


def _flatness(cdf: NDArray[np.float64]) -> float:
    """Return how flat the density of log durations is: 0 for most shapes, 1 for a plateau with nearly all calls.

    A plateau has far more places for a random valley between random peaks than the top of a bell.
    """
    at = np.linspace(cdf[0], cdf[-1], _COARSE + 1)
    widths = np.maximum(np.diff(np.interp(at, cdf, LOG_EDGES)), 1e-9)
    top = float(np.sort(widths)[_COARSE // 10])
    share = float((widths <= top / _TOP).mean())
    return min(max((share - _PLATEAU[0]) / (_PLATEAU[1] - _PLATEAU[0]), 0.0), 1.0)


def _shown_best(group: Sequence[Valley]) -> Valley:
    """Return the deepest valley among the windows in which it is nearly as significant as in the best.

    The most significant windows are large. They reach far into well separated classes, so their result depends on the
    shares of the classes. The significance is that of the best window.
    """
    most = max(valley.significance for valley in group)
    nearly = [valley for valley in group if valley.significance >= _NEARLY * most]
    return replace(max(nearly, key=lambda valley: valley.drop - _SURELY * valley.error), significance=most)


def _turns(levels: _Levels) -> NDArray[np.intp]:
    """Return the places of peaks and of deep valleys: only there a fall begins or ends."""
    turns = levels.deep.copy()
    up = levels.dense[1:] >= levels.dense[:-1]
    turns[1:-1] |= up[:-1] & (levels.dense[1:-1] >= levels.dense[2:]) & levels.windows.dense[1:-1]
    turns[[begin for begin, _ in levels.windows.rows]] = True
    return np.flatnonzero(turns)


def alternating(
    places: Sequence[int], dense: Sequence[float], sparse: Sequence[float], needed: float, apart: int = _CLEAR
) -> list[tuple[int, int, int]]:
    """Return the places (left peak, valley, right peak) of each valley at least ``needed`` below both its peaks.

    Peaks are those of ``dense``, valleys those of ``sparse``, both at these places; a peak is at least ``apart`` from
    its valley.
    """
    result: list[tuple[int, int, int]] = []
    top = bottom = pending = places[0]
    highest, lowest = dense[0], math.inf
    left = -1
    falling = False
    for place, peak, low in zip(places, dense, sparse, strict=True):
        if falling:
            if low < lowest:
                bottom, lowest = place, low
            elif peak >= lowest + needed and place - bottom >= apart:
                left, pending, top, highest, falling = top, bottom, place, peak, False
        elif peak > highest:
            top, highest = place, peak
        elif low <= highest - needed and place - top >= apart:
            if left >= 0:
                result.append((left, pending, top))
            bottom, lowest, falling = place, low, True
    if not falling and left >= 0:
        result.append((left, pending, top))
    return result


def _peak_between(a: Valley, b: Valley, level: NDArray[np.float64], needed: float) -> bool:
    """Return whether the density at the window size of ``a`` has a peak between two valleys; if not, they are one."""
    cells = len(level) - 1
    middle = [min(max(round(0.5 * sum(v.low) * cells - 0.5 * _CELLS), 0), cells - _CELLS) for v in (a, b)]
    low, high = min(middle), max(middle)
    return float(level[low : high + 1].max()) - max(float(level[low]), float(level[high])) >= needed


def lowest(cdf: NDArray[np.float64], valley: Valley) -> int:
    """Return the bucket edge of least density in the sparse window of a valley."""
    low, high = np.interp(cdf[0] + (cdf[-1] - cdf[0]) * np.array(valley.low), cdf, LOG_EDGES).tolist()
    first = int(np.searchsorted(LOG_EDGES, low, side="left"))
    last = int(np.searchsorted(LOG_EDGES, high, side="right")) - 1
    if last <= first:
        return min(max(first, 1), BUCKETS - 1)
    at = LOG_EDGES[first : last + 1]
    reach = 0.25 * (high - low)
    mass = np.interp(at + reach, LOG_EDGES, cdf) - np.interp(at - reach, LOG_EDGES, cdf)
    least = np.flatnonzero(mass <= mass.min() + 1e-12)
    return min(max(first + int(least[len(least) // 2]), 1), BUCKETS - 1)
