"""Stable borders over observations, and the chain of newest observations that agree with them.

Stable borders are those that the newest observations have in common (first paper, algorithm 1). The chain is the run
of newest observations that all fit them (algorithm 2).

The paper detects borders in each observation and clusters them. Here a border is detected in the calls of all
observations together, where the statistics are best. Then each observation is tested for it at that place. The paper
checks only that every detected border is known. Here it is also checked that every known border is detected, that
the classes keep their shares, and that all calls and each class keep their level.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from specmine.mining.settings import MiningSettings
from specmine.mining.statistics.class_shares import agreement, dispersion
from specmine.mining.statistics.level_step import newest_step
from specmine.mining.statistics.location import locations
from specmine.model.buckets import BUCKETS
from specmine.model.histogram import Histogram
from specmine.model.observation import Observation

from .clock_resolution import Grain, grain_of
from .course import Course, drift_of, lies_between, mixture_of
from .detection import Border, Evidence, borders, grain_behind, smoothed
from .stretch import NONE, Stretch
from .valleys import EDGES

_REACH = 0.05  # largest difference of CDF values at which two borders can be one
_NOISE = 40  # newest observations from which the variation of shares is estimated; ten are too few
_PARTED = 0.3  # depth of a valley from which all calls together are no single class
_ROUNDS = 3  # of finding steps of the level, and the borders of the windows after them


@dataclass(frozen=True, slots=True, kw_only=True)
class StableBorder:
    """A border detected again in most of the newest observations."""

    edge: int
    """First bucket of the upper class."""
    duration_ns: float
    cdf: float
    """Share of all calls of these observations below it."""
    found: int
    """Number of observations that have it: their density falls there at least half as far as that of all ..."""
    of: int
    """... and the number of all."""
    regions: tuple[tuple[float, float], ...]
    """Dense, sparse and dense region, ns."""
    evidence: Evidence
    """From the calls of these observations together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """The newest observations that all fit the stable borders."""

    borders: tuple[StableBorder, ...]
    observations: int
    """Length of the chain, without observations of too few calls."""
    calls: int
    start_ns: int | None
    end_ns: int | None
    stable: bool
    """True if the chain is long enough (``chain_observations``), and its level has no course."""
    ended_by: str
    """Why the observation before the chain does not belong to it; '' if there is none.

    'border': it has another border. 'shares': its classes have other shares. 'level': its durations, or those of a
    class, have another level. 'missing': a stable border is missing too often.
    """
    step: float = 1.0
    """Where it ended by the level: the factor of the durations from before to after."""
    course: Course | None = None
    """How the level goes within the chain, if it drifts, or if its windows make no class together."""


