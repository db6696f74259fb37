"""Classes explained by how calls spend their time: running, waiting for a CPU, blocked. Pure.

The excess of a class is its mean duration less that of the main class. It is the sum of more running, more waiting and
more blocking; ``host_causes.py`` names its cause.

Waiting or call paths may explain the classes better. Both are compared by the share of the variance of the class means
that they account for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from specmine.model.buckets import BUCKETS
from specmine.model.histogram import Histogram
from specmine.model.split import Split

from .host_causes import NOTABLE, HostTimes, named

LEAST_CALLS = 5
"""A class with fewer calls gets no cause."""
_Z = 1.96


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One class: how its calls spend their time, and its excess over the main class."""

    calls: int
    running: float
    """Shares of the calls' time; the three add up to 1, or are all 0 without calls."""
    waiting: float
    blocked: float
    mean_ns: float = 0.0
    on_cpu_ns: float = 0.0
    """Mean time on CPU of a call."""
    excess_ns: float = 0.0
    """Mean duration less that of the main class."""
    waited_ns: float = 0.0
    """Median over calls of the time waiting for a CPU; a call counts with the mean of its bucket of duration."""
    waited_low_ns: float = 0.0
    waited_high_ns: float = 0.0
    """Its 95 % interval."""
    cause: str = ""
    """slices, preempted, quota, waiting, blocked, ticks, or '': only running."""
    slices: int = 0
    """Number of timeslices, for the cause ``slices``."""
    label: str = ""
    """The cause in words, with figures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """All classes of a function, and what distinguishes them."""

    classes: tuple[Part, ...] = field(default=())
    main: int = 0
    """The class with most calls."""
    by_waiting: float = 0.0
    """Share of the variance of class means that waiting and blocking account for."""
    by_paths: float = 0.0
    """Share of it that call paths account for."""

    @property
    def explained(self) -> bool:
        """True if waiting and blocking explain the classes, and better than call paths do."""
        return len(self.classes) > 1 and self.by_waiting >= NOTABLE and self.by_waiting > self.by_paths


def parts(
    histogram: Histogram,
    split: Split,
    edges: Sequence[int],
    host: HostTimes,
    *,
    bias_ns: float = 0.0,
    path_classes: Sequence[Sequence[int]] = (),
) -> Parts:
    """Explain the classes of a function by how its calls spend their time.

    Parameters
    ----------
    histogram : Histogram
        Calls by duration.
    split : Split
        Of the same calls.
    edges : sequence of int
        First bucket of each class but the lowest.
    host : HostTimes
        As derived on the host where the calls ran.
    bias_ns : float
        What the probes added to each duration; it is time on CPU.
    path_classes : sequence of sequence of int
        Calls per class of each call path.

    Returns
    -------
    Parts
        One entry per class.
    """
    borders = [0, *edges, BUCKETS]
    calls = histogram.class_counts(edges)
    raw = [_sums(histogram, split, low, high, bias_ns) for low, high in pairwise(borders)]
    main = int(np.argmax(calls))
    base = raw[main] / max(1, int(calls[main]))
    classes: list[Part] = []
    for number, (low, high) in enumerate(pairwise(borders)):
        classes.append(
            _part(
                int(calls[number]),
                raw[number],
                None if number == main else base,
                _median(histogram.part(low, high), split.waiting_ns),
                host,
            )
        )
    return Parts(
        classes=tuple(classes),
        main=main,
        by_waiting=_by_waiting(calls, classes),
        by_paths=_by_paths(calls, classes, path_classes),
    )


def _sums(histogram: Histogram, split: Split, low: int, high: int, bias_ns: float) -> NDArray[np.float64]:
    """Return running, waiting and blocked of a class, ns."""
    part = histogram.part(low, high)
    total = max(0.0, part.time_ns() - bias_ns * part.total)
    waiting, blocked = split.waiting_ns.part(low, high).total, split.blocked_ns.part(low, high).total
    return np.array([max(0.0, total - waiting - blocked), waiting, blocked])


def _median(calls: Histogram, sums: Histogram) -> tuple[float, float, float]:
    """Return the median over calls of the mean of their buckets, and its interval by order statistics."""
    if not calls.total:
        return 0.0, 0.0, 0.0
    means = sums.dense[calls.buckets] / calls.counts
    order = np.argsort(means, kind="stable")
    means, below = means[order], np.cumsum(calls.counts[order])
    number = int(below[-1])
    half = 0.5 * _Z / sqrt(number)

    def at(level: float) -> float:
        return float(means[min(int(np.searchsorted(below, level * number)), len(means) - 1)])

    return at(0.5), at(max(0.0, 0.5 - half)), at(min(1.0, 0.5 + half))


def _part(
    calls: int,
    sums: NDArray[np.float64],
    base: NDArray[np.float64] | None,
    waited: tuple[float, float, float],
    host: HostTimes,
) -> Part:
    total = float(sums.sum())
    if not calls or total <= 0:
        return Part(calls=calls, running=0.0, waiting=0.0, blocked=0.0)
    means = sums / calls
    excess = means - base if base is not None else np.zeros(3)
    cause, slices, label = "", 0, ""
    if calls >= LEAST_CALLS:
        cause, slices, label = named(sums / total, excess if base is not None else None, waited, host)
    return Part(
        calls=calls,
        running=float(sums[0]) / total,
        waiting=float(sums[1]) / total,
        blocked=float(sums[2]) / total,
        mean_ns=float(means.sum()),
        on_cpu_ns=float(means[0]),
        excess_ns=float(excess.sum()),
        waited_ns=waited[0],
        waited_low_ns=waited[1],
        waited_high_ns=waited[2],
        cause=cause,
        slices=slices,
        label=label,
    )


def _by_waiting(calls: NDArray[np.int64], classes: Sequence[Part]) -> float:
    """Return 1 less the share of the variance that remains if only time on CPU counts."""
    every = _variance(calls, np.array([part.mean_ns for part in classes]))
    left = _variance(calls, np.array([part.on_cpu_ns for part in classes]))
    return max(0.0, 1.0 - left / every) if every > 0 else 0.0


def _by_paths(calls: NDArray[np.int64], classes: Sequence[Part], path_classes: Sequence[Sequence[int]]) -> float:
    """Return the share of the variance of class means that lies between the means of call paths."""
    means = np.array([part.mean_ns for part in classes])
    rows = np.array([row for row in path_classes if sum(row)], dtype=np.float64).reshape(-1, len(means))
    every = _variance(calls, means)
    number = float(rows.sum())
    if every <= 0 or number <= len(rows):
        return 0.0
    share = min(1.0, _variance(rows.sum(axis=1), rows @ means / rows.sum(axis=1)) / every)
    # the adjusted coefficient of determination, since paths of few calls differ at random
    return max(0.0, 1.0 - (1.0 - share) * (number - 1) / (number - len(rows)))


def _variance(weights: NDArray[np.generic], values: NDArray[np.float64]) -> float:
    share = np.asarray(weights, dtype=np.float64)
    share = share / max(share.sum(), 1.0)
    return float(share @ (values - share @ values) ** 2)
