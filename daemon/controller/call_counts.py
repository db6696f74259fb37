"""How often a function is called: what its probes counted, and what that says of the time they were off."""

from __future__ import annotations

import math
from dataclasses import replace

from specmine.daemon.config.settings import MS, SECOND
from specmine.model.batch import Activity, Watch
from specmine.model.observation import Kind

from .function import Knowledge
from .phase import State

RATE_MEMORY_NS, RATE_CALLS = 2_000_000_000, 100
"""Time on over which the rate of calls is taken, if it holds so many calls ..."""
LONG_MEMORY_NS = 30_000_000_000
"""... and if it does not."""
SHORTEST_LOOK_NS = 20 * MS
LIMITED_RATE = 10_000.0
"""Calls a second supposed of a function that emptied its bucket in less time than that."""


def with_watch(known: Knowledge, watch: Watch | None, now_ns: int) -> Knowledge:
    """Note what the source was asked for."""
    timed = watch is not None and watch.kind is not Kind.COUNT
    off = known.first_watch_ns is not None and (known.watch is None or watch is None)
    gaps = known.totals.gaps or off or (watch is not None and watch.on_ns > 0)
    return replace(
        known,
        watch=watch,
        watched_since_ns=now_ns,
        limited=False,
        first_watch_ns=now_ns if timed and known.first_watch_ns is None else known.first_watch_ns,
        totals=replace(known.totals, gaps=gaps) if gaps is not known.totals.gaps else known.totals,
    )


def with_activity(known: Knowledge, activity: Activity, now_ns: int) -> Knowledge:
    """Take in what the probes counted, and that their bucket ran empty."""
    known = _counted(known, activity)
    watch = known.watch
    if not activity.limited or watch is None or watch.on_ns:
        return known
    # the bucket ran empty somewhere inside the time counted: the rate is higher than it looks
    seen = 1.5 * (known.rate or 0.0) if known.recent_ns >= SHORTEST_LOOK_NS else LIMITED_RATE
    known = replace(known, rate=seen)
    return known if known.state is State.CANDIDATE else with_watch(known, None, now_ns)


def _counted(known: Knowledge, activity: Activity) -> Knowledge:
    """Add what the probes counted since they last told."""
    calls, on_ns = known.recent_calls + activity.calls, known.recent_ns + activity.watched_ns
    if known.recent_ns > (RATE_MEMORY_NS if known.recent_calls > RATE_CALLS else LONG_MEMORY_NS):
        calls, on_ns = calls - 0.5 * known.recent_calls, on_ns - 0.5 * known.recent_ns
    rate = calls * 1e9 / on_ns if on_ns > 0 else known.rate
    before, timed = known.totals, activity.kind is not Kind.COUNT
    looks = before.looks
    if timed and activity.watched_ns > 0:
        stands_for = _stands_for_ns(known.watch, activity) / SECOND
        looks = looks.seen(activity.calls, activity.watched_ns / SECOND, stands_for, activity.cost_ns / SECOND)
    totals = replace(
        before,
        calls=before.calls + timed * activity.calls,
        watched_ns=before.watched_ns + timed * activity.watched_ns,
        cost_ns=before.cost_ns + activity.cost_ns,
        gaps=before.gaps or (timed and activity.limited),
        looks=looks,
    )
    return replace(
        known,
        rate=rate,
        recent_calls=calls,
        recent_ns=on_ns,
        totals=totals,
        limited=known.limited or activity.limited,
    )


def _stands_for_ns(watch: Watch | None, activity: Activity) -> float:
    """Return the time that one report of activity is a sample of: with its pause, if one follows."""
    if watch is None:
        return activity.watched_ns
    if watch.on_ns:
        return watch.period_ns
    pause_s = watch.burst_hits / watch.hits_per_second if activity.limited and watch.hits_per_second else 0.0
    return activity.watched_ns + pause_s * SECOND


def estimated_calls(known: Knowledge, now_ns: int) -> int:
    """Return the calls since the first watch: those counted, and in the gaps so many as the looks' rate says."""
    totals, gaps = known.totals, _gaps_seconds(known, now_ns)
    if not totals.looks.number and gaps:  # counted by an earlier version
        return round(totals.calls * (1 + gaps * SECOND / totals.watched_ns))
    return totals.calls + round(totals.looks.rate * gaps)


def calls_interval(known: Knowledge, now_ns: int) -> tuple[int, int | None] | None:
    """Return the 95 % interval of ``estimated_calls``, a point where all were counted; None: too few looks.

    Without upper end (None) where the probes took most of the time: calls that they slow down are no measure.
    """
    gaps, counted = _gaps_seconds(known, now_ns), known.totals.calls
    if not gaps:
        return (counted, counted) if counted or known.totals.watched_ns else None
    interval = known.totals.looks.interval()
    if interval is None:
        return None
    low, high = interval
    return counted + round(low * gaps), counted + round(high * gaps) if math.isfinite(high) else None


def _gaps_seconds(known: Knowledge, now_ns: int) -> float:
    """Return how long the function's probes were off since its first watch."""
    if not known.totals.gaps or known.totals.watched_ns <= 0:
        return 0.0
    span = known.span_ns + (now_ns - known.first_watch_ns if known.first_watch_ns is not None else 0)
    return max(0, span - known.totals.watched_ns) / SECOND
