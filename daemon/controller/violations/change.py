"""One change of a function against its yardstick, and how far a window is from what is asserted in its terms. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from specmine.mining.detection.values import log_of_mean, mean_log
from specmine.mining.levels.estimate import place_of as quantile_place
from specmine.mining.levels.verdict import Factor
from specmine.mining.levels.window import class_of
from specmine.model.histogram import Histogram
from specmine.model.level import MEAN, PROBABILITIES, Level
from specmine.model.observation import Observation
from specmine.model.violation import Direction, What

from .asserted import TRUE
from .usual import Usual, usual_of
from .yardstick import Yardstick

LEAST_CALLS = 30
"""Fewer calls have no location."""
LEAST_SHARE = 0.05
"""Smaller changes of a share do not matter."""
NOTABLE = math.log(1.2)
"""A change against the yardstick that is smaller is none, whatever the detector says."""
HALF = 0.5
"""A window that is off by this part of a change, in log units, is one of those since it began."""


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

    @property
    def is_sure(self) -> bool:
        """True if the interval of the factor lies on one side of 1: a 99th percentile of 120 calls says little."""
        return self.factor.low > 1 or self.factor.high < 1


@dataclass(frozen=True, slots=True)
class WindowLocation:
    """Where the durations of a window lie, before it was joined to another one."""

    start_ns: int
    place: float
    """Mean log duration of its calls ..."""
    mean: float
    """... and the logarithm of their mean duration."""


def location_of(observation: Observation) -> WindowLocation:
    """Return what is remembered of a window."""
    histogram, bias_ns = observation.histogram, observation.bias_ns
    return WindowLocation(observation.start_ns, mean_log(histogram, bias_ns)[0], log_of_mean(histogram, bias_ns)[0])


def since(observations: Sequence[Observation], moment_ns: int) -> tuple[Observation, ...]:
    """Return the windows that lie, for the most part, after a moment; at least the newest."""
    after = tuple(one for one in observations if one.timed and one.start_ns + one.end_ns >= 2 * moment_ns)
    return after or tuple(one for one in observations[-1:] if one.timed)


def moment_of(
    change: Change,
    yardstick: Yardstick,
    observed: Sequence[Observation],
    since_ns: int,
    locations: Sequence[WindowLocation] = (),
) -> int:
    """Return when a change began: with the first window that is nearer to what changed than to what is asserted.

    Evidence may begin to grow with a window that is off by chance. If no window is near, ``since_ns`` stays.

    Parameters
    ----------
    change : Change
    yardstick : Yardstick
    observed : sequence of Observation
        The windows since the detector's own estimate, oldest first.
    since_ns : int
        That estimate.
    locations : sequence of WindowLocation
        The newest windows one by one: two that are joined may lie minutes apart, and only the second be off.
    """
    size = log_of(change.factor.value)
    for one in observed:
        factor = log_factor(change, yardstick, one)
        if size and factor is not None and factor / size >= HALF:
            return max(since_ns, _first_off(change, yardstick, one, locations))
    return since_ns


def _first_off(change: Change, yardstick: Yardstick, joined: Observation, locations: Sequence[WindowLocation]) -> int:
    """Return when the first part of a window began that is nearer to its furthest part than to what is usual."""
    parts = [one for one in locations if joined.start_ns <= one.start_ns < joined.end_ns]
    usual, sign = yardstick.usual, math.copysign(1.0, log_of(change.factor.value))
    if change.quantile == "p50":
        off = [sign * (one.place - usual.mean_log) for one in parts]
    else:
        off = [sign * (one.mean - log_of_mean(usual.histogram, usual.bias_ns)[0]) for one in parts]
    most = max(off, default=0.0)
    return next((one.start_ns for one, by in zip(parts, off, strict=True) if by >= HALF * most), joined.start_ns)


def log_factor(change: Change, yardstick: Yardstick, observation: Observation) -> float | None:
    """Return how far one window is from what is asserted, in the terms of a change: log units; None: not known."""
    usual, now = yardstick.usual, usual_of((observation,))
    if change.what is What.PATH or not now.calls:
        return None
    if change.of_class is not None:
        return _log_factor_of_class(change, yardstick, now)
    if change.quantile == MEAN:
        return longer_mean(usual, now)[0] if now.calls >= LEAST_CALLS and usual.calls else None
    expected = yardstick.levels.get(change.expression, Level()).quantile(change.quantile)
    windows = yardstick.asserted.windows((observation,), change.expression)
    if expected is None or expected.ns <= 0 or not windows or windows[0].histogram.total < LEAST_CALLS:
        return None
    return quantile_place(windows[0], PROBABILITIES[change.quantile])[0] - math.log(expected.ns)


def _log_factor_of_class(change: Change, yardstick: Yardstick, now: Usual) -> float | None:
    usual = yardstick.usual
    before, after = (part_of(yardstick, one, change.of_class or 0) for one in (usual, now))
    if change.what is What.SHARE:
        return math.log((after.total + 0.5) / (now.calls + 1)) - math.log((before.total + 0.5) / (usual.calls + 1))
    if min(before.total, after.total) < LEAST_CALLS:
        return None
    return mean_log(after, now.bias_ns)[0] - mean_log(before, usual.bias_ns)[0]


def longer_mean(usual: Usual, now: Usual) -> tuple[float, float]:
    """Return how much longer calls take on average, in log units, and the variance of that."""
    before, after = (log_of_mean(one.histogram, one.bias_ns) for one in (usual, now))
    return after[0] - before[0], after[1] + before[1]


def part_of(yardstick: Yardstick, usual: Usual, at: int) -> Histogram:
    """Return the calls of one class."""
    return class_of(usual.histogram, yardstick.asserted.edges_at(usual.bias_ns), at)


def log_of(value: float) -> float:
    """Return the logarithm of a factor that may be 0."""
    return math.log(max(value, 1e-9))
