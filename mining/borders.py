"""Borders of one histogram of durations: places of low density between two dense regions.

A border is a local minimum of the gradient of the cumulative distribution (first paper, section 3.1) that
stands out of the noise. The gradient is taken over log duration from windows that all hold the same share of
the calls (a nearest-neighbour density), so that its relative error is the same everywhere: a valley between
two peaks counts when it is deeper than so many of these standard errors, whatever the shape and scale of the
classes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .granularity import clock_step, spread
from .observation import BUCKETS, Counts, bucket_edges
from .settings import MiningSettings

_CELLS_PER_THRESHOLD = 10
_EDGES = bucket_edges()
_EDGES[0] *= 0.5  # the first bucket also holds all shorter durations: it is no peak
_LOG_EDGES = np.log(_EDGES)
_EDGES.flags.writeable = _LOG_EDGES.flags.writeable = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Why a border is believed."""

    depth: float
    """How far the density falls from the lower of the two peaks, in [0, 1]."""
    significance: float
    """The same fall in standard errors of the logarithm of the density."""
    lower_calls: int
    """Calls in the class below, down to the next border."""
    upper_calls: int
    """Calls in the class above, up to the next border."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Border:
    """A place that cuts a duration distribution in two."""

    edge: int
    """First bucket of the upper class; the border's duration is ``bucket_edges()[edge]``."""
    duration_ns: float
    cdf: float
    """Share of the calls below it."""
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class _Valley:
    """A valley of the density at one window size."""

    position: float  # start of the window, as a CDF value
    share: float  # share of calls in the window
    drop: float  # fall of the log density from the lower peak
    error: float  # standard error of the log density
    edge: int

    @property
    def significance(self) -> float:
        return self.drop / (math.sqrt(2) * self.error)


def borders(counts: Counts, *, settings: MiningSettings, resolution_ns: float | None = None) -> tuple[Border, ...]:
    """Find the borders of a histogram.

    Parameters
    ----------
    counts : ndarray of uint64, shape (BUCKETS,)
        Calls per bucket of duration.
    settings : MiningSettings
        ``match_threshold``, ``window_shares``, ``minimum_depth``, ``candidate_z``, ``minimum_calls``.
    resolution_ns : float, optional
        Measuring uncertainty; ``settings.resolution_ns`` unless given. A coarser clock is recognised.

    Returns
    -------
    tuple of Border
        Ascending; any two differ by at least the match threshold in CDF value, and from 0 and 1.

    Notes
    -----
    With Q the quantile function of log durations, the density over a window of share m at u is
    m / (Q(u + m) - Q(u)); its logarithm has the standard error 1 / sqrt(n m). One pass of hysteresis over it
    leaves the alternating peaks and valleys that differ by more than ``candidate_z`` such errors times
    sqrt(2) and by ``minimum_depth``.
    """
    total = int(counts.sum())
    if total < settings.minimum_calls:
        return ()
    resolution = settings.resolution_ns if resolution_ns is None else resolution_ns
    step = clock_step(counts, above_ns=resolution)
    resolution = max(resolution, step)
    cdf = _blurred(spread(counts, step) / total, resolution)
    valleys = _valleys(cdf, total, settings, resolution)
    exact = np.concatenate(([0.0], np.cumsum(counts, dtype=np.float64) / total))
    return _as_borders(_one_per_match(valleys, exact, settings), exact, total)


def _blurred(cdf: NDArray[np.float64], resolution_ns: float) -> NDArray[np.float64]:
    """Return the CDF at the bucket edges after adding a triangular error of +-resolution to each duration."""
    if resolution_ns > 0:
        for _ in range(2):
            cdf = _boxed(cdf, resolution_ns)
    return cdf


def _boxed(cdf: NDArray[np.float64], width_ns: float) -> NDArray[np.float64]:
    """Return the mean of a CDF, linear between the bucket edges, over [edge - width/2, edge + width/2]."""
    step = np.diff(_EDGES)
    integral = np.concatenate(([0.0], np.cumsum(0.5 * (cdf[1:] + cdf[:-1]) * step)))

    def integrated(at: NDArray[np.float64]) -> NDArray[np.float64]:
        index = np.clip(np.searchsorted(_EDGES, at, side="right") - 1, 0, BUCKETS - 1)
        offset = at - _EDGES[index]
        slope = (cdf[index + 1] - cdf[index]) / step[index]
        inside = integral[index] + offset * (cdf[index] + 0.5 * slope * offset)
        beyond = integral[-1] + (at - _EDGES[-1])
        return np.where(at <= _EDGES[0], 0.0, np.where(at >= _EDGES[-1], beyond, inside))

    half = 0.5 * width_ns
    return np.clip((integrated(_EDGES + half) - integrated(_EDGES - half)) / width_ns, 0.0, 1.0)


