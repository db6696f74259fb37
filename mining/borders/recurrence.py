"""Borders that recur over executions: the same classes for all of them, so that groups of call paths can be compared.

What the first paper asks of the borders of one execution, that most of its observations have them (algorithm 1), is
asked here of executions: a border that only one of five has is chance, or belongs to that execution alone.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specmine.mining.settings import MiningSettings
from specmine.model.buckets import BUCKET_EDGES
from specmine.model.histogram import Histogram

from .detection import borders, share_between

_NEAR = math.log(1.1)  # borders nearer than this are one
_SHAPED = 0.05  # largest difference of CDF values between a border and the valley in all calls that is it
_DIM = 1.0  # standard errors: that there is a border is known here, only its shape is asked for
_OCTAVE, _OCTAVES = 32, 2  # steps of an octave, and by how many octaves durations on two scales may differ
_BLUR = 3  # steps to both sides within which durations are alike

Regions = tuple[tuple[float, float], ...]
"""Dense, sparse and dense region, each from and to a duration in ns."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Execution:
    """The durations of one function in one execution, and the borders found in them."""

    histogram: Histogram
    edges: tuple[int, ...]
    """First bucket of each class but the lowest, ascending."""
    scale: Hashable
    """Equal for executions whose durations can be compared as they are: one host, one build."""
    bias_ns: float = 0.0
    """What the probes added to each duration."""

    @property
    def cdf(self) -> NDArray[np.float64]:
        """Share of the calls below each bucket edge, shape (BUCKETS + 1,)."""
        below = np.concatenate(([0.0], np.cumsum(self.histogram.dense, dtype=np.float64)))
        return np.asarray(below / max(below[-1], 1.0), dtype=np.float64)

    def edge_at(self, duration_ns: float) -> int:
        """Return the bucket edge nearest to a duration that is free of the probes' cost."""
        return int(np.abs(BUCKET_EDGES[1:-1] - duration_ns - self.bias_ns).argmin()) + 1

    def duration_at(self, edge: int) -> float:
        """Return the duration at a bucket edge, ns, free of the probes' cost."""
        return max(0.0, float(BUCKET_EDGES[edge]) - self.bias_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurring:
    """A border that most executions have."""

    edges: tuple[int, ...]
    """Its place in each execution: where that found it, else where the others have it."""
    found: frozenset[int]
    """Numbers of the executions that found it themselves."""
    has: int
    """Executions that have it: found, or their density falls there, at least half as far as where it was found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Member:
    """A border of one execution; durations in ns on the scale of all."""

    execution: int
    edge: int
    duration: float
    regions: Regions
    """Where its fall is measured; empty if the sum of all calls does not show it."""
    depth: float


def recurring(executions: Sequence[Execution], *, settings: MiningSettings) -> tuple[Recurring, ...]:
    """Return the borders that most executions have, ascending.

    Parameters
    ----------
    executions : sequence of Execution
        At least one; those that found no border included.
    settings : MiningSettings
        ``stable_share`` of the executions must have a border.

    Returns
    -------
    tuple of Recurring

    Notes
    -----
    Borders of two executions are one if they lie at the same duration (10 %), or if one lies between the dense regions
    beside the other. Durations of another host or build are divided by the factor that makes the distributions most
    alike (``factors``). Where an execution found none, its calls in the three regions in which the fall was measured
    elsewhere tell whether it has it.
    """
    scaled = factors(executions)
    members = [
        border
        for number, (each, factor) in enumerate(zip(executions, scaled, strict=True))
        for border in _members(number, each, factor, settings)
    ]
    kept = []
    for cluster in _clusters(members):
        found = {each.execution: each.edge for each in cluster}
        has = len(found) + sum(
            any(_falls(each, factor, border) for border in cluster)
            for number, (each, factor) in enumerate(zip(executions, scaled, strict=True))
            if number not in found
        )
        if has >= settings.stable_share * len(executions):
            middle = float(np.median([each.duration for each in cluster]))
            edges = tuple(
                found.get(number, each.edge_at(middle * factor))
                for number, (each, factor) in enumerate(zip(executions, scaled, strict=True))
            )
            kept.append((middle, Recurring(edges=edges, found=frozenset(found), has=has)))
    return tuple(border for _, border in sorted(kept, key=lambda each: (each[0], each[1].edges)))


def factors(executions: Sequence[Execution]) -> tuple[float, ...]:
    """Return by what the durations of each execution are to be divided to be compared with the others'.

    1 for the scale of most calls; for each other one the factor, at most four, under which the histograms of the
    logarithms overlap most (Bhattacharyya's coefficient): peaks stay where they are when the load shifts calls from one
    to another, quantiles do not.
    """
    together: dict[Hashable, NDArray[np.float64]] = {}
    calls: dict[Hashable, int] = {}
    for each in executions:
        total = each.histogram.total
        together[each.scale] = together.get(each.scale, 0.0) + total * _logarithmic(each)
        calls[each.scale] = calls.get(each.scale, 0) + total
    reference = max(calls, key=lambda scale: calls[scale])
    found = {scale: _factor(together[reference], density) for scale, density in together.items()}
    return tuple(1.0 if each.scale == reference else found[each.scale] for each in executions)


def _logarithmic(execution: Execution) -> NDArray[np.float64]:
    """Return the density of the logarithms of the durations, smoothed_cdf a little."""
    grid = 2.0 ** (np.arange(5 * _OCTAVE, 40 * _OCTAVE + 1) / _OCTAVE)
    density = np.diff(np.interp(grid + execution.bias_ns, BUCKET_EDGES, execution.cdf))
    return np.convolve(density, np.full(2 * _BLUR + 1, 1.0 / (2 * _BLUR + 1)), mode="same")


def _factor(reference: NDArray[np.float64], density: NDArray[np.float64]) -> float:
    most = _OCTAVES * _OCTAVE
    one, other = np.pad(np.sqrt(reference), most), np.sqrt(density)
    overlap = np.correlate(one, other, mode="valid")  # at most - s for durations s steps longer than the reference's
    steps = most - np.arange(len(overlap))
    best = max(range(len(overlap)), key=lambda at: (float(overlap[at]), -abs(int(steps[at]))))
    return float(2.0 ** (steps[best] / _OCTAVE))


def _members(number: int, execution: Execution, factor: float, settings: MiningSettings) -> list[_Member]:
    cdf, bias = execution.cdf, execution.bias_ns
    seen = borders(execution.histogram, settings=settings, z=_DIM) if execution.edges else ()
    members = []
    for edge in execution.edges:
        below = float(cdf[edge])
        near = [each for each in seen if abs(each.cdf - below) < _SHAPED]
        shape = min(near, key=lambda each: abs(each.cdf - below), default=None)
        regions = shape.regions if shape is not None else ()
        members.append(
            _Member(
                execution=number,
                edge=edge,
                duration=execution.duration_at(edge) / factor,
                regions=tuple(((low - bias) / factor, (high - bias) / factor) for low, high in regions),
                depth=shape.evidence.depth if shape is not None else 0.0,
            )
        )
    return members


def _clusters(members: Sequence[_Member]) -> list[list[_Member]]:
    """Return borders that are one, at most one of each execution; the nearest are joined."""
    clusters: list[list[_Member]] = []
    for border in sorted(members, key=lambda each: (each.duration, each.execution)):
        near = []
        for at, cluster in enumerate(clusters):
            if all(each.execution != border.execution for each in cluster):
                far = [distance for each in cluster if (distance := _apart(each, border)) is not None]
                near += [(min(far), at)] if far else []
        if near:
            clusters[min(near)[1]].append(border)
        else:
            clusters.append([border])
    return clusters


def _apart(one: _Member, other: _Member) -> float | None:
    """Return how far two borders that can be one lie apart, None if they cannot."""
    far = abs(math.log(max(one.duration, 1.0) / max(other.duration, 1.0)))
    return far if far < _NEAR or _between(one, other) or _between(other, one) else None


def _between(one: _Member, other: _Member) -> bool:
    """Return whether a border lies between the dense regions beside another."""
    return bool(other.regions) and other.regions[0][1] < one.duration < other.regions[2][0]


def _falls(execution: Execution, factor: float, border: _Member) -> bool:
    """Return whether the density falls at a border, at least half as far as where it was found."""
    regions = [(low * factor + execution.bias_ns, high * factor + execution.bias_ns) for low, high in border.regions]
    if not regions or any(low <= 0 or high <= low for low, high in regions):
        return False
    left, low, right = (share_between(execution.cdf, region) for region in regions)
    low += 0.5 / max(execution.histogram.total, 1)  # an empty region is sparse, not infinitely so
    width = [math.log(end / start) for start, end in regions]
    return low / width[1] < min(left / width[0], right / width[2]) * math.sqrt(max(1 - border.depth, 1e-9))
