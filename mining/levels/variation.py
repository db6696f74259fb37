"""How far the location of windows varies: between lifetimes, between windows of one, and by the sampling of calls.

The model of a location in log ns is mean + lifetime effect + window effect + sampling error. The window effects of one
lifetime are an autoregressive process of order 1, because load and caches last longer than a window.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

WINSOR = 2.5
"""Residuals beyond so many standard deviations count as at that distance (Huber, *Robust Statistics*, 6.7)."""
WINSORISED = 0.9776
"""Variance of a standard normal winsorised there."""
MOST_CORRELATION = 0.985
LEAST_SEEN = 0.4
"""Share of the spread about the true mean that windows show about their own, at least."""
PRIOR_PAIRS = 12
"""Pairs of neighbours that the assumption of no correlation is worth."""
LIFETIME_SD = 0.03
"""Assumed spread of lifetimes, in log units, until three of them were observed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation:
    """The components of variance of windows' locations, in log units."""

    mean: float
    lifetime_variance: float
    """Between lifetimes."""
    lifetime_freedom: float
    """Degrees of freedom of it; inf where it is assumed."""
    window_variance: float
    """Between windows of one lifetime, without sampling."""
    sampling_variance: float
    """Mean of the windows."""
    correlation: float
    """Of neighbouring windows of one lifetime."""
    windows: int
    lifetimes: int
    residuals: NDArray[np.float64]
    """Of each window from its lifetime's mean, in standard deviations of a window."""

    @property
    def independent(self) -> float:
        """To how many independent windows these are equivalent."""
        return max(1.0, self.windows * (1 - self.correlation) / (1 + self.correlation))

    @property
    def window_freedom(self) -> float:
        """Degrees of freedom of the variance between windows: squares are correlated less (Bartlett, 1946)."""
        square = self.correlation**2
        return max(2.0, self.windows * (1 - square) / (1 + square) - self.lifetimes)

    @property
    def window_sd(self) -> float:
        """Standard deviation of a window of one lifetime, sampling included."""
        return math.sqrt(self.window_variance + self.sampling_variance)


def variation(
    places: NDArray[np.float64],
    sampling: NDArray[np.float64],
    lifetimes: Sequence[str],
    *,
    lifetime_sd: float | None = None,
) -> Variation:
    """Estimate the components by moments.

    Parameters
    ----------
    places : ndarray, shape (windows,)
        Locations in log units, in the order of time within each lifetime; at least one.
    sampling : ndarray, shape (windows,)
        Their sampling variances.
    lifetimes : sequence of str
        The lifetime of each window.
    lifetime_sd : float, optional
        Assumed spread of lifetimes while fewer than three were observed, such as that of the program's other functions.
    """
    groups = [np.flatnonzero(np.array([one == name for one in lifetimes])) for name in dict.fromkeys(lifetimes)]
    centres = np.array([_centre(places[group]) for group in groups])
    residuals = np.concatenate([places[group] - centre for group, centre in zip(groups, centres, strict=True)])
    error = float(sampling.mean())
    spread = _winsorised_variance(residuals)
    correlation = _correlation([places[group] - at for group, at in zip(groups, centres, strict=True)], spread, error)
    sizes = np.array([len(group) for group in groups], dtype=np.float64)
    # windows spread less about their own mean than about the true one, by the variance of that mean
    of_one = np.minimum(1.0, (1 + correlation) / (1 - correlation) / sizes)
    seen = 1 - float(of_one @ sizes / sizes.sum())
    window = max(0.0, spread - error * (1 - len(groups) / len(places))) / max(LEAST_SEEN, seen)
    of_mean = window * of_one + error / sizes
    if len(groups) >= 3:
        between = max(0.0, float(centres.var(ddof=1)) - float(of_mean.mean()))
        between_freedom = len(groups) - 1.0
    else:
        between, between_freedom = (LIFETIME_SD if lifetime_sd is None else lifetime_sd) ** 2, math.inf
    weights = 1 / np.maximum(between + of_mean, 1e-12)
    return Variation(
        mean=float(weights @ centres / weights.sum()),
        lifetime_variance=between,
        lifetime_freedom=between_freedom,
        window_variance=window,
        sampling_variance=error,
        correlation=correlation,
        windows=len(places),
        lifetimes=len(groups),
        residuals=residuals / max(math.sqrt(window + error), 1e-12),
    )


def _centre(values: NDArray[np.float64]) -> float:
    """Return the mean of values that are winsorised about their median."""
    middle = median(values.tolist())
    spread = 1.4826 * median(np.abs(values - middle).tolist())
    if spread == 0.0:
        return float(values.mean())
    return float(np.clip(values, middle - WINSOR * spread, middle + WINSOR * spread).mean())


def _winsorised_variance(residuals: NDArray[np.float64]) -> float:
    """Return Huber's proposal 2 for residuals of known centre 0."""
    squares = residuals**2
    value = float(squares.mean())
    for _ in range(50):
        new = float(np.minimum(squares, WINSOR**2 * value).mean()) / WINSORISED
        if abs(new - value) <= 1e-9 * value:
            break
        value = new
    return value


def _correlation(series: Sequence[NDArray[np.float64]], total: float, error: float) -> float:
    """Return the lag-1 correlation of the window effects; at least 0."""
    between = total - error
    if between <= 0.05 * total:
        return 0.0
    most = WINSOR * math.sqrt(total)
    clipped = [np.clip(one, -most, most) for one in series if len(one) > 1]
    pairs = sum(len(one) - 1 for one in clipped)
    if pairs < 3:
        return 0.0
    lagged = sum(float(one[1:] @ one[:-1]) for one in clipped) / pairs
    square = sum(float(one @ one) for one in clipped) / sum(len(one) for one in clipped)
    found = lagged / square if square else 0.0
    found += (1 + 3 * found) / pairs  # the bias of few pairs (Kendall, Biometrika 41, 1954)
    found *= pairs / (pairs + PRIOR_PAIRS)  # few pairs know little of it
    return float(min(MOST_CORRELATION, max(0.0, found * total / between)))
