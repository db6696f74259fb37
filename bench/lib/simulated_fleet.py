"""A fleet that exists as numbers: hosts that run the real controller, and a centre without a database.

Rates of calls are log-uniform over functions, times a lognormal load of each host. Hosts are in five roles, and each
function is in three of them. Duties come from ``mining.fleet.duties``, statements from
``mining.fleet.pooled_statement``, as planner and analysts call them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from specmine.daemon.config.settings import Settings
from specmine.daemon.controller.decide import decide
from specmine.daemon.controller.events import Arrived, Assigned, Begun, Event, Mine, Mined, Publish, Stated
from specmine.daemon.controller.phase import FINISHED
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.worker.jobs import run_job
from specmine.mining.fleet.duties import Assignment, FleetFunction, FleetHost, assignments, is_enough
from specmine.mining.fleet.duty import Purpose
from specmine.mining.fleet.pooled_statement import pooled_statement
from specmine.mining.fleet.statement import InheritedStatement
from specmine.mining.settings import MiningSettings
from specmine.model.function import Function
from specmine.model.observation import Kind, Observation
from specmine.model.pooling import pooled
from tests.support.planted import Planted, Way
from tests.support.simulated import SECOND, FakeClock, SimulatedSource

ROLES = 5
BEGIN_NS = 100 * SECOND
LEARNING_S = 60
"""From contact to contact while a host learns for the fleet, as the forwarder has it."""


class NumberedPlanted(Planted):
    """A function whose place tells its number."""

    @property
    def function(self) -> Function:
        """Return it at a place of its own."""
        return replace(super().function, offset=64 * (1 + int(self.name[1:])))


@dataclass
class FleetMember:
    """A host: its controller, its program, what it has not sent yet."""

    name: str
    role: int
    source: SimulatedSource
    clock: FakeClock
    phase_s: int
    """When it reaches the fleet first, and in each period."""
    next_s: int = 0
    state: ControllerState = field(default_factory=ControllerState)
    windows: list[Observation] = field(default_factory=list)
    stated: set[int] = field(default_factory=set)

    def take(self, event: Event) -> None:
        """Let the controller decide, and do what it asks for; jobs of its worker end at once."""
        pending = [event]
        while pending:
            self.state, actions = decide(self.state, pending.pop(0))
            for action in actions:
                if isinstance(action, Mine):
                    result = run_job(action.inputs)
                    pending.append(Mined(now_ns=self.state.now_ns, job=action.job, result=result))
                elif not isinstance(action, Publish):
                    self.source.apply(action)

    def begin(self, settings: Settings) -> None:
        """Start the program and the controller."""
        self.take(Begun(started=self.source.start(), settings=settings))

    def turn(self, now_ns: int) -> None:
        """Take what the source brings until now."""
        self.clock.now = now_ns
        batch = self.source.poll(now_ns)
        self.windows += batch.observations
        self.take(Arrived(batch=batch))

    def sent(self) -> list[Observation]:
        """Return what it observed since, a row for each function and kind."""
        groups: dict[tuple[str, Kind], list[Observation]] = {}
        for each in self.windows:
            groups.setdefault((each.function, each.kind), []).append(each)
        self.windows.clear()
        return [pooled(group) if len(group) > 1 else group[0] for group in groups.values()]

    def reaches(self, second: int, every: int) -> bool:
        """Tell whether it reaches the fleet now: each *every* seconds, and a minute after it learned for the fleet."""
        return second == self.next_s or second % every == self.phase_s

    @property
    def finished(self) -> int:
        """Functions of which it states something."""
        return sum(each.state in FINISHED for each in self.state.functions.values())


@dataclass
class Centre:
    """What the fleet's database would hold, and who works on it."""

    members: dict[str, FleetMember]
    keys: list[str]
    runs: dict[str, frozenset[str]]
    rows: dict[str, dict[str, list[Observation]]] = field(default_factory=dict)
    """Function to host to its rows, the newest first."""
    heard: set[str] = field(default_factory=set)
    """Hosts that have told of themselves."""
    told: dict[str, Assignment] = field(default_factory=dict)
    found: dict[str, str] = field(default_factory=dict)
    mined_with: dict[str, int] = field(default_factory=dict)
    statements: list[InheritedStatement] = field(default_factory=list)
    known_s: dict[str, float] = field(default_factory=dict)
    mining_s: float = 0.0
    planning_s: float = 0.0

    def contact(self, member: FleetMember, now_ns: int) -> bool:
        """Take what a host sends, and tell it what there is for it; return whether it learns for the fleet."""
        new = member.name not in self.heard
        self.receive(member.name, member.sent())
        return self.tell(member, now_ns, new=new)

    def receive(self, name: str, rows: Sequence[Observation]) -> None:
        """Take what a host sends."""
        self.heard.add(name)
        for row in rows:
            self.rows.setdefault(row.function, {}).setdefault(name, []).insert(0, row)

    def tell(self, member: FleetMember, now_ns: int, *, new: bool) -> bool:
        """Tell a host what there is for it; return whether it learns for the fleet."""
        news = [
            (number, each) for number, each in enumerate(self.statements)
            if number not in member.stated and member.name in self.runs[each.function]
        ]  # fmt: skip
        member.stated |= {number for number, _ in news}
        if news:
            member.take(Stated(now_ns=now_ns, statements=tuple(each for _, each in news)))
        told = self.told.get(member.name)
        if told is not None:
            member.take(Assigned(now_ns=now_ns, told_ns=now_ns, duties=told.duties, left=told.left))
        return new or (told is not None and any(each.purpose is Purpose.SCOUT for each in told.duties))

    def plan(self, now_s: float) -> None:
        """Mine what there is enough of, then decide anew who observes what."""
        began = time.process_time()
        functions = [self._function(key) for key in self.keys]
        for each in functions:
            news = sum(each.calls.values())
            if not each.stated and is_enough(each) and news > self.mined_with.get(each.key, 0):
                self.mined_with[each.key] = news
                self._mine(each, now_s)
        self.mining_s += time.process_time() - began
        began = time.process_time()
        functions = [self._function(key) for key in self.keys]
        hosts = [
            FleetHost(name=each.name, stratum=str(each.role))
            for each in self.members.values() if each.name in self.heard
        ]  # fmt: skip
        self.told = assignments(hosts, functions, week=1)
        self.planning_s += time.process_time() - began

    def _function(self, key: str) -> FleetFunction:
        came_to = self.found.get(key, "")
        calls, rates = {}, {}
        for host, rows in self.rows.get(key, {}).items():
            calls[host] = sum(row.timed for row in rows if came_to != "paths" or row.kind is Kind.PATH)
            watched = sum(row.watched_ns for row in rows)
            rates[host] = sum(row.calls for row in rows) / max(watched, 1) * SECOND
        known = came_to == "stated"
        hosts = self.runs[key] & self.heard
        return FleetFunction(key=key, hosts=hosts, known=known, stated=known, calls=calls, rates=rates)

    def _mine(self, function: FleetFunction, now_s: float) -> None:
        rows = {host: each[:5] for host, each in self.rows[function.key].items()}
        found = pooled_statement(function.key, "b1d", rows, ("app",), MiningSettings())
        self.found[function.key] = found.state
        if found.statement is not None:
            self.statements.append(found.statement)
            self.known_s.setdefault(function.key, now_s)