def _valleys(cdf: NDArray[np.float64], total: int, settings: MiningSettings, resolution_ns: float) -> list[_Valley]:
    """Return the valleys over all window sizes, clearest first, one for each pair of peaks."""
    cell = settings.match_threshold / _CELLS_PER_THRESHOLD
    cells = math.ceil(1 / cell)
    # what the blur puts below the layout is left tail, not a peak at its first edge
    quantile = np.interp(np.linspace(cdf[0], cdf[-1], cells + 1), cdf, _LOG_EDGES)
    found: list[tuple[_Valley, NDArray[np.float64], float]] = []
    for share in settings.window_shares:
        width = max(2, round(share * _CELLS_PER_THRESHOLD))
        mass = width / cells
        span = np.maximum(quantile[width:] - quantile[:-width], 1e-9)
        level = -np.log(span)
        error = 1 / math.sqrt(max(total * mass - 0.5, 0.5))
        needed = max(settings.candidate_z * math.sqrt(2) * error, -math.log1p(-settings.minimum_depth))
        for left, low, right in alternating(level, needed):
            drop = float(min(level[left], level[right]) - level[low])
            apart = np.exp(quantile[right + width // 2]) - np.exp(quantile[left + width // 2])
            if apart <= resolution_ns:
                continue
            edge = _lowest(cdf, quantile[low], quantile[low + width])
            found.append((_Valley(low / cells, mass, drop, error, edge), level, needed))
    found.sort(key=lambda item: (-item[0].significance, item[0].edge))
    kept: list[_Valley] = []
    for valley, level, needed in found:
        if all(_peak_between(valley, other, level, needed, cells) for other in kept):
            kept.append(valley)
    return kept


def _peak_between(a: _Valley, b: _Valley, level: NDArray[np.float64], needed: float, cells: int) -> bool:
    """Return whether the density at the window size of ``a`` has a peak between two valleys: else they are one."""
    middle = [min(max(round((v.position + 0.5 * v.share - 0.5 * a.share) * cells), 0), len(level) - 1) for v in (a, b)]
    low, high = min(middle), max(middle)
    peak = float(level[low : high + 1].max())
    return peak - max(float(level[low]), float(level[high])) >= needed


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


def _lowest(cdf: NDArray[np.float64], low: float, high: float) -> int:
    """Return the bucket edge of least density in a window of log durations."""
    first = int(np.searchsorted(_LOG_EDGES, low, side="left"))
    last = int(np.searchsorted(_LOG_EDGES, high, side="right")) - 1
    if last <= first:
        return min(max(first, 1), BUCKETS - 1)
    at = _LOG_EDGES[first : last + 1]
    reach = 0.25 * (high - low)
    mass = np.interp(at + reach, _LOG_EDGES, cdf) - np.interp(at - reach, _LOG_EDGES, cdf)
    lowest = np.flatnonzero(mass <= mass.min() + 1e-12)
    return min(max(first + int(lowest[len(lowest) // 2]), 1), BUCKETS - 1)


def _one_per_match(valleys: list[_Valley], cdf: NDArray[np.float64], settings: MiningSettings) -> list[_Valley]:
    kept: list[_Valley] = []
    for valley in sorted(valleys, key=lambda v: v.edge):
        value = float(cdf[valley.edge])
        if not settings.match_threshold <= value <= 1 - settings.match_threshold:
            continue
        if kept and value - float(cdf[kept[-1].edge]) < settings.match_threshold:
            continue
        kept.append(valley)
    return kept


def _as_borders(valleys: list[_Valley], cdf: NDArray[np.float64], total: int) -> tuple[Border, ...]:
    at = [0.0, *(float(cdf[v.edge]) for v in valleys), 1.0]
    return tuple(
        Border(
            edge=valley.edge,
            duration_ns=float(_EDGES[valley.edge]),
            cdf=at[i + 1],
            evidence=Evidence(
                depth=-math.expm1(-valley.drop),
                significance=valley.significance,
                lower_calls=round((at[i + 1] - at[i]) * total),
                upper_calls=round((at[i + 2] - at[i + 1]) * total),
            ),
        )
        for i, valley in enumerate(valleys)
    )