def chain(
    observations: Sequence[Observation],
    *,
    settings: MiningSettings,
    found: Sequence[tuple[Border, ...]] | None = None,
    stretch: Stretch = NONE,
) -> Chain:
    """Return the run of newest observations that all fit the stable borders.

    Parameters
    ----------
    observations : sequence of Observation
        Of one function, oldest first.
    settings : MiningSettings
    found : sequence of tuple of Border, optional
        Result of ``borders`` for each observation, if the caller has it.
    stretch : Stretch
        What the durations in the histograms were stretched by; levels are those of the durations themselves.

    Returns
    -------
    Chain
        Empty (no times, not stable) if not even the newest observation fits.

    Notes
    -----
    An observation does not fit if it has a border that matches no stable one under the CDF of the newest observations.
    One of the two observations before or after must have such a border too. It does not fit either if its class shares
    disagree with those of the newer ones of the chain. They are tested at ``level``, in units of the dispersion
    between neighbouring windows. If a stable border is missing from ``missing_limit`` observations in a row, the chain
    ends before the first of them.
    """
    judged, theirs = _judged(observations, found, settings)
    first, step = _begin(judged, [], 0, stretch)
    shared = _Shared()
    for _ in range(_ROUNDS):
        # before enough windows have the new level, the old ones still tell where the classes are
        since = first if len(judged) - first >= settings.chain_observations else 0
        begin = max(len(judged) - settings.recent, since, 0)
        shared = _shared(judged[begin:], theirs[begin:], settings) if judged else _Shared()
        if not first and not shared.borders:
            break  # nothing else was tested than all calls
        later, its_step = _begin(judged, [b.edge for b in shared.borders], first, stretch)
        if later == first:
            break
        first, step = later, its_step
    stable, cdf, grain = shared.borders, shared.cdf, shared.grain
    reach = [_reach(stable, i, settings) for i in range(len(stable))]
    other = [
        _others(of_one, one, stable, reach, cdf, grain, settings) for one, of_one in zip(judged, theirs, strict=True)
    ]
    cdfs = [_cdf(o, grain, settings) for o in judged] if stable else []
    edges = [b.edge for b in stable]
    rows = [o.histogram.class_counts(edges) for o in judged]
    noise = dispersion(rows[-_NOISE:])
    pool = np.zeros(len(edges) + 1, dtype=np.int64)
    missing = [0] * len(stable)
    length, ended_by = 0, ""
    for index in reversed(range(len(judged))):
        if _again(other[index], other[max(index - 2, 0) : index] + other[index + 1 : index + 3]):
            ended_by = "border"
            break
        if agreement(rows[index], pool, noise) < settings.level:
            ended_by = "shares"
            break
        if index < first:
            ended_by = "level"
            break
        for i, border in enumerate(stable):
            missing[i] = 0 if _has(cdfs[index], judged[index].timed, border) else missing[i] + 1
        pool += rows[index]
        length += 1
        if max(missing, default=0) >= settings.missing_limit:
            length -= settings.missing_limit
            ended_by = "missing"
            break
    part = judged[len(judged) - length :]
    course = _course(part, shared.parted, stretch) if length >= settings.chain_observations else None
    return Chain(
        borders=stable,
        observations=length,
        calls=sum(o.timed for o in part),
        start_ns=part[0].start_ns if part else None,
        end_ns=part[-1].end_ns if part else None,
        stable=length >= settings.chain_observations and course is None,
        ended_by=ended_by,
        step=math.exp(step) if ended_by == "level" else 1.0,
        course=course,
    )


def _begin(judged: Sequence[Observation], edges: Sequence[int], first: int, stretch: Stretch) -> tuple[int, float]:
    """Return the first observation after the newest step of the level of all calls or a class, and the log factor.

    Only observations from ``first`` on are tested; if there is no step, this is returned.
    """
    found = (first, 0.0)
    for levels in locations([one.histogram for one in judged[first:]], edges):
        step = newest_step(stretch.levels(levels))
        if step is not None and first + step.first > found[0]:
            found = first + step.first, step.size
    return found


def _course(chained: Sequence[Observation], parted: bool, stretch: Stretch) -> Course | None:
    """Return how the level goes in a chain if it drifts, or if its windows are parted."""
    (levels,) = locations([one.histogram for one in chained], ())
    span_ns = chained[-1].end_ns - chained[0].start_ns
    levels = stretch.levels(levels)
    return mixture_of(levels, span_ns) if parted else drift_of(levels, span_ns)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Shared:
    """What the newest observations have in common."""

    borders: tuple[StableBorder, ...] = ()
    cdf: NDArray[np.float64] = field(default_factory=lambda: np.zeros(BUCKETS + 1))
    """Of all their calls."""
    grain: Grain = field(default_factory=Grain)
    parted: bool = False
    """True if all calls together have a deep valley that no observation has: it lies between observations."""