def made_fleet(
    hosts: int,
    functions: int,
    *,
    slowest: float,
    every: int,
    shares: bool,
    source: Callable[..., SimulatedSource] = SimulatedSource,
) -> tuple[list[FleetMember], Centre]:
    """Return hosts that have begun, and their centre.

    Parameters
    ----------
    hosts, functions : int
    slowest : float
        Calls a second of the rarest function on a host.
    every : int
        Seconds between contacts of a host.
    shares : bool
        Whether hosts share the work.
    source : callable
        What runs the program.
    """
    rng = np.random.default_rng(1)
    rates = slowest * (20_000 / slowest) ** rng.random(functions)
    roles = [frozenset(rng.choice(ROLES, 3, replace=False).tolist()) for _ in range(functions)]
    weights = rng.lognormal(0, 1.5, functions)
    two = rng.random(functions) < 0.3
    medians = np.exp(rng.uniform(9.5, 12.5, functions))
    members = []
    settings = Settings(shares=shares)
    for number in range(hosts):
        role, load, slow = number % ROLES, rng.lognormal(0, 0.8), rng.lognormal(0, 0.05)
        here = [at for at in range(functions) if role in roles[at]]
        whole = float(sum(weights[at] for at in here))
        program = [
            NumberedPlanted(
                name=f"f{at}", rate=min(float(rates[at] * load), 30_000.0), own=float(weights[at] / whole),
                inclusive=float(weights[at] / whole), ways=ways_of(float(medians[at] * slow), two=bool(two[at])),
            )
            for at in here
        ]  # fmt: skip
        clock = FakeClock(BEGIN_NS)
        member = FleetMember(
            name=f"h{number}", role=role, source=source(program, clock, seed=number), clock=clock,
            phase_s=int(rng.integers(0, every)),
        )  # fmt: skip
        member.begin(settings)
        members.append(member)
    keys = [NumberedPlanted(name=f"f{at}", rate=1.0, ways=()).function.key for at in range(functions)]
    runs = {key: frozenset(each.name for each in members if each.role in roles[at]) for at, key in enumerate(keys)}
    return members, Centre(members={each.name: each for each in members}, keys=keys, runs=runs)


def ways_of(median: float, *, two: bool) -> tuple[Way, ...]:
    """Return the call paths of a function with one class of durations, or with two that its callers tell apart."""
    if not two:
        return (Way(callers="main", weight=1.0, classes=((1.0, median, 0.3),)),)
    mixed = ((0.5, median, 0.1), (0.5, 8 * median, 0.1))
    return (
        Way(callers="main;a;b", weight=1.0, classes=((1.0, median, 0.1),)),
        Way(callers="main;c", weight=1.0, classes=mixed),
    )
