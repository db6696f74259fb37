"""Whether classes exchanged calls, or one of them became slower or faster where no quantile shows it. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from specmine.mining.detection.values import mean_log
from specmine.mining.levels.estimate import WINDOW_CALLS, level_of, plain_level
from specmine.mining.levels.verdict import Factor
from specmine.mining.levels.window import Window, class_of
from specmine.model.buckets import BUCKET_EDGES
from specmine.model.histogram import Histogram
from specmine.model.level import Level
from specmine.model.observation import Observation
from specmine.model.violation import Direction, What

from .asserted import TRUE
from .change import LEAST_CALLS, LEAST_SHARE, NOTABLE, Change, part_of
from .usual import Usual, usual_of
from .yardstick import Yardstick

EXCHANGE = 0.25
"""Classes exchanged calls if their own change explains at most this share of the distance to before."""


def share_change(yardstick: Yardstick, observed: Sequence[Observation]) -> Change | None:
    """Return which class exchanged calls with others, if that is the larger part of the change."""
    asserted, usual = yardstick.asserted, yardstick.usual
    if not asserted.edges or not usual.calls:
        return None
    now = usual_of(observed)
    edges = [asserted.edges_at(usual.bias_ns), asserted.edges_at(now.bias_ns)]
    numbers = [
        np.asarray(one.histogram.class_counts(cut), dtype=np.float64)
        for one, cut in zip((usual, now), edges, strict=True)
    ]
    if not numbers[0].sum() or not numbers[1].sum():
        return None
    before, after = (number / number.sum() for number in numbers)
    moved = np.abs(after - before)
    if moved.max() < LEAST_SHARE:
        return None
    if not _is_exchange(usual, now, (edges[0], edges[1]), after):
        return None
    at = len(before) - 1 if moved[-1] >= 0.5 * moved.max() else int(np.argmax(moved))
    calls = numbers[1].sum()
    error = math.sqrt((after[at] * (1 - after[at]) + 1 / calls) / calls)
    least = 0.5 / max(1.0, numbers[0].sum())
    return Change(
        what=What.SHARE,
        direction=Direction.SLOWER if now.mean_log > usual.mean_log else Direction.FASTER,
        factor=Factor(
            value=float(after[at] / max(before[at], least)),
            low=max(0.0, float((after[at] - 2 * error) / max(before[at], least))),
            high=float((after[at] + 2 * error) / max(before[at], least)),
        ),
        upper_ns=_upper(yardstick, at),
        of_class=at,
        expected=yardstick.level,
        observed=level_of(asserted.windows(observed, TRUE)),
    )


def class_change(yardstick: Yardstick, observed: Sequence[Observation]) -> Change | None:
    """Return which class of calls became slower or faster, where no quantile of all calls shows it."""
    usual, now = yardstick.usual, usual_of(observed)
    if not usual.calls or not now.calls or not yardstick.asserted.edges:
        return None
    found: list[tuple[float, int]] = []
    for at in range(len(yardstick.asserted.edges) + 1):
        before, after = (part_of(yardstick, one, at) for one in (usual, now))
        if min(before.total, after.total) >= LEAST_CALLS:
            moved = mean_log(after, now.bias_ns)[0] - mean_log(before, usual.bias_ns)[0]
            found.append((moved, at))
    if not found:
        return None
    moved, at = max(found, key=lambda each: abs(each[0]))
    if abs(moved) < NOTABLE:
        return None
    before, after = (part_of(yardstick, one, at) for one in (usual, now))
    error = 2 * math.sqrt(mean_log(before, usual.bias_ns)[1] + mean_log(after, now.bias_ns)[1])
    return Change(
        what=What.LEVEL,
        direction=Direction.SLOWER if moved > 0 else Direction.FASTER,
        factor=Factor(value=math.exp(moved), low=math.exp(moved - error), high=math.exp(moved + error)),
        upper_ns=_upper(yardstick, at),
        of_class=at,
        expected=_plain_level(before, usual.bias_ns),
        observed=_plain_level(after, now.bias_ns),
    )


def _plain_level(histogram: Histogram, bias_ns: float) -> Level:
    """Return the quantiles that so many calls show, without ranges."""
    return plain_level((Window(histogram=histogram, start_ns=0, end_ns=0, bias_ns=bias_ns),), WINDOW_CALLS)


def _is_exchange(
    usual: Usual, now: Usual, edges: tuple[tuple[int, ...], tuple[int, ...]], shares: NDArray[np.float64]
) -> bool:
    """Tell whether the classes are as they were, each by itself, and only have other shares of the calls.

    The distance of Kolmogorov between the calls now and the usual classes with the shares of now is compared with that
    between now and before. Calls that became slower and crossed a border change the classes themselves.
    """
    parts = [class_of(usual.histogram, edges[0], at) for at in range(len(shares))]
    if any(share >= LEAST_SHARE and not part.total for share, part in zip(shares, parts, strict=True)):
        return False
    grid = np.linspace(*_ends(usual, now), 200)
    held = _reached(now.histogram, now.bias_ns, grid)
    mixed = np.zeros_like(grid)
    for share, part in zip(shares, parts, strict=True):
        if part.total:
            mixed += share * _reached(part, usual.bias_ns, grid)
    apart = float(np.abs(held - mixed).max())
    moved = float(np.abs(held - _reached(usual.histogram, usual.bias_ns, grid)).max())
    chance = 1.36 * math.sqrt(1 / usual.calls + 1 / now.calls)  # 95 % point of the distance, Kolmogorov and Smirnov
    return apart <= EXCHANGE * moved + chance


def _ends(usual: Usual, now: Usual) -> tuple[float, float]:
    """Return the logarithms of the least and of the largest duration."""
    ends = [
        math.log(max(float(BUCKET_EDGES[bucket]) - one.bias_ns, 1.0))
        for one in (usual, now)
        for bucket in (one.histogram.buckets[0], one.histogram.buckets[-1] + 1)
    ]
    return min(ends), max(ends)


def _reached(histogram: Histogram, bias_ns: float, grid: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the share of calls up to each of some durations, given by their logarithms."""
    uppers = np.log(np.maximum(BUCKET_EDGES[histogram.buckets + 1] - bias_ns, 1.0))
    reached = np.cumsum(histogram.counts, dtype=np.float64) / histogram.total
    return np.asarray(np.interp(grid, uppers, reached, left=0.0, right=1.0))


def _upper(yardstick: Yardstick, at: int) -> float | None:
    """Return the upper border of a class, ns; None of the highest."""
    edges = yardstick.asserted.edges
    return float(BUCKET_EDGES[edges[at]]) - yardstick.asserted.bias_ns if at < len(edges) else None
