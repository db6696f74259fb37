"""What is known about one function: where it stands in the flow, what was seen of it, what was concluded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from specmine.mining.assertions.explanation import JobResult
from specmine.mining.borders.inference import Check, Conclusion, Found
from specmine.mining.off_cpu.on_cpu import OnCpu
from specmine.mining.regression.lifetime_utility import Lifetimes
from specmine.mining.statistics.call_rate import Looks
from specmine.model.batch import Watch
from specmine.model.buckets import BUCKETS
from specmine.model.function import Function, Reason
from specmine.model.histogram import Counts, frozen_counts
from specmine.model.observation import Kind
from specmine.model.sparse import Kept

from .phase import State
from .profile import Where
from .provisional import Inherited

EMPTY = frozen_counts(np.zeros(BUCKETS))


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


def changed(known: Mapping[str, Knowledge], before: Mapping[str, Knowledge]) -> list[str]:
    """Return the functions about which something is new, in order."""
    return sorted(key for key, each in known.items() if before.get(key) is not each)
