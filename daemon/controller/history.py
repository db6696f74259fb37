"""What one more observation adds to what is known of a function."""

from __future__ import annotations

import math
from dataclasses import replace

from specmine.mining.regression.lifetime_utility import with_window
from specmine.model.buckets import BUCKET_MIDDLES
from specmine.model.histogram import Counts, frozen_counts, quantiles
from specmine.model.observation import Kind, Observation
from specmine.model.pooling import pooled
from specmine.model.sparse import kept

from .function import Knowledge

HELD = {Kind.TIME: 1, Kind.PATH: 2}
"""Observations held one by one, in multiples of those that stable borders come from."""
_JUDGED_CALLS = 200
"""A window of fewer calls has no median to speak of."""


def with_observation(known: Knowledge, seen: Observation, recent: int) -> Knowledge:
    """Add an observation; the oldest fall out of the timed, and merge among those with paths."""
    totals = replace(
        known.totals,
        timed=known.totals.timed + seen.timed,
        inner=known.totals.inner + seen.inner,
        censored=known.totals.censored + seen.censored,
        observations=known.totals.observations + 1,
    )
    if seen.split is not None:
        own_ns = float(seen.split.on_cpu @ BUCKET_MIDDLES) - seen.bias_ns * seen.timed
        totals = replace(
            totals,
            running_ns=totals.running_ns + max(0.0, own_ns),
            waiting_ns=totals.waiting_ns + int(seen.split.waiting_ns.sum()),
            blocked_ns=totals.blocked_ns + int(seen.split.blocked_ns.sum()),
        )
    histogram = frozen_counts(known.histogram + seen.counts)
    most = recent * HELD[seen.kind]
    borders = (*known.borders_of(seen.kind), None)[-most:]
    others = tuple(each for each in known.found if each[0] is not seen.kind)
    timing, paths = known.timing, known.paths
    if seen.kind is Kind.PATH:
        same = {path: path for each in paths[-2:] for path, _, _ in each.paths}
        paths = (*paths, kept(seen, same))
        if len(paths) > most:
            paths = (kept(pooled([each.whole() for each in paths[:2]]), same), *paths[2:])
    else:
        timing = (*timing, kept(seen))[-most:]
    median_ns = quantiles(seen.counts, (0.5,))[0] - seen.bias_ns
    lifetimes = known.lifetimes
    if seen.timed >= _JUDGED_CALLS and median_ns > 0:
        lifetimes = with_window(lifetimes, seen.lifetime, math.log(median_ns))
    return replace(
        known,
        totals=totals,
        lifetimes=lifetimes,
        histogram=histogram,
        spread_ns=spread_of(histogram),
        tried=known.tried + 1,
        found=(*others, (seen.kind, borders)),
        timing=timing,
        paths=paths,
    )


def spread_of(counts: Counts) -> float:
    """Return the standard deviation of the durations of a histogram, ns."""
    number = float(counts.sum())
    if number < 2:
        return 0.0
    mean = float(counts @ BUCKET_MIDDLES) / number
    return math.sqrt(max(0.0, float(counts @ (BUCKET_MIDDLES - mean) ** 2) / number))
