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
    sizes = np.array([len(run) for run in data])
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    chosen = _distinct(rng, len(data), drawn, rounds)
    picked = (rng.random(chosen.shape) * sizes[chosen]).astype(np.int64)
    outer = np.concatenate(data)[starts[chosen] + picked].std(axis=1, ddof=1)
    inner = np.empty(rounds)
    one = rng.integers(len(data), size=rounds)
    for run, values in enumerate(data):
        rows = np.flatnonzero(one == run)
        inner[rows] = values[_distinct(rng, len(values), drawn, len(rows))].std(axis=1, ddof=1)
    ratios = np.where(outer > 0, np.inf, 1.0)
    np.divide(outer, inner, out=ratios, where=inner > 0)
    return float(np.median(ratios))


def expected_impact(lifetime: float, call: float) -> float:
    """Return the impact factor of the additive normal model with these variances."""
    return float(np.sqrt(1.0 + lifetime / call))


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
    """Return whether calls follow each other's durations: an autocorrelation beyond 4 / sqrt(n)."""
    found = autocorrelation(values, lags)
    return bool((np.abs(found) > 4.0 / np.sqrt(np.size(np.asarray(values)))).any())


def _distinct(rng: np.random.Generator, size: int, drawn: int, rows: int) -> NDArray[np.int64]:
    """Draw rows of distinct indices below ``size``, shape (rows, drawn)."""
    if drawn * drawn > size:
        return np.argpartition(rng.random((rows, size)), drawn - 1, axis=1)[:, :drawn]
    found = rng.integers(size, size=(rows, drawn))  # for long runs drawing again is faster than an order of all
    while (again := np.flatnonzero((np.diff(np.sort(found, axis=1), axis=1) == 0).any(axis=1))).size:
        found[again] = rng.integers(size, size=(len(again), drawn))
    return found
