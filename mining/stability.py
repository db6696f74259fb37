"""What stays the same from observation to observation: stable borders, and how far back they hold.

Stable borders are those found again and again in the newest observations (first paper, algorithm 1); the
chain is the run of newest observations that all fit them (algorithm 2). The paper's fit is one-sided: it asks
whether every border found is known, not whether every known one is found, nor whether the classes keep their
shares. Both are asked here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .borders import Border, Evidence, borders
from .granularity import clock_step
from .observation import BUCKETS, Counts, Observation
from .settings import MiningSettings
from .shares import agreement, class_counts, dispersion

_NOISE = 40  # newest observations that tell how much shares vary: ten know it too badly to show changes


@dataclass(frozen=True, slots=True, kw_only=True)
class StableBorder:
    """A border found again in the great majority of the newest observations."""

    edge: int
    """First bucket of the upper class."""
    duration_ns: float
    cdf: float
    """Share of all calls of these observations below it."""
    found: int
    """Observations that have it ..."""
    of: int
    """... of so many."""
    evidence: Evidence
    """From the calls of these observations together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """The newest observations that all fit the stable borders."""

    borders: tuple[StableBorder, ...]
    observations: int
    """Length of the chain; observations of too few calls are passed over and do not count."""
    calls: int
    start_ns: int | None
    end_ns: int | None
    stable: bool
    """True if the chain is long enough to be believed."""
    ended_by: str
    """Why the observation before the chain does not belong to it: 'border' (it has another), 'shares' (its
    classes have other shares), 'missing' (a stable border is missing too often); '' if there is none
    before.
    """


def merged(observations: Sequence[Observation]) -> Counts:
    """Return the sum of the histograms."""
    total = np.zeros(BUCKETS, dtype=np.uint64)
    for observation in observations:
        total += observation.counts
    return total


