"""Borders that recur over executions: all get the same classes, so that groups of call paths can be compared.

The first paper requires that most observations of one execution have a border (algorithm 1). Here most executions must
have it: a border that only one of five has is random, or belongs to that execution alone.
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
_SHAPED = 0.05  # largest difference of CDF values between a border and its valley in all calls
_DIM = 1.0  # standard errors: the border is known to exist, only its shape is needed
_OCTAVE, _OCTAVES = 32, 2  # steps of an octave, and by how many octaves durations on two scales may differ
_SMOOTHING = 3  # steps to both sides over which the density is averaged

Regions = tuple[tuple[float, float], ...]
"""Dense, sparse and dense region, each from and to a duration in ns."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Execution:
    """The durations of one function in one execution, and the borders found in them."""

    histogram: Histogram
    edges: tuple[int, ...]
    """First bucket of each class but the lowest, ascending."""
    scale: Hashable
    """Equal for executions whose durations are comparable without scaling: one host, one build."""
    bias_ns: float = 0.0
    """What the probes added to each duration."""

    @property
    def cdf(self) -> NDArray[np.float64]:
        """Share of the calls below each bucket edge, shape (BUCKETS + 1,)."""
        below = np.concatenate(([0.0], np.cumsum(self.histogram.dense, dtype=np.float64)))
        return np.asarray(below / max(below[-1], 1.0), dtype=np.float64)

    def edge_at(self, duration_ns: float) -> int:
        """Return the bucket edge nearest to a duration without the probes' cost."""
        return int(np.abs(BUCKET_EDGES[1:-1] - duration_ns - self.bias_ns).argmin()) + 1

    def duration_at(self, edge: int) -> float:
        """Return the duration at a bucket edge, ns, without the probes' cost."""
        return max(0.0, float(BUCKET_EDGES[edge]) - self.bias_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurring:
    """A border that most executions have."""

    edges: tuple[int, ...]
    """Its edge in each execution: its own where it was detected, else that of the others."""
    found: frozenset[int]
    """Numbers of the executions in which it was detected."""
    has: int
    """Executions that have it: detected, or the density falls there at least half as far as where it was detected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Member:
    """A border of one execution; durations in ns on the scale of all."""

    execution: int
    edge: int
    duration: float
    regions: Regions
    """Regions in which its fall is measured; empty if the sum of all calls has no valley there."""
    depth: float


def recurring(executions: Sequence[Execution], *, settings: MiningSettings) -> tuple[Recurring, ...]:
    """Return the borders that most executions have, ascending.

    Parameters
    ----------
    executions : sequence of Execution
        At least one; also those without a border.
    settings : MiningSettings
        ``stable_share`` of the executions must have a border.

    Returns
    -------
    tuple of Recurring

    Notes
    -----
    Borders of two executions are one if they lie at the same duration (10 %), or if one lies between the dense regions
    beside the other. Durations of another host or build are divided by the factor that makes the distributions most
    similar (``factors``). If a border was not detected in an execution, its density is tested in the three regions in
    which the fall was measured elsewhere.
    """
    scaled = factors(executions)
    members = [
        border
        for number, (execution, factor) in enumerate(zip(executions, scaled, strict=True))
        for border in _members(number, execution, factor, settings)
    ]
    recurrent = []
    for cluster in _clusters(members):
        detected = {member.execution: member.edge for member in cluster}
        has = len(detected) + sum(
            any(_falls(execution, factor, border) for border in cluster)
            for number, (execution, factor) in enumerate(zip(executions, scaled, strict=True))
            if number not in detected
        )
        if has >= settings.stable_share * len(executions):
            middle = float(np.median([member.duration for member in cluster]))
            edges = tuple(
                detected.get(number, execution.edge_at(middle * factor))
                for number, (execution, factor) in enumerate(zip(executions, scaled, strict=True))
            )
            recurrent.append((middle, Recurring(edges=edges, found=frozenset(detected), has=has)))
    return tuple(border for _, border in sorted(recurrent, key=lambda pair: (pair[0], pair[1].edges)))


def factors(executions: Sequence[Execution]) -> tuple[float, ...]:
    """Return the divisor that makes the durations of each execution comparable with the others.

    It is 1 for the scale with most calls. For each other scale it is the factor, at most four, under which the
    histograms of the logarithms overlap most (Bhattacharyya's coefficient). Quantiles would not do: they move when the
    load shifts calls from one peak to another, but peaks stay.
    """
    together: dict[Hashable, NDArray[np.float64]] = {}
    calls: dict[Hashable, int] = {}
    for execution in executions:
        total, scale = execution.histogram.total, execution.scale
        together[scale] = together.get(scale, 0.0) + total * _logarithmic(execution)
        calls[scale] = calls.get(scale, 0) + total
    reference = max(calls, key=lambda scale: calls[scale])
    of_scale = {scale: _factor(together[reference], density) for scale, density in together.items()}
    return tuple(1.0 if execution.scale == reference else of_scale[execution.scale] for execution in executions)


def _logarithmic(execution: Execution) -> NDArray[np.float64]:
    """Return the density of the logarithms of the durations, slightly smoothed."""
    grid = 2.0 ** (np.arange(5 * _OCTAVE, 40 * _OCTAVE + 1) / _OCTAVE)
    density = np.diff(np.interp(grid + execution.bias_ns, BUCKET_EDGES, execution.cdf))
    return np.convolve(density, np.full(2 * _SMOOTHING + 1, 1.0 / (2 * _SMOOTHING + 1)), mode="same")


def _factor(reference: NDArray[np.float64], density: NDArray[np.float64]) -> float:
    most = _OCTAVES * _OCTAVE
    one, other = np.pad(np.sqrt(reference), most), np.sqrt(density)
    overlap = np.correlate(one, other, mode="valid")  # at most - s for durations s steps longer than the reference's
    steps = most - np.arange(len(overlap))
    best = max(range(len(overlap)), key=lambda at: (float(overlap[at]), -abs(int(steps[at]))))
    return float(2.0 ** (steps[best] / _OCTAVE))


def _members(number: int, execution: Execution, factor: float, settings: MiningSettings) -> list[_Member]:
    cdf, bias = execution.cdf, execution.bias_ns
    in_all = borders(execution.histogram, settings=settings, z=_DIM) if execution.edges else ()
    members = []
    for edge in execution.edges:
        below = float(cdf[edge])
        near = [border for border in in_all if abs(border.cdf - below) < _SHAPED]
        shape = min(near, key=lambda border: abs(border.cdf - below), default=None)
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
    """Return clusters of borders that are one, at most one of each execution; the nearest are joined."""
    clusters: list[list[_Member]] = []
    for border in sorted(members, key=lambda member: (member.duration, member.execution)):
        near = []
        for at, cluster in enumerate(clusters):
            if all(member.execution != border.execution for member in cluster):
                far = [distance for member in cluster if (distance := _apart(member, border)) is not None]
                near += [(min(far), at)] if far else []
        if near:
            clusters[min(near)[1]].append(border)
        else:
            clusters.append([border])
    return clusters


def _apart(one: _Member, other: _Member) -> float | None:
    """Return the distance of two borders that can be one; None if they cannot."""
    far = abs(math.log(max(one.duration, 1.0) / max(other.duration, 1.0)))
    return far if far < _NEAR or _between(one, other) or _between(other, one) else None


def _between(one: _Member, other: _Member) -> bool:
    """Return whether a border lies between the dense regions beside another."""
    return bool(other.regions) and other.regions[0][1] < one.duration < other.regions[2][0]


def _falls(execution: Execution, factor: float, border: _Member) -> bool:
    """Return whether the density falls at a border at least half as far as where it was detected."""
    regions = [(low * factor + execution.bias_ns, high * factor + execution.bias_ns) for low, high in border.regions]
    if not regions or any(low <= 0 or high <= low for low, high in regions):
        return False
    left, low, right = (share_between(execution.cdf, region) for region in regions)
    low += 0.5 / max(execution.histogram.total, 1)  # an empty region is sparse, not infinitely so
    width = [math.log(end / start) for start, end in regions]
    return low / width[1] < min(left / width[0], right / width[2]) * math.sqrt(max(1 - border.depth, 1e-9))
