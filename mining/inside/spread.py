"""How the spread of a function's durations divides over callees, waits and its own code. Pure.

The duration of a call is the sum of what its callees took and the rest: ``x = sum(x_i)``. So its variance is the sum
of the covariances ``Cov(x_i, x)``, and each part's share of the spread is ``Cov(x_i, x) / Var(x)`` (Huang, Mozafari,
Wenisch: Statistical analysis of latency through semantic profiling, EuroSys 2017; here the covariances are divided
evenly). The excess of slow calls divides in the same way: the mean of a part in them less that in the usual ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specmine.model.buckets import BUCKET_MIDDLES, BUCKETS
from specmine.model.call_path import Frame
from specmine.model.histogram import Histogram
from specmine.model.inside.parts import Inside

from .composition import by_callee

SLOW, USUAL = 0.99, (0.25, 0.75)
"""The slowest calls are those beyond this quantile, the usual ones lie between these."""
LEAST_SLOW = 20
"""With fewer slowest calls their excess is not divided."""
PARTS = ("running", "waiting", "blocked")
"""What the rest is divided into: on CPU, runnable without one, waiting for anything else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadPart:
    """One part of a function's duration."""

    callee: Frame | None
    """None: no timed callee."""
    what: str
    """'' for a callee; else one of ``PARTS``, or ``own`` where it is not known which."""
    variance: float
    """Share of the variance; negative where the part is longer in short calls."""
    excess: float | None
    """Share of what the slowest calls take more than usual ones; None with too few calls."""
    mean_ns: float
    """Its mean in a call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A function's spread in parts, the largest first; the shares add up to 1."""

    calls: int
    mean_ns: float
    deviation_ns: float
    """Standard deviation of the durations."""
    excess_ns: float | None
    """What the slowest calls take more than usual ones, on average."""
    parts: tuple[SpreadPart, ...]


def spread(known: Inside, bias_ns: float = 0.0) -> Spread | None:
    """Divide the spread of these calls; None where all calls take the same.

    Parameters
    ----------
    known : Inside
        Calls with what was timed inside them.
    bias_ns : float
        What the function's own probes added to each duration.

    Notes
    -----
    Durations count as the middles of their buckets. Within a bucket, 3 % wide, the covariance is not known.
    """
    calls = known.calls.dense.astype(np.float64)
    number = float(calls.sum())
    used = calls > 0
    duration = np.where(used, np.maximum(BUCKET_MIDDLES - bias_ns, 0.0), 0.0)
    if not number:
        return None
    mean = float(calls @ duration) / number
    variance = float(calls @ (duration - mean) ** 2) / number
    if variance <= 0:
        return None
    slow, usual = _slow_and_usual(known.calls)
    excess_ns = _difference(calls * duration, calls, slow, usual)
    sums = _sums(known, calls * duration)
    parts = [
        SpreadPart(
            callee=callee,
            what=what,
            variance=(float(time @ duration) / number - float(time.sum()) / number * mean) / variance,
            excess=_difference(time, calls, slow, usual) / excess_ns if excess_ns > 0 and slow is not None else None,
            mean_ns=float(time.sum()) / number,
        )
        for callee, what, time in sums
    ]
    parts.sort(key=lambda part: (-part.variance, part.callee or Frame("", ""), part.what))
    return Spread(
        calls=int(number),
        mean_ns=mean,
        deviation_ns=variance**0.5,
        excess_ns=excess_ns if slow is not None and excess_ns > 0 else None,
        parts=tuple(parts),
    )


def _sums(known: Inside, whole: NDArray[np.float64]) -> Iterable[tuple[Frame | None, str, NDArray[np.float64]]]:
    """Yield each part with its time by the bucket of the call, ns; they add up to ``whole``."""
    rest = whole.copy()
    for callee, times in by_callee(known).items():
        time = Histogram.sum(one.time_ns for one in times).dense.astype(np.float64)
        time = np.minimum(time, rest)  # the middle of a bucket may be less than what its calls took
        rest -= time
        yield callee, "", time
    if not known.split:
        yield None, "own", rest
        return
    for what, held in (("waiting", known.waiting_ns), ("blocked", known.blocked_ns)):
        time = np.minimum(held.dense.astype(np.float64), rest)
        rest -= time
        if time.any():
            yield None, what, time
    yield None, "running", rest


def _slow_and_usual(calls: Histogram) -> tuple[NDArray[np.bool_] | None, NDArray[np.bool_]]:
    """Return the buckets of the slowest calls, None if they are too few, and of the usual ones."""
    reached = np.cumsum(calls.dense.astype(np.float64))
    total = reached[-1]
    places = np.arange(BUCKETS)
    first, last = (int(np.searchsorted(reached, level * total)) for level in USUAL)
    begin = int(np.searchsorted(reached, SLOW * total))
    slow = places >= begin
    usual = (places >= first) & (places <= last)
    enough = begin > last and float(calls.dense[slow].sum()) >= LEAST_SLOW
    return (slow if enough else None), usual


def _difference(
    time: NDArray[np.float64], calls: NDArray[np.float64], slow: NDArray[np.bool_] | None, usual: NDArray[np.bool_]
) -> float:
    """Return the mean of a part in the slowest calls less that in the usual ones, ns; 0 if there are too few."""
    if slow is None:
        return 0.0
    return float(time[slow].sum() / calls[slow].sum() - time[usual].sum() / calls[usual].sum())
