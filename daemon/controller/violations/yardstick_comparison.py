"""What changed: level, shares or paths; of which calls, by how much, and in which quantile. Pure.

The detector says that something changed, and when. Here the windows since then are compared with the yardstick. If
each class by itself is as it was, classes exchanged calls: a share changed. Else calls took longer or shorter: a level.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from specmine.mining.detection.alarm import Alarm
from specmine.mining.levels.estimate import level_of
from specmine.mining.levels.verdict import Factor, factor_of, usual_factors
from specmine.model.buckets import BUCKET_MIDDLES
from specmine.model.level import MEAN, PROBABILITIES, Level, Quantile
from specmine.model.observation import Observation
from specmine.model.violation import Direction, What

from .asserted import TRUE
from .change import NOTABLE, Change, log_of, longer_mean
from .class_comparison import class_change, share_change
from .usual import Usual, usual_of
from .yardstick import Yardstick

LARGE = 0.7
"""The median stands for a change if it moved by at least this share, in logarithms, of what any quantile did."""
MATTERS = math.log(1.25)
"""Smaller changes of a level do not matter, log units."""
TWICE = math.log(2)
"""So much longer must the mean be, log units, where no quantile left its range."""
WINSORISED = 0.995
"""Calls beyond this quantile count as it where the time of all calls is compared."""
ALIKE = 0.5
"""A behaviour moved with the others if it moved by this share of what the most moved one did."""


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
    if change is not None and abs(log_of(change.factor.value)) >= NOTABLE:
        return change if change.is_sure else _sure_mean(yardstick, observed) or change
    return class_change(yardstick, observed) or _of_mean(alarm, yardstick, observed)


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
    longer = expression != TRUE or _takes_longer(yardstick.usual, usual_of(observed))
    name = _quantile(expected, factors, longer=longer, beyond=beyond)
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


def mean_change(yardstick: Yardstick, observed: Sequence[Observation]) -> Change | None:
    """Return by how much calls take longer on average; None if they do not take twice as long.

    Whenever another program runs beside it, a few calls wait for a CPU: that alone is no news.
    """
    usual, now = yardstick.usual, usual_of(observed)
    if not usual.calls or not now.calls:
        return None
    moved, variance = longer_mean(usual, now)
    if moved < TWICE:
        return None
    half = 2 * math.sqrt(variance)
    return Change(
        what=What.LEVEL,
        direction=Direction.SLOWER,
        factor=Factor(value=math.exp(moved), low=math.exp(moved - half), high=math.exp(moved + half)),
        quantile=MEAN,
        expected=replace(yardstick.level, mean=Quantile(ns=usual.mean_ns)),
        observed=replace(level_of(yardstick.asserted.windows(observed, TRUE)), mean=Quantile(ns=now.mean_ns)),
    )


def _sure_mean(yardstick: Yardstick, observed: Sequence[Observation]) -> Change | None:
    """Return by how much calls take longer on average; None if that is not sure either."""
    change = mean_change(yardstick, observed)
    return change if change is not None and change.is_sure else None


def _of_mean(alarm: Alarm, yardstick: Yardstick, observed: Sequence[Observation]) -> Change | None:
    """Return by how much the mean of all calls is longer, where that is what the alarm is about."""
    is_of_mean = alarm.stream.part == MEAN and alarm.direction is Direction.SLOWER
    return mean_change(yardstick, observed) if is_of_mean else None


def place_of(yardstick: Yardstick, observed: Sequence[Observation]) -> str:
    """Return the expression of the calls that became slower or faster: ``true`` if all behaviours did."""
    moved: dict[str, float] = {}
    calls: dict[str, int] = {}
    for claim in yardstick.asserted.behaviours:
        change = level_change(yardstick, observed, claim.expression, beyond=False)
        if change is not None:
            moved[claim.expression] = log_of(change.factor.value)
            calls[claim.expression] = change.observed.calls
    if not moved:
        return TRUE
    most = max(moved.values(), key=abs)
    alike = [name for name, factor in moved.items() if factor * most > 0 and abs(factor) >= ALIKE * abs(most)]
    if abs(most) < MATTERS or len(alike) == len(yardstick.asserted.behaviours):
        return TRUE
    return max(alike, key=lambda name: (calls[name], name))


def _quantile(expected: Level, factors: dict[str, Factor], *, longer: bool, beyond: bool) -> str | None:
    """Return the quantile that says most: the median unless another one moved much further beyond its range.

    Where some became slower and others faster, as when slow calls become both slower and fewer, only those count that
    moved as the time of all calls together did.
    """
    moved = {}
    for name, factor in factors.items():
        quantile = expected.quantile(name)
        usual = usual_factors(quantile) if quantile is not None else None
        within = usual is not None and usual[0] <= factor.value <= usual[1]
        moved[name] = 0.0 if within else log_of(factor.value)
    if min(moved.values()) < 0 < max(moved.values()):
        moved = {name: one if (one > 0) is longer else 0.0 for name, one in moved.items()}
    most = max(map(abs, moved.values()))
    if most == 0.0:
        return None if beyond else max(factors, key=lambda name: abs(log_of(factors[name].value)))
    return next(name for name in PROBABILITIES if name in moved and abs(moved[name]) >= LARGE * most)


def _takes_longer(usual: Usual, now: Usual) -> bool:
    """Tell whether calls take longer on average; the slowest count as the quantile there, or a pause would decide."""
    means = []
    for one in (usual, now):
        if not one.calls:
            return True
        ends = BUCKET_MIDDLES[one.histogram.buckets]
        most = one.histogram.quantile(WINSORISED)
        means.append(float(np.minimum(ends, most) @ one.histogram.counts) / one.histogram.total - one.bias_ns)
    return means[1] >= means[0]


def _of_paths(alarm: Alarm, yardstick: Yardstick, observed: Sequence[Observation]) -> Change:
    """Return that calls come over paths that were not learned."""
    return Change(
        what=What.PATH,
        direction=Direction.OTHER,
        factor=Factor(value=alarm.factor, low=alarm.factor_low, high=alarm.factor_high),
        expected=yardstick.level,
        observed=level_of(yardstick.asserted.windows(observed, TRUE)),
    )
