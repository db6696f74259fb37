"""Classes explained by what calls did of their time: running, waiting for a CPU, blocked. Pure.

The excess of a class over the main one (mean duration less mean duration) is the sum of three: more running, more
waiting, more blocked; ``causes.py`` gives it a name.

Whether waiting tells classes apart better than call paths do is asked of both alike: which share of the variance of
the class means goes with it.
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
"""Of a class with fewer calls nothing is said."""
_Z = 1.96


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One class: what its calls did of their time, and what its excess over the main class is."""

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
    """Median of what calls waited for a CPU, over the buckets of duration."""
    waited_low_ns: float = 0.0
    waited_high_ns: float = 0.0
    """Its 95 % interval."""
    cause: str = ""
    """slices, preempted, quota, waiting, blocked, ticks, or '': nothing but running."""
    slices: int = 0
    """Of the cause ``slices``: how many."""
    label: str = ""
    """The same in words, with figures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """All classes of a function, and what tells them apart."""

    classes: tuple[Part, ...] = field(default=())
    main: int = 0
    """The class with most calls."""
    by_waiting: float = 0.0
    """Share of the variance of class means that goes with waiting and blocking."""
    by_paths: float = 0.0
    """The same of call paths."""

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
    """Explain the classes of a function by what its calls did of their time.

    Parameters
    ----------
    histogram : Histogram
        Calls by duration.
    split : Split
        Of the same calls.
    edges : sequence of int
        First bucket of each class but the lowest.
    host : HostTimes
        As derived on the host where they were made.
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
    found = []
    for number, (low, high) in enumerate(pairwise(borders)):
        found.append(
            _part(
                int(calls[number]),
                raw[number],
                None if number == main else base,
                _median(histogram.part(low, high), split.waiting_ns),
                host,
            )
        )
    return Parts(
        classes=tuple(found),
        main=main,
        by_waiting=_by_waiting(calls, found),
        by_paths=_by_paths(calls, found, path_classes),
    )


def _sums(histogram: Histogram, split: Split, low: int, high: int, bias_ns: float) -> NDArray[np.float64]:
    """Return running, waiting and blocked of a class, ns."""
    part = histogram.part(low, high)
    total = max(0.0, part.time_ns() - bias_ns * part.total)
    waiting, blocked = split.waiting_ns.part(low, high).total, split.blocked_ns.part(low, high).total
    return np.array([max(0.0, total - waiting - blocked), waiting, blocked])


def _median(calls: Histogram, sums: Histogram) -> tuple[float, float, float]:
    """Return the median over calls of the mean of each one's bucket, and its interval by order statistics."""
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


def _by_waiting(calls: NDArray[np.int64], found: Sequence[Part]) -> float:
    """Return one less the variance that is left if only time on CPU counted."""
    every = _variance(calls, np.array([each.mean_ns for each in found]))
    left = _variance(calls, np.array([each.on_cpu_ns for each in found]))
    return max(0.0, 1.0 - left / every) if every > 0 else 0.0


def _by_paths(calls: NDArray[np.int64], found: Sequence[Part], path_classes: Sequence[Sequence[int]]) -> float:
    """Return the share of the variance of class means that lies between the means of call paths."""
    means = np.array([each.mean_ns for each in found])
    rows = np.array([row for row in path_classes if sum(row)], dtype=np.float64).reshape(-1, len(means))
    every = _variance(calls, means)
    number = float(rows.sum())
    if every <= 0 or number <= len(rows):
        return 0.0
    share = min(1.0, _variance(rows.sum(axis=1), rows @ means / rows.sum(axis=1)) / every)
    # paths of few calls differ by chance: the adjusted coefficient of determination
    return max(0.0, 1.0 - (1.0 - share) * (number - 1) / (number - len(rows)))


def _variance(weights: NDArray[np.generic], values: NDArray[np.float64]) -> float:
    share = np.asarray(weights, dtype=np.float64)
    share = share / max(share.sum(), 1.0)
    return float(share @ (values - share @ values) ** 2)
