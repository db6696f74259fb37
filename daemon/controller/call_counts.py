"""The probes of one function: what the source was asked for, what was counted, how often the function is called."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from specmine.daemon.config.settings import MS, SECOND
from specmine.mining.statistics.call_rate import Looks
from specmine.model.batch import Activity, Watch
from specmine.model.probe_kind import PROBE_KINDS

RATE_MEMORY_NS, RATE_CALLS = 2_000_000_000, 100
"""Time on over which the rate of calls is taken, if it holds so many calls ..."""
LONG_MEMORY_NS = 30_000_000_000
"""... and if it does not."""
SHORTEST_LOOK_NS = 20 * MS
PRECISE_NS = 100 * MS
"""Where a bucket ran empty sooner, the rate counted is only the least that it can be: calls went on until the probes
were off, and slower than without them."""
PAID_CALLS, MANY_HITS = 600, 5000
"""Timed calls, and hits, after which what was paid for them is half forgotten: what a call costs with all hits around
it changes with what else is timed."""
NONE_SEEN = 3.69
"""Calls in a time in which none was seen are fewer than this, at 97.5 %: -ln 0.025."""
LIMITED_RATE = 10_000.0
"""Calls a second assumed of a function that emptied its bucket in less time than that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallCounts:
    """What was counted while calls were timed; counts for admission are left out."""

    calls: int = 0
    watched_ns: int = 0
    """How long; where only a part of the processes is probed, that part of the time."""
    cost_ns: float = 0.0
    gaps: bool = False
    """True once calls went uncounted between the first watch and now, if only for milliseconds."""
    looks: Looks = field(default_factory=Looks)
    """The rates that were counted; they stand for the gaps as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paid:
    """What timed calls have cost lately, with all hits that were no part of them."""

    calls: float = 0.0
    by_path: float = 0.0
    """Those of them that were timed with their path, which costs more."""
    hits: float = 0.0
    cost_ns: float = 0.0

    def with_activity(self, activity: Activity) -> Paid:
        """Add what was timed; old calls are forgotten by and by."""
        kept = 0.5 if self.calls > PAID_CALLS or self.hits > MANY_HITS else 1.0
        return Paid(
            calls=kept * self.calls + activity.timed,
            by_path=kept * self.by_path + activity.timed * PROBE_KINDS[activity.kind].by_path,
            hits=kept * self.hits + activity.hits,
            cost_ns=kept * self.cost_ns + activity.cost_ns,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeState:
    """The probes of one function, and what they counted."""

    watch: Watch | None = None
    """What the source was last asked for."""
    watched_since_ns: int = 0
    limited: bool = False
    """True if the kernel's bucket ran empty in the present watch."""
    rate: float | None = None
    """Calls a second to plan with: more than counted where a bucket ran empty; None: never counted."""
    is_least: bool = False
    """True if the rate that was counted last is only the least that it can be."""
    recent_calls: float = 0.0
    """Calls that the rate rests on, and the time on in which they were counted."""
    recent_ns: float = 0.0
    recent_cost_ns: float = 0.0
    """What the hits in that time cost, also those that were no part of a call: others pass the places it returns to."""
    overrun_ns: float = 0.0
    """What hits cost that came after the bucket ran empty, until the probes were off, the last time that it did ..."""
    overrun_at_ns: int = 0
    """... and when that was."""
    called_ns: int | None = None
    """When a call was last counted; None: not since the daemon began."""
    counts: CallCounts = field(default_factory=CallCounts)
    paid: Paid = field(default_factory=Paid)
    earlier_ns: int = 0
    """Time from the first timed watch to the last restart of the daemon, gaps included."""
    first_watch_ns: int | None = None
    """First timed watch since that restart."""

    @property
    def counted_rate(self) -> float | None:
        """Calls a second, as they were counted; that of before a restart until some are. None: never counted."""
        return self.recent_calls * SECOND / self.recent_ns if self.recent_ns > 0 else self.rate

    @property
    def on_cost(self) -> float:
        """What a second with its probes on has cost lately, ns."""
        return self.recent_cost_ns * SECOND / self.recent_ns if self.recent_ns >= SHORTEST_LOOK_NS else 0.0

    def span_ns(self, now_ns: int) -> int:
        """Return the time since the first timed watch, restarts of the daemon left out."""
        return self.earlier_ns + (now_ns - self.first_watch_ns if self.first_watch_ns is not None else 0)


def with_watch(probe: ProbeState, watch: Watch | None, now_ns: int) -> ProbeState:
    """Record what the source was asked for."""
    timed = watch is not None and PROBE_KINDS[watch.kind].timed
    before = probe.watch
    # another kind of probe is another program: one is detached before the other is attached
    off = probe.first_watch_ns is not None and (before is None or watch is None or before.kind is not watch.kind)
    gaps = probe.counts.gaps or off or (watch is not None and watch.on_ns > 0)
    return replace(
        probe,
        watch=watch,
        watched_since_ns=now_ns,
        limited=False,
        first_watch_ns=now_ns if timed and probe.first_watch_ns is None else probe.first_watch_ns,
        counts=replace(probe.counts, gaps=gaps) if gaps is not probe.counts.gaps else probe.counts,
    )