def _shared(judged: Sequence[Observation], theirs: Sequence[tuple[Border, ...]], settings: MiningSettings) -> _Shared:
    """Return what these observations have in common; fewer than ``chain_observations`` have no stable border."""
    together = Histogram.sum(one.histogram for one in judged)
    behind = grain_behind(together, settings=settings, z=settings.stable_z)
    grain = behind or (grain_of(together.dense, above_ns=settings.resolution_ns) if any(theirs) else Grain())
    evident = borders(together, settings=settings, z=settings.stable_z, grain=grain) if behind else ()
    below = np.concatenate(([0.0], np.cumsum(together.dense, dtype=np.float64)))
    stable, parted = [], False
    cdfs = [_cdf(one, grain, settings) for one in judged] if evident else []
    for border in evident:
        recurrence = sum(_has(cdf, one.timed, border) for cdf, one in zip(cdfs, judged, strict=True))
        if recurrence >= settings.stable_share * len(judged):
            stable.append(
                StableBorder(
                    edge=border.edge,
                    duration_ns=border.duration_ns,
                    cdf=border.cdf,
                    found=recurrence,
                    of=len(judged),
                    regions=border.regions,
                    evidence=border.evidence,
                )
            )
        elif border.evidence.significance >= settings.firm_z and border.evidence.depth >= _PARTED:
            parted |= lies_between([one.histogram.class_counts([border.edge]).tolist() for one in judged], border.cdf)
    enough = len(judged) >= settings.chain_observations
    return _Shared(borders=tuple(stable) if enough else (), cdf=below / below[-1], grain=grain, parted=parted)


def _cdf(one: Observation, grain: Grain, settings: MiningSettings) -> NDArray[np.float64]:
    """Return the CDF of an observation, corrected for a coarse clock if there is one."""
    if grain != Grain():
        return smoothed(one.histogram, settings=settings, grain=grain)[0]
    return np.concatenate(([0.0], np.cumsum(one.histogram.dense, dtype=np.float64) / one.timed))


def _has(cdf: NDArray[np.float64], calls: int, border: Border | StableBorder) -> bool:
    """Return whether the density of an observation falls at a border at least half as far as that of all."""
    ends: list[float] = np.interp(np.ravel(border.regions), EDGES, cdf).tolist()
    (a, b), (c, d), (e, f) = border.regions
    left, low, right = ends[1] - ends[0], ends[3] - ends[2], ends[5] - ends[4]
    low += 0.5 / calls  # an empty region is sparse, not infinitely so
    fall = math.sqrt(max(1 - border.evidence.depth, 1e-9))
    return low / math.log(d / c) < min(left / math.log(b / a), right / math.log(f / e)) * fall


def _reach(stable: Sequence[StableBorder], index: int, settings: MiningSettings) -> float:
    """Return how far the CDF value of a border of one observation may be from that of a stable border.

    It is at most half the smaller class beside it, so that no border can be taken for the next one.
    """
    values = [0.0, *(b.cdf for b in stable), 1.0]
    smaller = min(values[index + 1] - values[index], values[index + 2] - values[index + 1])
    return max(min(0.5 * smaller, _REACH), settings.match_threshold)


def _others(
    detected: Sequence[Border],
    one: Observation,
    stable: Sequence[StableBorder],
    reach: Sequence[float],
    cdf: NDArray[np.float64],
    grain: Grain,
    settings: MiningSettings,
) -> tuple[float, ...]:
    """Return the CDF values of borders of an observation that match no stable one."""

    def unknown(candidates: Sequence[Border]) -> tuple[float, ...]:
        values = [float(cdf[border.edge]) for border in candidates]
        return tuple(v for v in values if not any(abs(v - b.cdf) < r for b, r in zip(stable, reach, strict=True)))

    first = unknown(detected)
    if first and grain != Grain():
        # one observation may have too few calls to show the step of a coarse clock; its teeth then look like borders
        return unknown(borders(one.histogram, settings=settings, grain=grain))
    return first


def _again(unknown: Sequence[float], neighbours: Sequence[Sequence[float]]) -> bool:
    """Return whether an observation and one nearby both have unknown borders, even at different places."""
    return bool(unknown) and any(neighbours)


def _judged(
    observations: Sequence[Observation],
    found: Sequence[tuple[Border, ...]] | None,
    settings: MiningSettings,
) -> tuple[list[Observation], list[tuple[Border, ...]]]:
    if found is not None and len(found) != len(observations):
        raise ValueError(f"{len(observations)} observations, but borders of {len(found)}")
    judged, theirs = [], []
    for index, observation in enumerate(observations):
        if observation.timed >= settings.minimum_calls:
            judged.append(observation)
            theirs.append(
                found[index] if found is not None else borders(observation.histogram, settings=settings, grain=Grain())
            )
    return judged, theirs
