"""Borders of one histogram of durations: places of low density between two dense regions.

A border is a local minimum of the gradient of the cumulative distribution (first paper, section 3.1). It must be
significant given the number of calls.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from specmine.mining.settings import MiningSettings
from specmine.model.buckets import BUCKETS
from specmine.model.histogram import Histogram

from .clock_resolution import Grain, grain_of, spread
from .heaping import without_heaping
from .smoothing import smoothed_cdf
from .valleys import EDGES, Valley, has_valleys, lowest, valleys

_SMALLEST = 1.5  # least class in match thresholds: smaller than the smallest to find, larger than a random excess
_CLOSED = 16  # steps of rounding from which all neighbours of some buckets hold a multiple
_TOUCHED = 1e-3  # share of calls whose density smoothing must change; otherwise it is skipped
_SHARP = 512.0  # a resolution below duration / 512 (a sixteenth of a bucket) does not change the density


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The numbers that a border rests on."""

    depth: float
    """How far the density falls from the lower of the two peaks, in [0, 1]."""
    significance: float
    """The same fall in standard errors of the log density, less an allowance for the number of places tested."""
    lower_calls: int
    """Calls in the class below the border."""
    upper_calls: int
    """Calls in the class above the border."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Border:
    """A place that cuts a duration distribution in two."""

    edge: int
    """First bucket of the upper class; the border's duration is ``BUCKET_EDGES[edge]``."""
    duration_ns: float
    cdf: float
    """Share of the calls below it."""
    regions: tuple[tuple[float, float], ...]
    """Dense, sparse and dense region in which the fall was measured, each from and to a duration in ns."""
    evidence: Evidence


def borders(
    histogram: Histogram, *, settings: MiningSettings, z: float | None = None, grain: Grain | None = None
) -> tuple[Border, ...]:
    """Return the borders of a histogram.

    Parameters
    ----------
    histogram : Histogram
        Of durations.
    settings : MiningSettings
        ``match_threshold``, ``window_shares``, ``minimum_depth``, ``minimum_calls``, ``resolution_ns``, ``firm_z``.
    z : float, optional
        Least significance; ``settings.firm_z`` unless given.
    grain : Grain, optional
        Coarseness of the durations, if it is known from more calls.

    Returns
    -------
    tuple of Border
        Ascending; any two differ by at least the match threshold in CDF value.
    """
    total = histogram.total
    if total < settings.minimum_calls:
        return ()
    least = settings.firm_z if z is None else z
    if grain is None:
        grain = grain_behind(histogram, settings=settings, z=least)
        if grain is None:
            return ()
    cdf, found = _valleys(histogram, total, grain, least, settings)
    for step in grain.perhaps_ns:
        if not found:
            break
        also = _valleys(histogram, total, replace(grain, heaping_ns=step), least, settings)[1]
        found = [valley for valley in found if any(valley.holds(other) for other in also)]
    if not found:
        return ()
    exact = np.concatenate(([0.0], np.cumsum(histogram.dense, dtype=np.float64) / total))
    placed = sorted(((lowest(cdf, valley), valley) for valley in found), key=lambda pair: pair[0])
    return _as_borders(_one_per_match(placed, exact, settings), cdf, exact, total)


def grain_behind(histogram: Histogram, *, settings: MiningSettings, z: float) -> Grain | None:
    """Return the coarseness of the durations of at least one call; None if their density has no valleys.

    A coarse clock may cause valleys, but never hides one. So without valleys its step does not matter.
    """
    cdf, _ = smoothed(histogram, settings=settings, grain=Grain())
    shares = _shares(settings)
    if has_valleys(cdf, histogram.total, shares=shares, z=z, depth=settings.minimum_depth):
        return grain_of(histogram.dense, above_ns=settings.resolution_ns)
    return None


def _shares(settings: MiningSettings) -> list[float]:
    return [share * settings.match_threshold for share in settings.window_shares]


