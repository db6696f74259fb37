"""What is known about one function: where it stands in the flow, what was seen of it, what was concluded."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np

from specmine.mining.change.worth import Lifetimes, with_window
from specmine.mining.observation import (
    BUCKETS,
    CallPath,
    Counts,
    Function,
    Kind,
    Observation,
    PathHistogram,
    Reason,
    added,
    bucket_edges,
    frozen_counts,
    quantiles,
    split_or_unbroken,
)
from specmine.mining.rates import Looks
from specmine.probes.batch import Activity, Finding, Watch

from .conclusions import Check, Conclusion, Found
from .inheriting import HELD_BEFORE, Estate, Inherited
from .jobs import JobResult
from .kept import Kept, kept
from .oncpu import OnCpu
from .settings import SECOND


class State(StrEnum):
    """Where a function stands in the flow of the first paper (figure of section 3), with what may stop it."""

    CANDIDATE = "candidate"
    WAITING = "waiting"
    TIMING = "timing"
    SINGLE = "single"
    EXPLAINING = "explaining"
    EXPLAINED = "explained"
    UNEXPLAINED = "unexplained"
    UNSTABLE = "unstable"
    REFUSED = "refused"
    EXCLUDED = "excluded"


EMPTY = frozen_counts(np.zeros(BUCKETS))
_MIDDLES = 0.5 * (bucket_edges()[:-1] + bucket_edges()[1:])
FINISHED = frozenset({State.SINGLE, State.EXPLAINED, State.UNEXPLAINED})
LEARNING = frozenset({State.TIMING, State.EXPLAINING})
HELD = {Kind.TIME: 1, Kind.PATH: 2}
"""Observations held one by one, in multiples of those that stable borders come from."""
_JUDGED_CALLS = 200
"""A window of fewer calls has no median to speak of."""
RATE_MEMORY_NS, RATE_CALLS = 2_000_000_000, 100
"""Time on over which the rate of calls is taken, if it holds so many calls ..."""
LONG_MEMORY_NS = 30_000_000_000
"""... and if it does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """What sampling said about a function, fading with time."""

    samples: float = 0.0
    own_ns: float = 0.0
    """Wall-clock time with the function innermost."""
    cpu_ns: float = 0.0
    """The part of it on CPU."""
    inclusive_ns: float = 0.0
    callee_ns: float = 0.0
    """The part of the inclusive time in the function that it calls for longest."""
    callers: tuple[tuple[str, float], ...] = ()
    loop_bottom: bool = False

    def seen(self, finding: Finding) -> Where:
        """Add what sampling found since the last batch."""
        callers = dict(self.callers)
        for key, time_ns in finding.callers:
            callers[key] = callers.get(key, 0.0) + time_ns
        ordered = sorted(callers.items(), key=lambda item: (-item[1], item[0]))
        return Where(
            samples=self.samples + finding.samples,
            own_ns=self.own_ns + finding.on_cpu_ns + finding.off_cpu_ns,
            cpu_ns=self.cpu_ns + finding.on_cpu_ns,
            inclusive_ns=self.inclusive_ns + finding.inclusive_ns,
            callee_ns=self.callee_ns + finding.callee_ns,
            callers=tuple(ordered[:32]),
            loop_bottom=finding.loop_bottom,
        )

    def faded(self, share: float) -> Where:
        """Keep only this share of the weight."""
        callers = tuple((key, time_ns * share) for key, time_ns in self.callers)
        return replace(
            self,
            samples=self.samples * share,
            own_ns=self.own_ns * share,
            cpu_ns=self.cpu_ns * share,
            inclusive_ns=self.inclusive_ns * share,
            callee_ns=self.callee_ns * share,
            callers=callers,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Everything counted while the function's calls were timed; counts for admission are left out."""

    calls: int = 0
    watched_ns: int = 0
    timed: int = 0
    inner: int = 0
    censored: int = 0
    cost_ns: float = 0.0
    observations: int = 0
    gaps: bool = False
    """True once the entry probe was off between the first watch and now."""
    looks: Looks = field(default_factory=Looks)
    """The rates that were counted; they stand for the gaps as well."""
    running_ns: float = 0.0
    """What timed calls did of their time, as far as it was split: on CPU, the probes' own cost excepted, ..."""
    waiting_ns: int = 0
    """... runnable without a CPU, ..."""
    blocked_ns: int = 0
    """... and waiting for anything else."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Knowledge:
    """One function; replaced as a whole at each change."""

    function: Function
    state: State = State.CANDIDATE
    reason: Reason | None = None
    since_ns: int = 0
    """When it came into this state."""
    hinted: bool = False
    climbed: str = ""
    """Name of the finished function it was found to call, '' if sampling found it."""
    where: Where = field(default_factory=Where)
    rate: float | None = None
    """Calls a second while on; None: never counted."""
    refused: tuple[tuple[Kind, Reason], ...] = ()
    totals: Totals = field(default_factory=Totals)
    timing: tuple[Kept, ...] = ()
    paths: tuple[Kept, ...] = ()
    """Observations with call paths; the first one may be several merged."""
    found: tuple[tuple[Kind, tuple[Found | None, ...]], ...] = ()
    """Borders of each observation held, by kind: they are needed again with each later one. None: not asked yet."""
    histogram: Counts = field(default_factory=lambda: EMPTY)
    """All durations ever timed."""
    spread_ns: float = 0.0
    """Their standard deviation."""
    lifetimes: Lifetimes = field(default_factory=Lifetimes)
    """What its windows said lifetime by lifetime: whether more calls of one are worth anything."""
    tried: int = 0
    """Observations since the function last began to be learned."""
    chain: Conclusion | None = None
    """What the last observations say; None while there is no observation."""
    chain_kind: Kind = Kind.TIME
    """Kind of those observations."""
    learned: Conclusion | None = None
    """What they said when the function was found stable; None before."""
    on_cpu: OnCpu | None = None
    """The same of its time on CPU; None while no call leaves its CPU."""
    result: JobResult | None = None
    """What call paths explain of it."""
    explained_with: int = 0
    """Path observations that went into ``result``."""
    job: int | None = None
    failures: int = 0
    checks: tuple[Check, ...] = ()
    """The last check of each thing asserted."""
    checked_ns: int | None = None
    violations: int = 0
    inherited: Inherited | None = None
    """What another build stated, until there is a statement of its own."""
    watch: Watch | None = None
    """What the source was last asked for."""
    watched_since_ns: int = 0
    limited: bool = False
    """True if the kernel's bucket ran empty in the present watch."""
    recent_calls: float = 0.0
    """Calls that the rate rests on, and the time on in which they were counted."""
    recent_ns: float = 0.0
    span_ns: int = 0
    """Time from the first timed watch to the last restart of the daemon, gaps included."""
    first_watch_ns: int | None = None
    """First timed watch since that restart."""

    def _gaps_seconds(self, now_ns: int) -> float:
        """Return how long the function's probes were off since its first watch."""
        if not self.totals.gaps or self.totals.watched_ns <= 0:
            return 0.0
        span = self.span_ns + (now_ns - self.first_watch_ns if self.first_watch_ns is not None else 0)
        return max(0, span - self.totals.watched_ns) / SECOND

    def estimated_calls(self, now_ns: int) -> int:
        """Return the calls since the first watch: those counted, and in the gaps so many as the looks' rate says."""
        totals, gaps = self.totals, self._gaps_seconds(now_ns)
        if not totals.looks.number and gaps:  # counted by an earlier version
            return round(totals.calls * (1 + gaps * SECOND / totals.watched_ns))
        return totals.calls + round(totals.looks.rate * gaps)

    def calls_interval(self, now_ns: int) -> tuple[int, int | None] | None:
        """Return the 95 % interval of ``estimated_calls``, a point where all were counted; None: too few looks.

        Without upper end (None) where the probes took most of the time: calls that they slow down are no measure.
        """
        gaps, counted = self._gaps_seconds(now_ns), self.totals.calls
        if not gaps:
            return (counted, counted) if counted or self.totals.watched_ns else None
        interval = self.totals.looks.interval()
        if interval is None:
            return None
        low, high = interval
        return counted + round(low * gaps), counted + round(high * gaps) if math.isfinite(high) else None

    @property
    def observations(self) -> tuple[Kept, ...]:
        """Those of the kind that the present state rests on."""
        return self.paths if len(self.paths) >= len(self.timing) else self.timing

    def borders_of(self, kind: Kind) -> tuple[Found | None, ...]:
        """Return the borders of each observation held of a kind; None where they were not needed so far."""
        return next((found for each, found in self.found if each is kind), ())

    def refusal(self, kind: Kind) -> Reason | None:
        """Return why this kind must not be collected, None if it may; dearer ones go with cheaper."""
        order = list(Kind)
        for refused, reason in self.refused:
            if order.index(refused) <= order.index(kind):
                return reason
        return None

    def moved(self, state: State, reason: Reason | None, now_ns: int) -> Knowledge:
        """Return it in a state; the time of entry stays if the state does."""
        if state is self.state and reason == self.reason:
            return self
        since = self.since_ns if state is self.state else now_ns
        return replace(self, state=state, reason=reason, since_ns=since)


def estate_of(known: Mapping[str, Knowledge]) -> Estate:
    """Return what finished functions leave to those of the same name in other builds."""
    finished = sorted(
        (each for each in known.values() if each.state in FINISHED and each.learned is not None),
        key=lambda each: (each.since_ns, each.function.key),
    )
    return Estate(
        (
            each.function,
            Inherited(
                build_id=each.function.build_id,
                learned=each.learned,
                result=each.result if each.state is not State.SINGLE else None,
                before=each.timing[-HELD_BEFORE:] or each.paths[-HELD_BEFORE:],
            ),
        )
        for each in finished
        if each.learned is not None
    )


def with_activity(known: Knowledge, activity: Activity) -> Knowledge:
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


def spread_of(counts: Counts) -> float:
    """Return the standard deviation of the durations of a histogram, ns."""
    number = float(counts.sum())
    if number < 2:
        return 0.0
    mean = float(counts @ _MIDDLES) / number
    return float(np.sqrt(max(0.0, float(counts @ (_MIDDLES - mean) ** 2) / number)))


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
        own_ns = float(seen.split.on_cpu @ _MIDDLES) - seen.bias_ns * seen.timed
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
            paths = (kept(merged(each.whole() for each in paths[:2]), same), *paths[2:])
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


def merged(observations: Iterable[Observation]) -> Observation:
    """Merge observations of one function and kind into one; its bias is the mean, weighted by calls."""
    every = tuple(observations)
    first = every[0]
    by_path: dict[CallPath, list[PathHistogram]] = {}
    for each in every:
        for path in each.paths:
            by_path.setdefault(path.path, []).append(path)
    timed = sum(each.timed for each in every)
    return Observation(
        function=first.function,
        lifetime=first.lifetime,
        kind=first.kind,
        start_ns=min(each.start_ns for each in every),
        end_ns=max(each.end_ns for each in every),
        counts=frozen_counts(sum(each.counts for each in every)),
        calls=sum(each.calls for each in every),
        watched_ns=sum(each.watched_ns for each in every),
        inner=sum(each.inner for each in every),
        censored=sum(each.censored for each in every),
        bias_ns=sum(each.bias_ns * each.timed for each in every) / timed if timed else first.bias_ns,
        uncertainty_ns=max(each.uncertainty_ns for each in every),
        paths=tuple(_merged_path(by_path[path]) for path in sorted(by_path)),
        split=added([split_or_unbroken(each.counts, each.split) for each in every])
        if any(each.split is not None for each in every)
        else None,
    )


def _merged_path(every: list[PathHistogram]) -> PathHistogram:
    split = None
    if any(each.split is not None for each in every):
        split = added([split_or_unbroken(each.counts, each.split) for each in every])
    return PathHistogram(path=every[0].path, counts=frozen_counts(sum(each.counts for each in every)), split=split)
