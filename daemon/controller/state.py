"""All that decisions rest on, as one value."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from specmine.daemon.config.settings import Settings
from specmine.model.batch import Batch, Lifetime, Started
from specmine.model.function import Function

from .allocation.account import BudgetAccount
from .allocation.agent_cost import AgentCost
from .events import Mark
from .function import FunctionState
from .sampling.burst import Burst
from .sampling.history import SampleHistory
from .sampling.profile import Profile
from .sampling.surprise import Surprise
from .sharing.orders import Orders
from .violations.cpu_shortage import Shortage
from .violations.host_detection import HostDetection

MOST_ENDED, KEPT_ENDED = 256, 128
"""Lifetimes that have ended: beyond the first number only the newest of them are kept, and one of each build, ..."""
KEPT_BUILDS = 64
"""... of so many builds, the newest."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ControllerState:
    """Everything the controller knows; replaced at each event, never changed."""

    settings: Settings = field(default_factory=Settings)
    started: Started | None = None
    now_ns: int = 0
    account: BudgetAccount = field(default_factory=BudgetAccount)
    agent_cost: AgentCost = field(default_factory=AgentCost)
    catalog: Mapping[str, Function] = field(default_factory=dict)
    """Name and place of every function that the source described, callers included."""
    functions: Mapping[str, FunctionState] = field(default_factory=dict)
    """The functions that the controller follows, by key."""
    runtime: Profile = field(default_factory=Profile)
    """What sampling found of code made at run time, which no file holds."""
    unfollowed: Mapping[str, Profile] = field(default_factory=dict)
    """Where the user named functions: what sampling found of others, which lie above or below these on stacks."""
    detection: HostDetection = field(default_factory=HostDetection)
    """What the detectors of all functions share."""
    lifetimes: Mapping[str, Lifetime] = field(default_factory=dict)
    mapped: frozenset[str] = frozenset()
    """Builds, of programs and of libraries, that processes map; empty where the source does not tell."""
    batch: Batch | None = None
    """The last one, for its running totals."""
    bystander_hits: int = 0
    hertz: int = 0
    """Present rate of sampling."""
    burst_ns: int = 0
    """Start of the last burst of sampling."""
    burst_end_ns: int = 0
    """When it ends, or ended."""
    burst: Burst = field(default_factory=Burst)
    """What the present burst has found as yet, or the last one until its late samples have come."""
    samples: SampleHistory = field(default_factory=SampleHistory)
    """What the newest bursts found, and what is usual."""
    surprise: Surprise = field(default_factory=Surprise)
    """What bursts found more of than usual."""
    shortages: Mapping[str, Shortage] = field(default_factory=dict)
    """What keeps each program from CPU time, by its name."""
    idle: Mapping[str, float] = field(default_factory=dict)
    """The share of the time of functions that waits for work, by the profiles when the last burst had ended ..."""
    loop_waits: Mapping[str, float] = field(default_factory=dict)
    """... and the part of it in main loops: no function above them works."""
    next_job: int = 1
    worker_ns: int = 0
    """CPU time that the worker's jobs took."""
    answered_ns: int = 0
    """CPU time that answers to requests from outside took."""
    worked_ns: int = 0
    """When the worker was last given a job or had finished one."""
    planned_ns: int = 0
    plan_by_ns: int = 0
    """When a plan is due because functions moved or were checked since the last one; 0: none did."""
    check_ns: int = 0
    """When the next function is to be checked, by the last plan; 0: none is known."""
    reasoned_ns: int = 0
    published_ns: int = 0
    faded_ns: int = 0
    swept_ns: int = 0
    environment: Mapping[str, Any] = field(default_factory=dict)
    """What is known of the host: a ``specmine.environment/1``."""
    orders: Orders = field(default_factory=Orders)
    """What the fleet asks for, and what it states."""
    marks: tuple[Mark, ...] = ()
    """The newest experiments on the host."""
    asked: Mapping[str, int] = field(default_factory=dict)
    """Functions of which somebody asked where their calls wait, with until when that is followed."""
    followed: tuple[str, ...] = ()
    """Functions whose waits are followed, as requested last."""
    stopped: str = ""
    """Why the loop ended, '' while it runs."""

    @property
    def running(self) -> tuple[Lifetime, ...]:
        """Lifetimes that have not ended."""
        return tuple(lifetime for lifetime in self.lifetimes.values() if lifetime.processes)

    @property
    def elsewhere(self) -> Profile:
        """What sampling found outside the functions that are followed: of the whole only the sums of times count."""
        profiles = self.unfollowed.values()
        return replace(
            self.runtime,
            own_ns=self.runtime.own_ns + sum(one.own_ns for one in profiles),
            cpu_ns=self.runtime.cpu_ns + sum(one.cpu_ns for one in profiles),
        )

    def elsewhere_and(self, keys: Collection[str]) -> Profile:
        """Return the same with some of the functions that are followed."""
        found, more = self.elsewhere, [self.functions[key].profile for key in keys]
        return replace(
            found,
            own_ns=found.own_ns + sum(each.own_ns for each in more),
            cpu_ns=found.cpu_ns + sum(each.cpu_ns for each in more),
        )

    @property
    def utc_offset_ns(self) -> int:
        """What to add to times of the controller to get UTC; 0 before the source has started."""
        return int(self.started.host.get("utc_offset_ns", "0")) if self.started else 0

    @property
    def began_ns(self) -> int:
        """When the source started."""
        return self.started.now_ns if self.started else 0


def with_lifetimes(known: Mapping[str, Lifetime], news: Iterable[Lifetime]) -> Mapping[str, Lifetime]:
    """Return the lifetimes with what was told of some; of those that have ended no more than can be of use.

    A program that is started a thousand times an hour would else take 1 MB an hour, and time at each batch.
    """
    changed = {each.id: each for each in news}
    if not changed:
        return known
    merged = {**known, **changed}
    ended = [each for each in merged.values() if not each.processes]
    if len(ended) <= MOST_ENDED:
        return merged
    newest_of_kind: dict[tuple[str, str, str], str] = {}
    for each in ended:
        newest_of_kind.pop(kind := (each.build_id, each.called, each.chosen), None)  # the newest is the last
        newest_of_kind[kind] = each.id
    of_builds = list(newest_of_kind.values())[-KEPT_BUILDS:]
    kept = {*of_builds, *(each.id for each in ended[-KEPT_ENDED:]), next(iter(merged))}
    return {key: each for key, each in merged.items() if each.processes or key in kept}
