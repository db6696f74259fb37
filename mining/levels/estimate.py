"""Levels from windows: quantiles, each with the range in which a window of an unchanged program stays.

The range is a prediction interval for one more window, of a new lifetime too. Student's t gives it where few windows
are known. Beyond that it is scaled until it holds 99 % of the windows it was learned from, whatever their distribution
(split conformal prediction: Vovk, Gammerman, Shafer, *Algorithmic Learning in a Random World*, 2.2).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from specmine.mining.statistics.student_t import t_quantile
from specmine.model.histogram import Histogram, quantiles_of
from specmine.model.level import PROBABILITIES, Level, Quantile

from .variation import Variation, variation
from .window import FLOOR_NS, Window

LEAST_CALLS = {"p50": 100, "p90": 100, "p99": 300}
"""Timed calls from which a quantile is stated."""
WINDOW_CALLS = {"p50": 30, "p90": 100, "p99": 300}
"""Neighbouring windows of fewer calls count as one."""
LEAST_WINDOWS = 5
"""Windows from which a range is stated."""
COVERED = 0.99
"""Share of an unchanged program's windows in the range."""
GRAIN = 0.01
"""Standard deviation, in log units, below which no window is known: a bucket of the histograms is 3 % wide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """One quantile of each window, in log ns, less the bias."""

    values: NDArray[np.float64]
    sampling: NDArray[np.float64]
    """Sampling variances."""
    lifetimes: tuple[str, ...]


def level_of(windows: Sequence[Window], *, lifetime_sd: float | None = None) -> Level:
    """Return the level of some calls.

    Parameters
    ----------
    windows : sequence of Window
        In the order of time within each lifetime.
    lifetime_sd : float, optional
        Spread of lifetimes in log units, assumed while fewer than three were observed; by default 3 %.

    Returns
    -------
    Level
        A quantile is None while there are too few calls for it, its range while there are too few windows.
    """
    windows = [one for one in windows if one.histogram.total]
    plain = plain_level(windows)
    p50, p90, p99 = (_with_range(plain.quantile(name), name, windows, lifetime_sd) for name in PROBABILITIES)
    return replace(plain, p50=p50, p90=p90, p99=p99)


def plain_level(windows: Sequence[Window], least: Mapping[str, int] = LEAST_CALLS) -> Level:
    """Return the quantiles of some windows together, without ranges.

    Parameters
    ----------
    windows : sequence of Window
    least : mapping of str to int
        Timed calls from which a quantile is stated, by its name.
    """
    windows = [one for one in windows if one.histogram.total]
    calls = sum(one.histogram.total for one in windows)
    if not calls:
        return Level()
    bias_ns = sum(one.bias_ns * one.histogram.total for one in windows) / calls
    names = [name for name in PROBABILITIES if calls >= least[name]]
    values = Histogram.sum(one.histogram for one in windows).quantiles([PROBABILITIES[name] for name in names])
    found = {name: Quantile(ns=max(0.0, ns - bias_ns)) for name, ns in zip(names, values, strict=True)}
    return Level(**found, calls=calls, windows=len(windows), lifetimes=len({one.lifetime for one in windows}))


def places_of(windows: Sequence[Window], name: str) -> Places:
    """Return a quantile of each window; neighbours in one lifetime count as one until they hold enough calls."""
    joined = _joined(windows, WINDOW_CALLS[name])
    values, sampling = _places(joined, PROBABILITIES[name])
    return Places(values=values, sampling=sampling, lifetimes=tuple(one.lifetime for one in joined))


def place_of(window: Window, probability: float) -> tuple[float, float]:
    """Return a quantile of a window in log ns less the bias, and its sampling variance."""
    values, sampling = _places([window], probability)
    return float(values[0]), float(sampling[0])


def _places(windows: Sequence[Window], probability: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the same of each window.

    The variance is the square of half the distance of the quantiles one binomial standard deviation to either side.
    """
    calls = np.array([one.histogram.total for one in windows], np.float64)
    apart = np.sqrt(probability * (1 - probability) / calls)
    levels = probability + np.stack([-apart, np.zeros_like(apart), apart], axis=1)
    around = quantiles_of([one.histogram for one in windows], levels) - np.array([[one.bias_ns] for one in windows])
    low, at, high = np.log(np.maximum(around, FLOOR_NS)).T
    return at, (0.5 * (high - low)) ** 2


def range_of(known: Variation) -> tuple[float, float]:
    """Return the range of one more window's location, in log units."""
    window = known.window_sd**2 + GRAIN**2
    within = window + known.window_variance / known.independent
    lifetime = known.lifetime_variance * (1 + 1 / known.lifetimes)
    # Satterthwaite, Biometrics Bulletin 2, 1946
    both = (within + lifetime) ** 2 / (within**2 / known.window_freedom + lifetime**2 / known.lifetime_freedom)
    half = t_quantile(0.5 + COVERED / 2, both) * math.sqrt(within + lifetime)
    nearly = known.windows * (1 - known.correlation)  # windows so far apart are nearly independent
    rank = math.ceil((nearly + 1) * COVERED)
    distances = np.sort(np.abs(known.residuals))
    if rank <= nearly:
        scale = float(distances[math.ceil(rank / nearly * len(distances)) - 1])
        beyond = t_quantile(0.5 + COVERED / 2, known.lifetime_freedom) ** 2 * lifetime
        half = math.sqrt(scale**2 * window + beyond)
    else:  # too few windows to know their 99 % quantile: all that were seen are inside
        half = max(half, math.sqrt(float(distances[-1]) ** 2 * window + lifetime))
    return known.mean - half, known.mean + half


def _with_range(
    plain: Quantile | None, name: str, windows: Sequence[Window], lifetime_sd: float | None
) -> Quantile | None:
    if plain is None:
        return None
    places = places_of(windows, name)
    if len(places.values) < LEAST_WINDOWS:
        return plain
    low, high = range_of(variation(places.values, places.sampling, places.lifetimes, lifetime_sd=lifetime_sd))
    uncertainty_ns = max(one.uncertainty_ns for one in windows)
    return Quantile(
        ns=plain.ns,
        low_ns=max(0.0, min(plain.ns, math.exp(low)) - uncertainty_ns),
        high_ns=max(plain.ns, math.exp(high)) + uncertainty_ns,
    )


def _joined(windows: Sequence[Window], least: int) -> list[Window]:
    """Return windows of at least so many calls each, if their lifetime has as many; oldest first in each lifetime."""
    joined: list[Window] = []
    for lifetime in dict.fromkeys(one.lifetime for one in windows):
        parts: list[list[Window]] = []
        for one in (one for one in windows if one.lifetime == lifetime):
            if parts and sum(part.histogram.total for part in parts[-1]) < least:
                parts[-1].append(one)
            else:
                parts.append([one])
        if len(parts) > 1 and sum(part.histogram.total for part in parts[-1]) < least:
            last = parts.pop()
            parts[-1].extend(last)
        joined.extend(_sum(part) for part in parts)
    return joined


def _sum(windows: Sequence[Window]) -> Window:
    if len(windows) == 1:
        return windows[0]
    calls = sum(one.histogram.total for one in windows)
    return Window(
        histogram=Histogram.sum(one.histogram for one in windows),
        start_ns=windows[0].start_ns,
        end_ns=windows[-1].end_ns,
        lifetime=windows[0].lifetime,
        bias_ns=sum(one.bias_ns * one.histogram.total for one in windows) / calls,
        uncertainty_ns=max(one.uncertainty_ns for one in windows),
    )
