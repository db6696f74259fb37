"""How much the random initial state of a lifetime matters: impact factor, additivity, dependence of calls.

Kalibera, Bulej and Tuma, Benchmark Precision and Random Initial State, SPECTS 2005, section 3.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

DRAWN_SHARE = 0.75
ROUNDS = 10_000


def impact_factor(runs: Sequence[ArrayLike], rng: np.random.Generator, rounds: int = ROUNDS) -> float:
    """Return the median ratio of the spread over lifetimes to the spread inside one; 1: no influence.

    Parameters
    ----------
    runs : sequence of array_like
        Durations of at least three lifetimes, several each.
    rng : numpy.random.Generator
    rounds : int
        Bootstrap rounds.

    Notes
    -----
    Each round: the standard deviation of one call from each of c lifetimes over that of c calls of one lifetime,
    c = 0.75 times the number of lifetimes. In the additive normal model the expectation is
    sqrt(1 + var(A) / var(X)). A lifetime without spread makes the ratio infinite, or 1 if nothing varies.
    """
    data = [np.asarray(run, dtype=np.float64) for run in runs]
    if len(data) < 3:
        raise ValueError(f"an impact factor needs 3 lifetimes, not {len(data)}")
    drawn = max(2, min(int(DRAWN_SHARE * len(data)), min(map(len, data)) - 1))
    if min(map(len, data)) <= drawn:
        raise ValueError(f"an impact factor needs more than {drawn} calls of each lifetime")
    ratios = np.empty(rounds)
    for number in range(rounds):
        chosen = rng.choice(len(data), drawn, replace=False)
        across = np.array([data[k][rng.integers(len(data[k]))] for k in chosen])
        one = data[int(rng.integers(len(data)))]
        inside = one[_distinct(rng, len(one), drawn)]
        outer, inner = float(across.std(ddof=1)), float(inside.std(ddof=1))
        ratios[number] = outer / inner if inner > 0 else (np.inf if outer > 0 else 1.0)
    return float(np.median(ratios))


def centred(runs: Sequence[ArrayLike]) -> list[Floats]:
    """Return the durations less the mean of their lifetime.

    The impact factor of these is near 1 if lifetimes only shift the distribution; above 1.1 they also spread
    it, and formulas for equal variances are approximate.
    """
    return [np.asarray(run, dtype=np.float64) - np.mean(np.asarray(run, dtype=np.float64)) for run in runs]


def expected_impact(lifetime: float, call: float) -> float:
    """Return the impact factor of the additive normal model with these variances."""
    return float(np.sqrt(1.0 + lifetime / call))


def predicted_false_alarms(impact: float, calls: int, level: float) -> float:
    """Return how often disjoint intervals of two single lifetimes (or builds) call equal ones different.

    Notes
    -----
    2 (1 - Phi(sqrt(2) z / R)) with R = sqrt(1 + n (IF^2 - 1)); for the thesis' CORBA Ping 17.9 % (16.7 % seen).
    """
    from statistics import NormalDist  # noqa: PLC0415

    normal = NormalDist()
    widening = float(np.sqrt(1.0 + calls * (impact * impact - 1.0)))
    return 2.0 * normal.cdf(-float(np.sqrt(2.0)) * normal.inv_cdf(0.5 + 0.5 * level) / widening)


def autocorrelation(values: ArrayLike, lags: int = 10) -> Floats:
    """Return the autocorrelation at lags 1 .. ``lags`` of values in the order of time; 0 if nothing varies."""
    series = np.asarray(values, dtype=np.float64)
    away = series - series.mean()
    power = float(away @ away)
    reach = min(lags, len(series) - 1)
    if power <= 0.0:
        return np.zeros(max(reach, 0))
    return np.array([float(away[:-lag] @ away[lag:]) / power for lag in range(1, reach + 1)])


def is_dependent(values: ArrayLike, lags: int = 10) -> bool:
    """Tell whether calls follow each other's durations: an autocorrelation beyond 4 / sqrt(n)."""
    found = autocorrelation(values, lags)
    return bool((np.abs(found) > 4.0 / np.sqrt(np.size(np.asarray(values)))).any())


def _distinct(rng: np.random.Generator, size: int, drawn: int) -> NDArray[np.int64]:
    """Draw distinct indices; for long arrays drawing again is faster than a permutation."""
    if drawn * drawn > size:
        return rng.choice(size, drawn, replace=False)
    while True:
        chosen = rng.integers(size, size=drawn)
        if len(np.unique(chosen)) == drawn:
            return chosen
