"""The observations of one function: the newest one by one, all of them in totals."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from specmine.daemon.config.settings import SECOND
from specmine.mining.regression.lifetime_utility import Lifetimes, with_window
from specmine.mining.settings import MiningSettings
from specmine.model.histogram import EMPTY, Histogram
from specmine.model.observation import Kind, Observation, with_shared_paths
from specmine.model.pooling import pooled

RETAINED = {Kind.TIME: 1, Kind.PATH: 2}
"""Observations retained one by one, in multiples of those that stable borders come from."""
MEDIAN_CALLS = 200
"""The median of a window of fewer calls says nothing."""
JOINED_NS, JOINED_CALLS = 180 * SECOND, 20
"""Windows that hold too few calls are joined if the whole is no longer than this, and each has so many: what a single
call did minutes ago belongs to no window of now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Sums over all observations."""

    timed: int = 0
    inner: int = 0
    censored: int = 0
    observations: int = 0
    running_ns: float = 0.0
    """What timed calls did of their time, as far as it was split: on CPU, the probes' own cost excepted, ..."""
    waiting_ns: int = 0
    """... runnable without a CPU, ..."""
    blocked_ns: int = 0
    """... and waiting for anything else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """All durations in three numbers, as measured. Plans ask for them often, so they are made once a window."""

    mean_ns: float = 0.0
    median_ns: float = 0.0
    spread_ns: float = 0.0
    """Standard deviation."""

    @staticmethod
    def of(histogram: Histogram) -> Summary:
        """Return the summary of durations."""
        return Summary(mean_ns=histogram.mean(), median_ns=histogram.quantile(0.5), spread_ns=histogram.std())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class History:
    """What was observed of one function."""

    timing: tuple[Observation, ...] = ()
    """The newest observations without call paths, oldest first."""
    paths: tuple[Observation, ...] = ()
    """The newest observations with call paths; the first one may be several merged."""
    histogram: Histogram = EMPTY
    """All durations ever timed."""
    summary: Summary = field(default_factory=Summary)
    lifetimes: Lifetimes = field(default_factory=Lifetimes)
    """What the windows of each lifetime had as median: whether more calls of one lifetime are worth anything."""
    tried: int = 0
    """Observations since the function last began to be learned."""
    totals: Totals = field(default_factory=Totals)

    @property
    def longest(self) -> tuple[Observation, ...]:
        """The retained observations of the kind that has more of them."""
        return self.paths if len(self.paths) >= len(self.timing) else self.timing


def with_observation(history: History, observation: Observation, mining: MiningSettings) -> History:
    """Add an observation; the oldest fall out of the timed, and merge among those with paths.

    One that follows an observation of too few calls to be judged is joined to it: calls that were paid for count,
    whenever the probes had to go.

    Parameters
    ----------
    history : History
    observation : Observation
    mining : MiningSettings
        ``recent``: observations that stable borders come from; ``minimum_calls``: fewer are not judged.
    """
    histogram = history.histogram + observation.histogram
    by_path = observation.kind is Kind.PATH
    before = history.paths if by_path else history.timing
    whole, kept = _joined(before, observation, mining.minimum_calls)
    most = mining.recent * RETAINED[observation.kind]
    newest = _with_paths(kept, whole, most) if by_path else (*kept, whole)[-most:]
    return History(
        timing=history.timing if by_path else newest,
        paths=newest if by_path else history.paths,
        histogram=histogram,
        summary=Summary.of(histogram),
        tried=history.tried + (len(kept) == len(before)),
        totals=_added(history.totals, observation),
        lifetimes=_with_median(history.lifetimes, whole),
    )


def joined(observations: Iterable[Observation], minimum_calls: int) -> tuple[Observation, ...]:
    """Return observations of one function and kind, oldest first, with those of too few calls joined to the next."""
    together: tuple[Observation, ...] = ()
    for observation in observations:
        whole, kept = _joined(together, observation, minimum_calls)
        together = (*kept, whole)
    return together


def _joined(
    before: tuple[Observation, ...], observation: Observation, minimum_calls: int
) -> tuple[Observation, tuple[Observation, ...]]:
    """Return an observation with what it is joined to, and the observations before that."""
    last = before[-1] if before else None
    if last is None or last.lifetime != observation.lifetime or observation.end_ns - last.start_ns > JOINED_NS:
        return observation, before
    if not all(JOINED_CALLS <= one.timed < minimum_calls for one in (last, observation)):
        return observation, before
    return pooled((last, observation)), before[:-1]


def _with_paths(paths: tuple[Observation, ...], observation: Observation, most: int) -> tuple[Observation, ...]:
    newest = paths[-2:]
    paths = (*paths, with_shared_paths(observation, newest))
    if len(paths) <= most:
        return paths
    return (with_shared_paths(pooled(paths[:2]), newest), *paths[2:])


def _with_median(lifetimes: Lifetimes, observation: Observation) -> Lifetimes:
    median_ns = observation.histogram.quantile(0.5) - observation.bias_ns
    if observation.timed < MEDIAN_CALLS or median_ns <= 0:
        return lifetimes
    return with_window(lifetimes, observation.lifetime, math.log(median_ns))


def _added(totals: Totals, observation: Observation) -> Totals:
    totals = replace(
        totals,
        timed=totals.timed + observation.timed,
        inner=totals.inner + observation.inner,
        censored=totals.censored + observation.censored,
        observations=totals.observations + 1,
    )
    split = observation.split
    if split is None:
        return totals
    running_ns = split.on_cpu.time_ns() - observation.bias_ns * observation.timed
    return replace(
        totals,
        running_ns=totals.running_ns + max(0.0, running_ns),
        waiting_ns=totals.waiting_ns + split.waiting_ns.total,
        blocked_ns=totals.blocked_ns + split.blocked_ns.total,
    )


def enough(observations: Iterable[Observation], minimum_calls: int) -> int:
    """Return how many observations hold enough calls to be judged."""
    return sum(observation.timed >= minimum_calls for observation in observations)
