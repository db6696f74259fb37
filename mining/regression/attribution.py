"""What changed in a distribution and its likely cause: moved, heavier or new classes; code, load or host.

A cache that hits less often is not slower code. Durations are cut into the classes that the base shows, and each
class is compared on its own: its share of the calls, and the durations inside it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specmine.mining.borders.detection import borders
from specmine.mining.settings import MiningSettings
from specmine.mining.statistics.student_t import t_quantile
from specmine.model.buckets import BUCKET_EDGES, BUCKETS
from specmine.model.histogram import Histogram

from .comparison import LifetimeSample, Rule
from .ratio_estimate import ratio_estimate, welch_freedom
from .sample import Floats, histogram_of, quantile, sample_of_histogram

FEWEST_IN_CLASS = 20
"""A lifetime with fewer calls in a class says nothing about the durations in it."""
SMALLEST_SHARE_CHANGE = 0.02
NEW_CLASS_SHARE = 0.05
"""A new class holds at least this share of the new calls ..."""
NEW_CLASS_FACTOR = 5.0
"""... and so many times the share that the base has there."""
OTHER_MIX = "each kind of call takes as long as before, only their mix changed"
LOAD_CHANGE = 0.1
"""A call rate that changed by less is no explanation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassChange:
    """What happened to one class of durations."""

    upper_ns: float
    """Infinite for the last."""
    shares: tuple[float, float]
    """Of base and new, means over lifetimes."""
    share_changed: bool
    ratio: float | None
    """New over base of the durations inside, None if there are too few."""
    interval: tuple[float, float] | None
    moved: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeAttribution:
    """What changed in a function's distribution, and its likely cause."""

    kinds: tuple[str, ...]
    """Of class-moved, share-changed, new-class; empty if none is sure."""
    cause: str
    """code, load, host or unknown."""
    reason: str
    classes: tuple[ClassChange, ...]
    rate_ratio: float | None
    """New over base of calls per second, None if unknown."""


def attribute(base: Sequence[LifetimeSample], new: Sequence[LifetimeSample], rule: Rule) -> ChangeAttribution:
    """Explain how new differs from base.

    Notes
    -----
    Each class is tested at ``rule.level`` divided among the classes (Bonferroni): shares by Welch's t on
    arcsin(sqrt(share)) of lifetimes, durations by the ratio of medians inside the class.
    """
    settings = MiningSettings()
    sides = [[histogram_of(each.sample) for each in side] for side in (base, new)]
    pooled = [Histogram.sum(side) for side in sides]
    edges = _sure_borders(pooled[0], settings)
    level = 1.0 - (1.0 - rule.level) / (len(edges) + 1)
    changes = _classes(sides, edges, level, rule.tolerance)
    fresh = _new_classes(pooled, edges, settings)
    kinds = []
    if any(each.moved for each in changes):
        kinds.append("class-moved")
    if any(each.share_changed for each in changes):
        kinds.append("share-changed")
    if fresh:
        kinds.append("new-class")
    rate = _rate_ratio(base, new, rule.level)
    cause, reason = _cause(kinds, changes, rate, base, new)
    return ChangeAttribution(
        kinds=tuple(kinds), cause=cause, reason=reason, classes=changes, rate_ratio=rate[0] if rate else None
    )


def _classes(
    sides: Sequence[Sequence[Histogram]], edges: Sequence[int], level: float, tolerance: float
) -> tuple[ClassChange, ...]:
    bounds = BUCKET_EDGES
    tables = [np.array([each.class_counts(edges) for each in side], dtype=np.float64) for side in sides]
    shares = [table / np.maximum(table.sum(axis=1, keepdims=True), 1.0) for table in tables]
    found = []
    for at in range(len(edges) + 1):
        first, last = ([0, *edges][at], [*edges, BUCKETS][at])
        means = float(shares[0][:, at].mean()), float(shares[1][:, at].mean())
        estimate = _inside(sides, first, last, level)
        found.append(
            ClassChange(
                upper_ns=float(bounds[last]) if at < len(edges) else math.inf,
                shares=means,
                share_changed=abs(means[1] - means[0]) >= SMALLEST_SHARE_CHANGE
                and _differ(shares[0][:, at], shares[1][:, at], level),
                ratio=estimate[0] if estimate else None,
                interval=estimate[1:] if estimate else None,
                moved=estimate is not None
                and not estimate[1] <= 1.0 <= estimate[2]
                and abs(math.log(estimate[0])) > math.log1p(tolerance),
            )
        )
    return tuple(found)


