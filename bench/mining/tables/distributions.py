"""What is drawn for tables of docs/measured/mining.md: distributions of durations as they are seen, bucket by bucket.

The chance of each bucket is computed from the distribution function, so a histogram of any number of calls is one
multinomial draw, and a million calls cost no more than two hundred.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from specmine.model.buckets import BUCKET_EDGES, BUCKETS, bucket_of
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation, PathHistogram

Cdf = Callable[[NDArray[np.float64]], NDArray[np.float64]]
Chances = NDArray[np.float64]
"""Chance of each bucket, shape (BUCKETS,)."""


FAMILIES: dict[str, Cdf] = {
    "normal, sd 10 %": stats.norm(2e4, 2e3).cdf,
    "lognormal, sigma 0.5": stats.lognorm(0.5, scale=2e4).cdf,
    "exponential": stats.expon(scale=2e4).cdf,
    "gamma, shape 0.7": stats.gamma(0.7, scale=2e4).cdf,
    "Weibull, shape 0.6": stats.weibull_min(0.6, scale=2e4).cdf,
    "Pareto, alpha 1.5": stats.pareto(1.5, scale=1e4).cdf,
    "uniform": stats.uniform(1e4, 2e4).cdf,
}


def chances_of(cdf: Cdf) -> Chances:
    """Return the chance of each bucket for whole ns, durations below 0 as 0."""
    below = np.concatenate(([0.0], cdf(BUCKET_EDGES[1:-1]), [1.0]))
    return np.asarray(np.diff(below))


def rounded(cdf: Cdf, step: float) -> Chances:
    """Return the chances of durations rounded to multiples of the step."""
    last = int(1.1e12 // step)
    number = np.arange(min(last, 4_000_000) + 1)
    below = np.asarray(cdf(((number + 0.5) * step).astype(np.float64)), dtype=np.float64)
    mass: NDArray[np.float64] = np.diff(below, prepend=0.0)
    mass[-1] += 1.0 - mass.sum()
    found: Chances = np.bincount(bucket_of(np.round(number * step)), np.maximum(mass, 0.0), BUCKETS).astype(np.float64)
    return found


def preempted(cdf: Cdf, share: float = 0.005) -> Chances:
    """Return the chances where this share of the calls takes 1 to 4 ms longer."""
    grid = np.geomspace(1.0, 1e9, 20_001)
    mass = np.diff(np.concatenate(([0.0], cdf(grid))))
    late = stats.uniform(1e6, 3e6)
    below = np.array([float((mass * late.cdf(edge - grid)).sum()) for edge in BUCKET_EDGES[1:-1]])
    return (1 - share) * chances_of(cdf) + share * np.diff(np.concatenate(([0.0], below, [1.0])))


DIRT: dict[str, Callable[[Cdf], Chances]] = {
    "clean": chances_of,
    "0.5 % preempted": preempted,
    "clock 40 ns": lambda cdf: rounded(cdf, 40.0),
    "clock 1 us": lambda cdf: rounded(cdf, 1_000.0),
    "30 % rounded to 1 us": lambda cdf: 0.7 * chances_of(cdf) + 0.3 * rounded(cdf, 1_000.0),
    "10 % rounded to 5 us": lambda cdf: 0.9 * chances_of(cdf) + 0.1 * rounded(cdf, 5_000.0),
    "20 % rounded to 10 us": lambda cdf: 0.8 * chances_of(cdf) + 0.2 * rounded(cdf, 10_000.0),
}


def observed(index: int, histogram: Histogram, paths: tuple[PathHistogram, ...] = ()) -> Observation:
    """Return an observation of ten seconds."""
    return Observation(
        function="f",
        lifetime="l",
        kind=Kind.PATH if paths else Kind.TIME,
        start_ns=index * 10**10,
        end_ns=(index + 1) * 10**10,
        histogram=histogram,
        calls=histogram.total,
        watched_ns=10**10,
        paths=paths,
    )


def history(rng: np.random.Generator, chances: Chances, calls: int, count: int = 10) -> list[Observation]:
    """Draw observations of so many calls each."""
    return [observed(index, row) for index, row in enumerate(_drawn(rng, chances, calls, count))]


def sum_of_history(rng: np.random.Generator, chances: Chances, calls: int, count: int = 10) -> Histogram:
    """Draw the sum of such observations only."""
    return _drawn(rng, chances, calls * count, 1)[0]


def parted(rng: np.random.Generator, together: Histogram, count: int = 10) -> list[Observation]:
    """Draw the observations of equal size that have this sum; with the above the same as ``history``."""
    left, calls = together.dense.astype(np.int64), together.total // count
    parts = []
    for index in range(count):
        own = rng.multivariate_hypergeometric(left, calls, method="marginals") if index < count - 1 else left
        left = left - own
        parts.append(observed(index, Histogram.from_dense(own)))
    return parts


def _drawn(rng: np.random.Generator, chances: Chances, calls: int, count: int) -> list[Histogram]:
    filled = np.flatnonzero(chances > 0)
    rows = np.zeros((count, BUCKETS), dtype=np.uint64)
    rows[:, filled] = rng.multinomial(calls, chances[filled] / chances[filled].sum(), size=count)
    return [Histogram.from_dense(row) for row in rows]