def _valleys(
    histogram: Histogram, total: int, grain: Grain, z: float, settings: MiningSettings
) -> tuple[NDArray[np.float64], list[Valley]]:
    cdf, unmoved = smoothed(histogram, settings=settings, grain=grain)
    return cdf, valleys(
        cdf,
        math.floor(total * unmoved),
        shares=_shares(settings),
        z=z,
        depth=settings.minimum_depth,
        apart_ns=max(settings.resolution_ns, grain.clock_ns),
    )


def smoothed(histogram: Histogram, *, settings: MiningSettings, grain: Grain) -> tuple[NDArray[np.float64], float]:
    """Return the CDF corrected for coarse clocks and rounding, and the share of the calls that the correction left.

    Parameters
    ----------
    histogram : Histogram
        At least one call.
    settings : MiningSettings
        ``resolution_ns``.
    grain : Grain

    Returns
    -------
    ndarray of float64, shape (BUCKETS + 1,)
        At the bucket edges.
    float
        Share of the calls that were not moved. Moved calls give no evidence of the density within a step.
    """
    resolution = max(settings.resolution_ns, grain.clock_ns)
    counts = histogram.dense.astype(np.float64)
    values, unmoved = counts, 1.0
    if grain.heaping_ns > 0:  # a finer step of the clock may be finer heaping
        values = without_heaping(without_heaping(counts, grain.heaping_ns), grain.clock_ns)
        unmoved -= 0.5 * float(np.abs(values - counts).sum() / counts.sum())
    below = spread(values, grain.clock_ns)
    cdf = below / below[-1]
    if grain.heaping_ns > 0:  # single heaps are not resolved there, but narrow, so smoothing removes them
        beyond = _CLOSED * grain.heaping_ns < EDGES
        cdf = np.maximum.accumulate(np.where(beyond, smoothed_cdf(cdf, grain.heaping_ns, BUCKETS), cdf))
    last = min(int(np.searchsorted(EDGES, _SHARP * resolution)), BUCKETS)
    return smoothed_cdf(cdf, resolution, last) if resolution > 0 and cdf[last] >= _TOUCHED else cdf, unmoved


def share_between(cdf: NDArray[np.float64], region: tuple[float, float]) -> float:
    """Return the share of the calls with durations in a region, ns."""
    low, high = np.interp(region, EDGES, cdf)
    return float(high - low)


def _one_per_match(
    found: Sequence[tuple[int, Valley]], cdf: NDArray[np.float64], settings: MiningSettings
) -> list[tuple[int, Valley]]:
    smallest = _SMALLEST * settings.match_threshold
    separate: list[tuple[int, Valley]] = []
    for edge, valley in found:
        value = float(cdf[edge])
        if not smallest <= value <= 1 - smallest:
            continue
        if separate and value - float(cdf[separate[-1][0]]) < settings.match_threshold:
            continue
        separate.append((edge, valley))
    return separate


def _as_borders(
    separate: Sequence[tuple[int, Valley]], smooth: NDArray[np.float64], exact: NDArray[np.float64], total: int
) -> tuple[Border, ...]:
    at = [0.0, *(float(exact[edge]) for edge, _ in separate), 1.0]
    result = []
    for i, (edge, valley) in enumerate(separate):
        ends = np.array([valley.left, valley.low, valley.right])
        regions = np.interp(smooth[0] + (smooth[-1] - smooth[0]) * ends, smooth, EDGES).tolist()
        result.append(
            Border(
                edge=edge,
                duration_ns=float(EDGES[edge]),
                cdf=at[i + 1],
                regions=tuple((low, high) for low, high in regions),
                evidence=Evidence(
                    depth=-math.expm1(-valley.drop),
                    significance=valley.significance,
                    lower_calls=round((at[i + 1] - at[i]) * total),
                    upper_calls=round((at[i + 2] - at[i + 1]) * total),
                ),
            )
        )
    return tuple(result)