def _inside(
    sides: Sequence[Sequence[Histogram]], first: int, last: int, level: float
) -> tuple[float, float, float] | None:
    """Return ratio and interval of the medians inside a class."""
    values: list[list[float]] = []
    for side in sides:
        medians = []
        for one in side:
            part = one.part(first, last)
            if part.total >= FEWEST_IN_CLASS:
                medians.append(quantile(sample_of_histogram(part), 0.5))
        values.append(medians)
    if min(map(len, values)) < 2:
        return None
    found = ratio_estimate({"": values[0]}, {"": values[1]}, level=level)
    return (found.ratio, found.low, found.high) if found else None


def _differ(first: Floats, second: Floats, level: float) -> bool:
    """Return whether shares of lifetimes differ: Welch's t on their variance-stabilising transform."""
    if min(len(first), len(second)) < 2:
        return False
    angles = [np.arcsin(np.sqrt(np.clip(each, 0.0, 1.0))) for each in (first, second)]
    parts = [float(each.var(ddof=1)) / len(each) for each in angles]
    distance = abs(float(angles[1].mean() - angles[0].mean()))
    if sum(parts) <= 0.0:
        return distance > 0.0
    freedom = welch_freedom(parts[0], len(first) - 1.0, parts[1], len(second) - 1.0)
    return distance > t_quantile(0.5 + 0.5 * level, freedom) * math.sqrt(sum(parts))


def _sure_borders(histogram: Histogram, settings: MiningSettings) -> list[int]:
    """Return the borders of many lifetimes together that are as significant as a stable border must be."""
    found = borders(histogram, settings=settings)
    return [border.edge for border in found if border.evidence.significance >= settings.stable_z]


def _new_classes(pooled: Sequence[Histogram], edges: Sequence[int], settings: MiningSettings) -> list[tuple[int, int]]:
    """Return bucket ranges of classes that only the new side shows."""
    own = _sure_borders(pooled[1], settings)
    found = []
    for first, last in zip([0, *own], [*own, BUCKETS], strict=True):
        parts = [each.part(first, last).total / max(float(each.total), 1.0) for each in pooled]
        if parts[1] >= NEW_CLASS_SHARE and parts[1] >= NEW_CLASS_FACTOR * parts[0]:
            found.append((first, last))
    return found if len(own) >= 1 and len(own) > len(edges) else []


def _rate_ratio(
    base: Sequence[LifetimeSample], new: Sequence[LifetimeSample], level: float
) -> tuple[float, float, float] | None:
    rates: list[NDArray[np.float64]] = [
        np.array([each.rate for each in side if each.rate], dtype=np.float64) for side in (base, new)
    ]
    found = ratio_estimate({"": rates[0]}, {"": rates[1]}, level=level) if min(map(len, rates)) >= 2 else None
    return (found.ratio, found.low, found.high) if found else None


def _cause(
    kinds: Sequence[str],
    changes: Sequence[ClassChange],
    rate: tuple[float, float, float] | None,
    base: Sequence[LifetimeSample],
    new: Sequence[LifetimeSample],
) -> tuple[str, str]:
    """Return the likely cause and the reason; unknown rather than a guess."""
    hosts = [{each.host for each in side} for side in (base, new)]
    if not hosts[0] & hosts[1]:
        return "unknown", "base and new ran on different hosts"
    if rate is not None and not rate[1] <= 1.0 <= rate[2] and abs(math.log(rate[0])) > math.log1p(LOAD_CHANGE):
        return "load", f"calls came {rate[0]:.3g} times as often"
    if list(kinds) == ["share-changed"]:
        return "load", OTHER_MIX
    if "class-moved" in kinds or "new-class" in kinds:
        where = "the same hosts" if len(hosts[0] & hosts[1]) > 1 else "the same host"
        known = "at the same call rate " if rate is not None else ""
        moved = sum(each.moved for each in changes)
        what = f"{moved} of {len(changes)} classes moved" if moved else "a class of durations is new"
        if len(changes) == 1 and moved:
            what = "its durations moved"
        return "code", f"{what}, {known}on {where}"
    return "unknown", "no class of durations changed for sure"
