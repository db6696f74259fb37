"""Borders of one histogram of durations: places of low density between two dense regions.

A border is a local minimum of the gradient of the cumulative distribution (first paper, section 3.1) that stands
out of the noise of the calls counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .density import EDGES, Valley, valleys
from .granularity import Grain, grain_of, spread
from .heaps import without_heaps
from .observation import BUCKETS, Counts
from .settings import MiningSettings

_SMALLEST = 1.5  # least class in units of the match threshold: below the smallest to be found, above a chance excess
_CLOSED = 16  # steps of rounding from which on some buckets have no neighbour that holds no multiple
_TOUCHED = 1e-3  # share of calls whose density a blur must change to be worth its time
_SHARP = 512.0  # a resolution of less than this part of the duration (a sixteenth of a bucket) changes no density


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Why a border is believed."""

    depth: float
    """How far the density falls from the lower of the two peaks, in [0, 1]."""
    significance: float
    """The same fall in standard errors of the logarithm of the density, less an allowance for the number of places
    looked at.
    """
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
    regions: tuple[tuple[float, float], ...]
    """Dense, sparse and dense region, each from and to a duration in ns: where the fall was measured."""
    evidence: Evidence


def borders(
    counts: Counts, *, settings: MiningSettings, z: float | None = None, grain: Grain | None = None
) -> tuple[Border, ...]:
    """Find the borders of a histogram.

    Parameters
    ----------
    counts : ndarray of uint64, shape (BUCKETS,)
        Calls per bucket of duration.
    settings : MiningSettings
        ``match_threshold``, ``window_shares``, ``minimum_depth``, ``minimum_calls``, ``resolution_ns``, ``firm_z``.
    z : float, optional
        Least significance; ``settings.firm_z`` unless given.
    grain : Grain, optional
        Coarseness of the durations, if it is known from more calls than these.

    Returns
    -------
    tuple of Border
        Ascending; any two differ by at least the match threshold in CDF value.
    """
    total = int(counts.sum())
    if total < settings.minimum_calls:
        return ()
    least = settings.firm_z if z is None else z
    cdf, found = _valleys(counts, total, Grain() if grain is None else grain, least, settings)
    if found and grain is None:  # what a coarse clock leaves may look like valleys, it hides none
        grain = grain_of(counts, above_ns=settings.resolution_ns)
        if grain != Grain():
            cdf, found = _valleys(counts, total, grain, least, settings)
    if not found:
        return ()
    exact = np.concatenate(([0.0], np.cumsum(counts, dtype=np.float64) / total))
    return _as_borders(_one_per_match(found, exact, settings), cdf, exact, total)


def _valleys(
    counts: Counts, total: int, grain: Grain, z: float, settings: MiningSettings
) -> tuple[NDArray[np.float64], list[Valley]]:
    cdf = smoothed(counts, settings=settings, grain=grain)
    return cdf, valleys(
        cdf,
        total,
        shares=[share * settings.match_threshold for share in settings.window_shares],
        z=z,
        depth=settings.minimum_depth,
        apart_ns=max(settings.resolution_ns, grain.clock_ns),
    )


def smoothed(counts: Counts, *, settings: MiningSettings, grain: Grain) -> NDArray[np.float64]:
    """Return the CDF at the bucket edges without the traces of coarse clocks and rounding.

    A histogram of at least one call; shape (BUCKETS + 1,).
    """
    resolution = max(settings.resolution_ns, grain.clock_ns)
    values = without_heaps(counts, grain.heaps_ns)
    if grain.heaps_ns > 0:  # finer teeth may be finer heaps
        values = without_heaps(values, grain.clock_ns)
    below = spread(values, grain.clock_ns)
    cdf = below / below[-1]
    if grain.heaps_ns > 0:  # where single heaps cannot be seen their ripples can be closed: they are narrow there
        beyond = _CLOSED * grain.heaps_ns < EDGES
        cdf = np.maximum.accumulate(np.where(beyond, _blurred(cdf, grain.heaps_ns, BUCKETS), cdf))
    last = min(int(np.searchsorted(EDGES, _SHARP * resolution)), BUCKETS)
    return _blurred(cdf, resolution, last) if resolution > 0 and cdf[last] >= _TOUCHED else cdf


def share_between(cdf: NDArray[np.float64], region: tuple[float, float]) -> float:
    """Return the share of the calls with durations in a region, ns."""
    low, high = np.interp(region, EDGES, cdf)
    return float(high - low)


def _blurred(cdf: NDArray[np.float64], resolution_ns: float, last: int) -> NDArray[np.float64]:
    """Return the CDF after adding a triangular error of +-resolution to each duration, up to the edge ``last``."""
    return _boxed(_boxed(cdf, resolution_ns, last), resolution_ns, last)


def _boxed(cdf: NDArray[np.float64], width_ns: float, last: int) -> NDArray[np.float64]:
    """Return the mean of a CDF, linear between the bucket edges, over [edge - width/2, edge + width/2]."""
    half = 0.5 * width_ns
    known = min(int(np.searchsorted(EDGES, EDGES[last] + half)) + 1, BUCKETS)
    edges, values = EDGES[: known + 1], cdf[: known + 1]
    step = edges[1:] - edges[:-1]
    integral = np.concatenate(([0.0], np.cumsum(0.5 * (values[1:] + values[:-1]) * step)))
    slope = (values[1:] - values[:-1]) / step

    def integrated(at: NDArray[np.float64]) -> NDArray[np.float64]:
        index = np.clip(np.searchsorted(edges, at, side="right") - 1, 0, known - 1)
        offset = at - edges[index]
        inside = integral[index] + offset * (values[index] + 0.5 * slope[index] * offset)
        beyond = integral[-1] + (at - edges[-1])
        return np.where(at <= edges[0], 0.0, np.where(at >= edges[-1], beyond, inside))

    at = EDGES[: last + 1]
    blurred = np.clip((integrated(at + half) - integrated(at - half)) / width_ns, 0.0, 1.0)
    return np.concatenate((blurred, np.maximum(cdf[last + 1 :], blurred[-1])))


def _one_per_match(found: Sequence[Valley], cdf: NDArray[np.float64], settings: MiningSettings) -> list[Valley]:
    smallest = _SMALLEST * settings.match_threshold
    kept: list[Valley] = []
    for valley in sorted(found, key=lambda v: v.edge):
        value = float(cdf[valley.edge])
        if not smallest <= value <= 1 - smallest:
            continue
        if kept and value - float(cdf[kept[-1].edge]) < settings.match_threshold:
            continue
        kept.append(valley)
    return kept


def _as_borders(
    kept: Sequence[Valley], smooth: NDArray[np.float64], exact: NDArray[np.float64], total: int
) -> tuple[Border, ...]:
    at = [0.0, *(float(exact[v.edge]) for v in kept), 1.0]
    result = []
    for i, valley in enumerate(kept):
        starts = np.array([valley.left, valley.low, valley.right])
        low, high = (
            np.interp(smooth[0] + (smooth[-1] - smooth[0]) * u, smooth, EDGES) for u in (starts, starts + valley.share)
        )
        result.append(
            Border(
                edge=valley.edge,
                duration_ns=float(EDGES[valley.edge]),
                cdf=at[i + 1],
                regions=tuple(zip(low.tolist(), high.tolist(), strict=True)),
                evidence=Evidence(
                    depth=-math.expm1(-valley.drop),
                    significance=valley.significance,
                    lower_calls=round((at[i + 1] - at[i]) * total),
                    upper_calls=round((at[i + 2] - at[i + 1]) * total),
                ),
            )
        )
    return tuple(result)