def with_activity(probe: ProbeState, activity: Activity, now_ns: int, *, counting: bool) -> ProbeState:
    """Add what the probes counted; a watch whose bucket ran empty ends, unless it only counts a candidate's calls."""
    probe = _with_overrun(_with_counts(probe, activity), activity, now_ns)
    if activity.calls:
        probe = replace(probe, called_ns=now_ns)
    watch = probe.watch
    if not activity.limited or watch is None or watch.on_ns:
        return probe
    # the bucket ran empty somewhere inside the time counted: the true rate is higher than the counted one
    rate = 1.5 * (probe.rate or 0.0) if probe.recent_ns >= SHORTEST_LOOK_NS else LIMITED_RATE
    probe = replace(probe, rate=rate)
    return probe if counting else with_watch(probe, None, now_ns)


def _with_overrun(probe: ProbeState, activity: Activity, now_ns: int) -> ProbeState:
    if not activity.limited or probe.watch is None or not activity.hits:
        return probe
    beyond = max(0, activity.hits - probe.watch.burst_hits) / activity.hits
    return replace(probe, overrun_ns=beyond * activity.cost_ns, overrun_at_ns=now_ns)


def _with_counts(probe: ProbeState, activity: Activity) -> ProbeState:
    calls, on_ns = probe.recent_calls + activity.calls, probe.recent_ns + activity.watched_ns
    cost_ns = probe.recent_cost_ns + activity.cost_ns
    if probe.recent_ns > (RATE_MEMORY_NS if probe.recent_calls > RATE_CALLS else LONG_MEMORY_NS):
        calls, on_ns = calls - 0.5 * probe.recent_calls, on_ns - 0.5 * probe.recent_ns
        cost_ns -= 0.5 * probe.recent_cost_ns
    before, timed = probe.counts, PROBE_KINDS[activity.kind].timed
    looks, part = before.looks, activity.part
    if timed and activity.watched_ns > 0 and part > 0:
        looks = looks.with_look(
            activity.calls,
            part * activity.watched_ns / SECOND,
            _represented_ns(probe.watch, activity) / SECOND,
            part * activity.cost_ns / SECOND,
            goes_on=part < 1 and not activity.missed,
        )
    counts = CallCounts(
        calls=before.calls + timed * activity.calls,
        watched_ns=before.watched_ns + timed * round(part * activity.watched_ns),
        cost_ns=before.cost_ns + activity.cost_ns,
        gaps=before.gaps or (timed and (activity.limited or activity.missed or part < 1)),
        looks=looks,
    )
    return replace(
        probe,
        rate=calls * 1e9 / on_ns if on_ns > 0 else probe.rate,
        is_least=activity.limited and activity.watched_ns < PRECISE_NS if activity.calls else probe.is_least,
        recent_calls=calls,
        recent_ns=on_ns,
        recent_cost_ns=cost_ns,
        counts=counts,
        paid=probe.paid.with_activity(activity) if timed and activity.hits else probe.paid,
        limited=probe.limited or activity.limited,
    )


def _represented_ns(watch: Watch | None, activity: Activity) -> float:
    """Return the time that one report of activity is a sample of: with its pause, if one follows."""
    if watch is None:
        return activity.watched_ns
    if watch.on_ns:
        return watch.period_ns
    pause_s = watch.burst_hits / watch.hits_per_second if activity.limited and watch.hits_per_second else 0.0
    return activity.watched_ns + pause_s * SECOND


def estimated_calls(probe: ProbeState, now_ns: int) -> int:
    """Return the calls since the first watch: those counted, and in gaps as many as the counted rates say."""
    counts, gaps = probe.counts, _gaps_seconds(probe, now_ns)
    if not counts.looks.number and gaps:  # counted by an earlier version
        return round(counts.calls * (1 + gaps * SECOND / counts.watched_ns))
    return counts.calls + round(counts.looks.rate * gaps)


def calls_interval(probe: ProbeState, now_ns: int) -> tuple[int, int | None] | None:
    """Return the 95 % interval of ``estimated_calls``, a point where all were counted; None: too few rates.

    The upper end is None where the probes took most of the time: they slow down the calls that would measure it.

    Notes
    -----
    Calls in gaps vary by themselves, beside the rate that is expected of them. The error of a total of which the share
    f was seen is that of sampling without replacement, with the factor 1 - f in its variance (Cochran, *Sampling
    Techniques*, 1977, section 2.6). That of the rate times the gaps has (1 - f) squared. If no call was counted, the
    upper end is that of a Poisson process.
    """
    gaps, counted, watched = _gaps_seconds(probe, now_ns), probe.counts.calls, probe.counts.watched_ns / SECOND
    if not gaps:
        return (counted, counted) if counted or watched else None
    interval = probe.counts.looks.interval(wider=math.sqrt(1 + watched / gaps))
    if interval is None:
        return None
    low, high = interval if counted else (0.0, NONE_SEEN / watched)
    return counted + round(low * gaps), counted + round(high * gaps) if math.isfinite(high) else None


def _gaps_seconds(probe: ProbeState, now_ns: int) -> float:
    """Return how long the function's probes were off since its first watch."""
    counts = probe.counts
    if not counts.gaps or counts.watched_ns <= 0:
        return 0.0
    return max(0, probe.span_ns(now_ns) - counts.watched_ns) / SECOND