def mean_shift(values: ArrayLike, bandwidth: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Cluster numbers by mean shift with a flat kernel.

    Parameters
    ----------
    values : array_like of float, shape (n,)
    bandwidth : float
        Radius of the kernel.

    Returns
    -------
    centres : ndarray of float64
        Of the clusters, most populated first, ties largest first.
    labels : ndarray of int64, shape (n,)
        Index of each value's nearest centre.

    Notes
    -----
    Fukunaga and Hostetler 1975; Comaniciu and Meer 2002. Every value climbs to the mean of the values within
    ``bandwidth`` until it rests; of resting points within a bandwidth of each other the more populated stays.
    """
    points = np.asarray(values, dtype=np.float64)
    if points.size == 0:
        return np.empty(0), np.empty(0, dtype=np.int64)
    seeds = points.copy()
    for _ in range(300):
        inside = np.abs(seeds[:, None] - points[None, :]) <= bandwidth
        moved = (inside * points).sum(axis=1) / inside.sum(axis=1)
        if np.abs(moved - seeds).max() <= 1e-3 * bandwidth:
            break
        seeds = moved
    seeds = moved
    population = (np.abs(seeds[:, None] - points[None, :]) <= bandwidth).sum(axis=1)
    centres: list[float] = []
    for index in np.lexsort((-seeds, -population)):
        if all(abs(seeds[index] - centre) > bandwidth for centre in centres):
            centres.append(float(seeds[index]))
    found = np.array(centres)
    return found, np.argmin(np.abs(points[:, None] - found[None, :]), axis=1)


def match(first: float, second: float, settings: MiningSettings) -> bool:
    """Return whether two borders, given by their CDF values, are one (first paper, definition 1)."""
    return abs(first - second) < settings.match_threshold


def match_border_sets(first: Sequence[float], second: Sequence[float], settings: MiningSettings) -> bool:
    """Return whether every border of the first set matches one of the second (first paper, definition 4)."""
    return all(any(match(a, b, settings) for b in second) for a in first)


def stable_borders(
    observations: Sequence[Observation],
    *,
    settings: MiningSettings,
    found: Sequence[tuple[Border, ...]] | None = None,
) -> tuple[StableBorder, ...]:
    """Return the borders that the newest observations have in common.

    Parameters
    ----------
    observations : sequence of Observation
        Oldest first; the newest ``settings.recent`` of at least ``settings.minimum_calls`` calls are used.
    settings : MiningSettings
    found : sequence of tuple of Border, optional
        What ``borders`` returned for each observation, if the caller keeps it.

    Returns
    -------
    tuple of StableBorder
        Ascending. Each is found in at least ``stable_share`` of the observations, there at least half as
        clear as the number of calls lets expect, and stands out by ``stable_z`` in all their calls together.
    """
    kept, theirs = _judged(observations, found, settings)
    kept, theirs = kept[-settings.recent :], theirs[-settings.recent :]
    if len(kept) < settings.chain_observations:
        return ()
    together = merged(kept)
    cdf = _cdf(together)
    values = [float(cdf[b.edge]) for own in theirs for b in own]
    owners = [(i, b) for i, own in enumerate(theirs) for b in own]
    total = int(together.sum())
    centres, labels = mean_shift(values, settings.match_threshold)
    evident = [b for b in borders(together, settings=settings) if b.evidence.significance >= settings.stable_z]
    result: dict[int, StableBorder] = {}
    for index, centre in enumerate(centres):
        near = [b for b in evident if match(b.cdf, float(centre), settings)]
        if not near:
            continue
        border = min(near, key=lambda b: (abs(b.cdf - centre), b.edge))
        members = [owners[i] for i in np.flatnonzero(labels == index)]
        recurrence = len({i for i, b in members if _as_clear(b, border.evidence, kept[i].timed / total)})
        if border.edge not in result and recurrence >= settings.stable_share * len(kept):
            result[border.edge] = StableBorder(
                edge=border.edge,
                duration_ns=border.duration_ns,
                cdf=border.cdf,
                found=recurrence,
                of=len(kept),
                evidence=border.evidence,
            )
    return tuple(result[edge] for edge in sorted(result))


def chain(
    observations: Sequence[Observation],
    *,
    settings: MiningSettings,
    found: Sequence[tuple[Border, ...]] | None = None,
) -> Chain:
    """Return the run of newest observations that all fit the stable borders.

    Parameters
    ----------
    observations : sequence of Observation
        Of one function, oldest first.
    settings : MiningSettings
    found : sequence of tuple of Border, optional
        What ``borders`` returned for each observation, if the caller keeps it.

    Returns
    -------
    Chain
        Empty (no times, not stable) if not even the newest observation fits.

    Notes
    -----
    An observation fits if each of its borders beyond doubt (``firm_z``) matches a stable one under the CDF of
    the newest observations, and if its class shares agree with those of the newer ones of the chain
    (``level``, in units of the dispersion between neighbouring windows). Where a stable border is missing
    from ``missing_limit`` observations running, the chain ends before the first of them; it is
    missing where it is not half as clear as the number of calls lets expect.
    """
    kept, theirs = _judged(observations, found, settings)
    stable = stable_borders(kept, settings=settings, found=theirs)
    together = merged(kept[-settings.recent :])
    total, cdf = int(together.sum()), _cdf(together)
    # one observation may hold too few calls to show the step of a coarse clock, whose teeth then look like borders
    step = clock_step(together, above_ns=settings.resolution_ns) if total else 0.0
    edges = [b.edge for b in stable]
    rows = [class_counts(o.counts, edges) for o in kept]
    noise = dispersion(rows[-_NOISE:])
    pool = np.zeros(len(edges) + 1, dtype=np.int64)
    missing = [0] * len(stable)
    length, ended_by = 0, ""
    for one, row, own in zip(reversed(kept), reversed(rows), reversed(theirs), strict=True):
        if _has_other(own, stable, cdf, settings) and (
            step == 0.0 or _has_other(borders(one.counts, settings=settings, resolution_ns=step), stable, cdf, settings)
        ):
            ended_by = "border"
            break
        if agreement(row, pool, noise) < settings.level:
            ended_by = "shares"
            break
        for i, border in enumerate(stable):
            clear = [b for b in own if _as_clear(b, border.evidence, one.timed / total)]
            here = [float(cdf[b.edge]) for b in clear]
            missing[i] = 0 if match_border_sets([border.cdf], here, settings) else missing[i] + 1
        pool += row
        length += 1
        if max(missing, default=0) >= settings.missing_limit:
            length -= settings.missing_limit
            ended_by = "missing"
            break
    part = kept[len(kept) - length :]
    return Chain(
        borders=stable,
        observations=length,
        calls=sum(o.timed for o in part),
        start_ns=part[0].start_ns if part else None,
        end_ns=part[-1].end_ns if part else None,
        stable=length >= settings.chain_observations,
        ended_by=ended_by,
    )


def _has_other(
    own: Sequence[Border], stable: Sequence[StableBorder], cdf: NDArray[np.float64], settings: MiningSettings
) -> bool:
    """Return whether a border beyond doubt matches no stable one."""
    firm = [float(cdf[b.edge]) for b in own if b.evidence.significance >= settings.firm_z]
    return not match_border_sets(firm, [b.cdf for b in stable], settings)


def _as_clear(border: Border, together: Evidence, share: float) -> bool:
    """Return whether a border is at least half as clear as one of all calls would be in this share of them.

    Without this a chance ripple of one observation could pass for a border that is far clearer elsewhere.
    """
    return border.evidence.significance >= 0.5 * together.significance * math.sqrt(share)


def _judged(
    observations: Sequence[Observation],
    found: Sequence[tuple[Border, ...]] | None,
    settings: MiningSettings,
) -> tuple[list[Observation], list[tuple[Border, ...]]]:
    if found is not None and len(found) != len(observations):
        raise ValueError(f"{len(observations)} observations, but borders of {len(found)}")
    kept, theirs = [], []
    for index, observation in enumerate(observations):
        if observation.timed >= settings.minimum_calls:
            kept.append(observation)
            theirs.append(found[index] if found is not None else borders(observation.counts, settings=settings))
    return kept, theirs


def _cdf(counts: Counts) -> NDArray[np.float64]:
    below = np.concatenate(([0.0], np.cumsum(counts, dtype=np.float64)))
    return np.asarray(below / max(below[-1], 1.0), dtype=np.float64)
