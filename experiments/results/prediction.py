"""What a function's calls will take under competition, from what they take alone and the host's properties. Pure.

The thesis feeds its properties into a simulation (Palladio, sections 5.7 and 5.8). For one thread that competes with
k others that always want the CPU, there is a closed form: a call of demand D that meets the end of its turn n times
takes D + n k S, S the slice, and n is floor(D/S) or one more, more with probability D/S - floor(D/S), since a call
begins anywhere within a turn. Not pinned, k + 1 tasks on c cores make queues of floor and ceil((k+1)/c): the kernel
moves tasks between them every some ten milliseconds, so a call passes in one of them, and as all CPUs do equal work, in
a longer one with probability (k+1)/c - floor((k+1)/c). There it waits for the others of that queue at each turn's end.

Without the slice, as processor sharing, each call takes D times (k+1)/c: right in the mean, wrong everywhere else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

_GRID = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Contention:
    """What a thread competes with."""

    competitors: int
    """Other threads that always want a CPU."""
    cores: float = 1.0
    """CPUs that they and the thread share; pinned to one: 1."""
    slice_s: float = 0.0
    """Effective slice; 0: not known, processor sharing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """Durations with their probabilities, ascending."""

    seconds: NDArray[np.float64]
    shares: NDArray[np.float64]

    @property
    def mean(self) -> float:
        """Return the mean, s."""
        return float(self.seconds @ self.shares)

    def quantile(self, share: float) -> float:
        """Return the duration that this share of calls does not exceed, s."""
        at = int(np.searchsorted(np.cumsum(self.shares), share - 1e-12))
        return float(self.seconds[min(at, len(self.seconds) - 1)])

    def above(self, seconds: float) -> float:
        """Return the share of calls that take longer."""
        return float(self.shares[self.seconds > seconds].sum())


def distribution(seconds: ArrayLike, weights: ArrayLike | None = None) -> Distribution:
    """Return durations as a distribution.

    Parameters
    ----------
    seconds : array_like
        Durations, s.
    weights : array_like, optional
        How often each occurred; by default once.
    """
    values = np.asarray(seconds, dtype=np.float64)
    counts = np.ones(len(values)) if weights is None else np.asarray(weights, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    return Distribution(seconds=values[order], shares=counts[order] / counts.sum())


def predicted(alone: Distribution, contention: Contention) -> Distribution:
    """Return the durations under competition.

    Parameters
    ----------
    alone : Distribution
        What calls take with a CPU for themselves, all of it on the CPU.
    beside : Contention

    Returns
    -------
    Distribution
        Of the same calls.
    """
    tasks = contention.competitors + 1
    if tasks <= contention.cores:
        return alone
    slowdown = tasks / contention.cores
    if contention.slice_s <= 0:
        return Distribution(seconds=alone.seconds * slowdown, shares=alone.shares)
    whole = np.floor(alone.seconds / contention.slice_s)
    part = alone.seconds / contention.slice_s - whole
    parts_s, parts = [], []
    for others, weight in _queues(tasks, contention.cores):
        wait = others * contention.slice_s
        parts_s += [alone.seconds + whole * wait, alone.seconds + (whole + 1) * wait]
        parts += [weight * alone.shares * (1 - part), weight * alone.shares * part]
    seconds, shares = np.concatenate(parts_s), np.concatenate(parts)
    order = np.argsort(seconds, kind="stable")
    kept = shares[order] > 0
    return Distribution(seconds=seconds[order][kept], shares=shares[order][kept])


def _queues(tasks: int, cores: float) -> tuple[tuple[int, float], ...]:
    """Return how many others there are in the shorter and the longer queues, and the share of CPU time passed there.

    On c CPUs n tasks make queues of floor(n/c) and ceil(n/c). Each CPU works all the time, so the share of CPU time in
    longer ones is that of the CPUs that have one, n/c - floor(n/c), and the mean slowdown is n/c.
    """
    per = tasks / cores
    shorter = max(1, int(np.floor(per + 1e-9)))
    longer = max(0.0, per - shorter)
    return (shorter - 1, 1 - longer), (shorter, longer)


def relative_errors(forecast: Distribution, measured: Distribution) -> dict[str, float]:
    """Return the relative errors of mean and 95th percentile, as the thesis reports them."""
    pairs = {
        "mean": (forecast.mean, measured.mean),
        "p95": (forecast.quantile(0.95), measured.quantile(0.95)),
    }
    return {name: abs(forecasted - true) / true for name, (forecasted, true) in pairs.items()}
