"""Which kind of time calls take more of: running, waiting for a CPU, or blocked. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping

from specmine.model.histogram import Histogram
from specmine.model.level import MEAN, PROBABILITIES
from specmine.model.violation import Direction

from .facts import Facts

LARGE = 0.7
"""Where the median of some calls moved, the median or p90 of all calls stands for them: the first that moved by this
share of what the other one did."""
LEAST_MOVED = math.log(1.1)
"""A quantile that moved by less does not tell which kind of time its calls took more of."""
FEWEST = 100
"""Calls with a time on CPU from which their quantiles are compared."""


def parts_of(facts: Facts) -> tuple[float, float, float] | None:
    """Return which shares of the difference are running, waiting for a CPU, and blocked; None: not known."""
    before, after = facts.usual.parts_ns, facts.now.parts_ns
    if before is None or after is None:
        return None
    sign = -1.0 if facts.direction is Direction.FASTER else 1.0
    more = [max(0.0, sign * (now - then)) for now, then in zip(after, before, strict=True)]
    total = sum(more)
    moved = running_of(facts)
    if moved is None:
        return (more[0] / total, more[1] / total, more[2] / total) if total > 0 else None
    running, off = moved[0], more[1] + more[2]
    waiting = more[1] / off if off > 0 else 0.0
    return running, (1 - running) * waiting, (1 - running) * (1 - waiting) if off > 0 else 0.0


def running_of(facts: Facts) -> tuple[float, float] | None:
    """Return the share of time on CPU in what the calls in question took more, and that over the usual duration.

    None: not known.

    By quantiles, but where the mean alone is longer: few calls that wait for ms, as on any busy host, have more of the
    mean than all others together.
    """
    usual, now = facts.usual, facts.now
    if facts.quantile == MEAN or min(one.on_cpu.total for one in (usual, now)) < FEWEST:
        return None
    moved: dict[str, float] = {}
    sign = -1.0 if facts.direction is Direction.FASTER else 1.0
    for name, level in PROBABILITIES.items():
        took = [max(one.histogram.quantile(level) - one.bias_ns, 1.0) for one in (usual, now)]
        moved[name] = sign * math.log(took[1] / took[0])
    name = facts.quantile if facts.quantile in moved else _place_of(moved, typical=facts.typical)
    if moved[name] < LEAST_MOVED:
        return None
    ran = [_around(one.on_cpu, PROBABILITIES[name]) for one in (usual, now)]
    before, after = (max(_around(one.histogram, PROBABILITIES[name]) - one.bias_ns, 1.0) for one in (usual, now))
    if sign * (after - before) <= 0:
        return None
    return min(1.0, max(0.0, (ran[1] - ran[0]) / (after - before))), (ran[1] - ran[0]) / before


def has_outgrown(facts: Facts, times: float) -> bool:
    """Tell whether typical calls are on a CPU longer than they were, by so many times what they took in all.

    The slowest calls of a window wait for CPUs, too, if all of them work several times as long.
    """
    usual, now = facts.usual, facts.now
    if facts.direction is Direction.FASTER or min(one.on_cpu.total for one in (usual, now)) < FEWEST:
        return False
    took = max(usual.histogram.quantile(0.5) - usual.bias_ns, 1.0)
    return _around(now.on_cpu, 0.5) - _around(usual.on_cpu, 0.5) >= times * took


def _around(histogram: Histogram, level: float) -> float:
    """Return the mean of the quantiles around a level: one between fast and slow calls may be either."""
    half = 0.4 * min(level, 1 - level)
    return sum(histogram.quantile(level + half * step / 4) for step in range(-4, 5)) / 9


def _place_of(moved: Mapping[str, float], *, typical: bool) -> str:
    """Return the quantile of all calls that stands for a change of some of them."""
    near = [name for name in ("p50", "p90") if name in moved]
    most = max((moved[name] for name in near), default=0.0)
    if typical and most >= LEAST_MOVED:
        return next(name for name in near if moved[name] >= LARGE * most)
    return max(moved, key=lambda each: moved[each])
