"""What changed: level, shares or paths; of which calls, by how much, and in which quantile. Pure.

The detector says that something changed, and when. Here the windows since then are compared with the yardstick. If
each class by itself is as it was, classes exchanged calls: a share changed. Else calls took longer or shorter: a level.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from specmine.mining.detection.alarm import Alarm
from specmine.mining.detection.values import mean_log
from specmine.mining.levels.estimate import WINDOW_CALLS, level_of, plain_level
from specmine.mining.levels.estimate import place_of as quantile_place
from specmine.mining.levels.verdict import Factor, factor_of, usual_factors
from specmine.mining.levels.window import Window, class_of
from specmine.model.buckets import BUCKET_EDGES
from specmine.model.histogram import Histogram
from specmine.model.level import PROBABILITIES, Level
from specmine.model.observation import Observation
from specmine.model.violation import Direction, What

from .asserted import TRUE
from .usual import Usual, usual_of
from .yardstick import Yardstick

EXCHANGE = 0.25
"""Classes exchanged calls if their own change explains at most this share of the distance to before."""
LARGE = 0.7
"""The median stands for a change if it moved by at least this share, in logarithms, of what any quantile did."""
LEAST_CALLS = 30
"""Fewer calls have no location."""
LEAST_SHARE = 0.05
"""Smaller changes of a share do not matter."""
MATTERS = math.log(1.25)
"""Smaller changes of a level do not matter, log units."""
NOTABLE = math.log(1.2)
"""A change against the yardstick that is smaller is none, whatever the detector says."""
ALIKE = 0.5
"""A behaviour moved with the others if it moved by this share of what the most moved one did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change against the yardstick."""

    what: What
    direction: Direction
    factor: Factor
    quantile: str = "p50"
    expression: str = TRUE
    upper_ns: float | None = None
    of_class: int | None = None
    """Number of the class that it is about, where it is about one."""
    expected: Level = field(default_factory=Level)
    observed: Level = field(default_factory=Level)


def since(observations: Sequence[Observation], moment_ns: int) -> tuple[Observation, ...]:
    """Return the windows that lie, for the most part, after a moment; at least the newest."""
    after = tuple(one for one in observations if one.timed and one.start_ns + one.end_ns >= 2 * moment_ns)
    return after or tuple(one for one in observations[-1:] if one.timed)


def change_of(yardstick: Yardstick, alarm: Alarm, observed: Sequence[Observation]) -> Change | None:
    """Return what an alarm is about; None if by the yardstick nothing changed that matters.

    Parameters
    ----------
    yardstick : Yardstick
    alarm : Alarm
    observed : sequence of Observation
        The windows since the change, at least one with calls.
    """
    if alarm.stream.what is What.PATH:
        return _of_paths(alarm, yardstick, observed)
    exchanged = share_change(yardstick, observed)
    if exchanged is not None:
        return exchanged
    change = level_change(yardstick, observed, place_of(yardstick, observed))
    if change is not None and abs(_log(change.factor.value)) >= NOTABLE:
        return change
    return class_change(yardstick, observed)


def level_change(
    yardstick: Yardstick, observed: Sequence[Observation], expression: str, *, beyond: bool = True
) -> Change | None:
    """Return by how much the level of some calls changed; None if there are no such calls, or no level.

    With ``beyond`` it is None too if no quantile left the range in which windows of an unchanged program stay.
    """
    expected = yardstick.levels.get(expression, Level())
    windows = yardstick.asserted.windows(observed, expression)
    factors = {name: found for name in PROBABILITIES if (found := factor_of(expected, windows, name)) is not None}
    if not factors:
        return None
    name = _quantile(expected, factors, beyond=beyond)
    if name is None:
        return None
    factor = factors[name]
    return Change(
        what=What.LEVEL,
        direction=Direction.SLOWER if factor.value >= 1 else Direction.FASTER,
        factor=factor,
        quantile=name,
        expression=expression,
        expected=expected,
        observed=level_of(windows),
    )


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


def place_of(yardstick: Yardstick, observed: Sequence[Observation]) -> str:
    """Return the expression of the calls that became slower or faster: ``true`` if all behaviours did."""
    moved: dict[str, float] = {}
    calls: dict[str, int] = {}
    for claim in yardstick.asserted.behaviours:
        change = level_change(yardstick, observed, claim.expression, beyond=False)
        if change is not None:
            moved[claim.expression] = _log(change.factor.value)
            calls[claim.expression] = change.observed.calls
    if not moved:
        return TRUE
    most = max(moved.values(), key=abs)
    alike = [name for name, factor in moved.items() if factor * most > 0 and abs(factor) >= ALIKE * abs(most)]
    if abs(most) < MATTERS or len(alike) == len(yardstick.asserted.behaviours):
        return TRUE
    return max(alike, key=lambda name: (calls[name], name))


def class_change(yardstick: Yardstick, observed: Sequence[Observation]) -> Change | None:
    """Return which class of calls became slower or faster, where no quantile of all calls shows it."""
    usual, now = yardstick.usual, usual_of(observed)
    if not usual.calls or not now.calls or not yardstick.asserted.edges:
        return None
    found: list[tuple[float, int]] = []
    for at in range(len(yardstick.asserted.edges) + 1):
        before, after = (_part(yardstick, one, at) for one in (usual, now))
        if min(before.total, after.total) >= LEAST_CALLS:
            moved = mean_log(after, now.bias_ns)[0] - mean_log(before, usual.bias_ns)[0]
            found.append((moved, at))
    if not found:
        return None
    moved, at = max(found, key=lambda each: abs(each[0]))
    if abs(moved) < NOTABLE:
        return None
    before, after = (_part(yardstick, one, at) for one in (usual, now))
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


def log_factor(change: Change, yardstick: Yardstick, observation: Observation) -> float | None:
    """Return how far one window is from what is asserted, in the terms of a change: log units; None: not known."""
    usual, now = yardstick.usual, usual_of((observation,))
    if change.what is What.PATH or not now.calls:
        return None
    if change.of_class is not None:
        before, after = (_part(yardstick, one, change.of_class) for one in (usual, now))
        if change.what is What.SHARE:
            return math.log((after.total + 0.5) / (now.calls + 1)) - math.log((before.total + 0.5) / (usual.calls + 1))
        if min(before.total, after.total) < LEAST_CALLS:
            return None
        return mean_log(after, now.bias_ns)[0] - mean_log(before, usual.bias_ns)[0]
    expected = yardstick.levels.get(change.expression, Level()).quantile(change.quantile)
    windows = yardstick.asserted.windows((observation,), change.expression)
    if expected is None or expected.ns <= 0 or not windows or windows[0].histogram.total < LEAST_CALLS:
        return None
    return quantile_place(windows[0], PROBABILITIES[change.quantile])[0] - math.log(expected.ns)


def _quantile(expected: Level, factors: dict[str, Factor], *, beyond: bool) -> str | None:
    """Return the quantile that says most: the median unless another one moved much further beyond its range."""
    moved = {}
    for name, factor in factors.items():
        quantile = expected.quantile(name)
        usual = usual_factors(quantile) if quantile is not None else None
        within = usual is not None and usual[0] <= factor.value <= usual[1]
        moved[name] = 0.0 if within else _log(factor.value)
    most = max(map(abs, moved.values()))
    if most == 0.0:
        return None if beyond else max(factors, key=lambda name: abs(_log(factors[name].value)))
    return next(name for name in PROBABILITIES if name in moved and abs(moved[name]) >= LARGE * most)


def _of_paths(alarm: Alarm, yardstick: Yardstick, observed: Sequence[Observation]) -> Change:
    """Return that calls come over paths that were not learned."""
    return Change(
        what=What.PATH,
        direction=Direction.OTHER,
        factor=Factor(value=alarm.factor, low=alarm.factor_low, high=alarm.factor_high),
        expected=yardstick.level,
        observed=level_of(yardstick.asserted.windows(observed, TRUE)),
    )


def _plain_level(histogram: Histogram, bias_ns: float) -> Level:
    """Return the quantiles that so many calls show, without ranges."""
    return plain_level((Window(histogram=histogram, start_ns=0, end_ns=0, bias_ns=bias_ns),), WINDOW_CALLS)


def _part(yardstick: Yardstick, usual: Usual, at: int) -> Histogram:
    """Return the calls of one class."""
    return class_of(usual.histogram, yardstick.asserted.edges_at(usual.bias_ns), at)


def _log(value: float) -> float:
    return math.log(max(value, 1e-9))


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
