"""How soon does a fleet know its functions, and at what cost for each host, against hosts that learn alone?

    .venv/bin/python -m bench.fleet.sharing [--hosts 100] [--functions 200] [--seconds 300] [--alone 8] [--every 60]

Hosts are simulated; each runs the real controller on a program that exists as numbers, and reaches the fleet every
*every* seconds. Duties come from ``mining.fleet.duties``, statements from ``mining.fleet.pooled_statement``, as planner
and analysts call them, without a database. Rates of calls are log-uniform over functions, times a lognormal
load of each host. Hosts are in five roles, and each function is in three of them. *Known* are functions that the fleet
states, or that a lone host has finished. Overhead is what probes and samples added to the program. Needs some
1.5 s of CPU time a host, and neither root nor a database.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from bench.lib.driver import table
from specmine.daemon.config.settings import Settings
from specmine.daemon.controller.decide import decide
from specmine.daemon.controller.events import Arrived, Assigned, Begun, Event, Mine, Mined, Publish, Stated
from specmine.daemon.controller.phase import FINISHED
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.worker.jobs import run_job
from specmine.mining.fleet.duties import NEED_CALLS, SPREAD, Assignment, FleetFunction, FleetHost, assignments
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
    told: dict[str, Assignment] = field(default_factory=dict)
    found: dict[str, str] = field(default_factory=dict)
    mined_with: dict[str, int] = field(default_factory=dict)
    statements: list[InheritedStatement] = field(default_factory=list)
    known_s: dict[str, float] = field(default_factory=dict)
    mining_s: float = 0.0
    planning_s: float = 0.0

    def contact(self, member: FleetMember, now_ns: int) -> None:
        """Take what a host sends, and tell it what there is for it."""
        groups: dict[tuple[str, Kind], list[Observation]] = {}
        for each in member.windows:
            groups.setdefault((each.function, each.kind), []).append(each)
        member.windows.clear()
        for (function, _), group in groups.items():
            row = pooled(group) if len(group) > 1 else group[0]
            self.rows.setdefault(function, {}).setdefault(member.name, []).insert(0, row)
        news = [
            (number, each) for number, each in enumerate(self.statements)
            if number not in member.stated and member.name in self.runs[each.function]
        ]  # fmt: skip
        member.stated |= {number for number, _ in news}
        if news:
            member.take(Stated(now_ns=now_ns, statements=tuple(each for _, each in news)))
        if member.name in self.told:
            told = self.told[member.name]
            member.take(Assigned(now_ns=now_ns, told_ns=now_ns, duties=told.duties, left=told.left))

    def plan(self, now_s: float) -> None:
        """Mine what there is enough of, then decide anew who observes what."""
        began = time.process_time()
        functions = [self._function(key) for key in self.keys]
        for each in functions:
            part = -(-NEED_CALLS // max(1, min(SPREAD, len(each.hosts))))
            given = sum(min(part, number) for number in each.calls.values())
            news = sum(each.calls.values())
            if not each.stated and given >= 0.8 * NEED_CALLS and news > self.mined_with.get(each.key, 0):
                self.mined_with[each.key] = news
                self._mine(each, now_s)
        self.mining_s += time.process_time() - began
        began = time.process_time()
        functions = [self._function(key) for key in self.keys]
        hosts = [FleetHost(name=each.name, stratum=str(each.role)) for each in self.members.values()]
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
        return FleetFunction(key=key, hosts=self.runs[key], known=known, stated=known, calls=calls, rates=rates)

    def _mine(self, function: FleetFunction, now_s: float) -> None:
        rows = {host: each[:5] for host, each in self.rows[function.key].items()}
        found = pooled_statement(function.key, "b1d", rows, ("app",), MiningSettings())
        self.found[function.key] = found.state
        if found.statement is not None:
            self.statements.append(found.statement)
            self.known_s.setdefault(function.key, now_s)


def main() -> int:
    """Run it and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=100)
    parser.add_argument("--functions", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--alone", type=int, default=8, help="hosts that learn alone, to compare with")
    parser.add_argument("--every", type=int, default=60, help="s between contacts of a host")
    parser.add_argument("--slowest", type=float, default=0.2, help="calls a second of the rarest function on a host")
    parser.add_argument("--lost", type=int, default=0, help="s from which the fleet is not reached any more")
    given = parser.parse_args()
    began = time.process_time()
    fleet, centre = _fleet(given, shares=True)
    shared = _simulated(fleet, centre, given)
    lonely, _ = _fleet(argparse.Namespace(**{**vars(given), "hosts": given.alone}), shares=False)
    alone = _simulated(lonely, None, given)
    took = time.process_time() - began
    table(["seconds", "known to the fleet", "known to a lone host, mean", "stated by a host of the fleet, mean"],
          [[str(second), f"{known} of {given.functions}", f"{alone['finished'][second]:.0f}",
            f"{shared['finished'][second]:.0f}"] for second, known in shared["known"].items()])  # fmt: skip
    print()
    table(["overhead, share of the program's CPU time", "host of the fleet", "lone host", "ratio"],
          [[f"{first} to {last} s", f"{100 * mine:.4f} %", f"{100 * theirs:.4f} %", f"{mine / theirs:.3f}"]
           for (first, last), mine, theirs in _costs(shared, alone)])  # fmt: skip
    plan_ms = 1e3 * centre.planning_s / max(1, given.seconds // 60)
    print(f"\nat the centre: {dict(Counter(centre.found.values()))}; CPU time of mining {centre.mining_s:.1f} s,"
          f" of a plan {plan_ms:.0f} ms, of the bench {took:.0f} s")  # fmt: skip
    return 0


def _costs(shared: dict[str, Any], alone: dict[str, Any]) -> list[tuple[tuple[int, int], float, float]]:
    """Return the overhead in CPU time a second of both, minute by minute and in all."""
    marks = sorted(shared["overhead"])

    def rate(of: dict[str, Any], first: int, last: int) -> float:
        return float(of["overhead"][last] - of["overhead"][first]) / (last - first)

    pairs = [*pairwise(marks), (marks[0], marks[-1])]
    return [(each, rate(shared, *each), rate(alone, *each)) for each in pairs]


def _fleet(given: argparse.Namespace, *, shares: bool) -> tuple[list[FleetMember], Centre]:
    rng = np.random.default_rng(1)
    rates = given.slowest * (20_000 / given.slowest) ** rng.random(given.functions)
    roles = [frozenset(rng.choice(ROLES, 3, replace=False).tolist()) for _ in range(given.functions)]
    weights = rng.lognormal(0, 1.5, given.functions)
    two = rng.random(given.functions) < 0.3
    medians = np.exp(rng.uniform(9.5, 12.5, given.functions))
    members = []
    settings = Settings(shares=shares)
    for number in range(given.hosts):
        role, load, slow = number % ROLES, rng.lognormal(0, 0.8), rng.lognormal(0, 0.05)
        here = [at for at in range(given.functions) if role in roles[at]]
        whole = float(sum(weights[at] for at in here))
        program = [
            NumberedPlanted(
                name=f"f{at}", rate=min(float(rates[at] * load), 30_000.0), own=float(weights[at] / whole),
                inclusive=float(weights[at] / whole), ways=_ways(float(medians[at] * slow), two=bool(two[at])),
            )
            for at in here
        ]  # fmt: skip
        clock = FakeClock(BEGIN_NS)
        member = FleetMember(
            name=f"h{number}", role=role, source=SimulatedSource(program, clock, seed=number), clock=clock,
            phase_s=int(rng.integers(0, given.every)),
        )  # fmt: skip
        member.begin(settings)
        members.append(member)
    keys = [NumberedPlanted(name=f"f{at}", rate=1.0, ways=()).function.key for at in range(given.functions)]
    runs = {key: frozenset(each.name for each in members if each.role in roles[at]) for at, key in enumerate(keys)}
    return members, Centre(members={each.name: each for each in members}, keys=keys, runs=runs)


def _ways(median: float, *, two: bool) -> tuple[Way, ...]:
    if not two:
        return (Way(callers="main", weight=1.0, classes=((1.0, median, 0.3),)),)
    mixed = ((0.5, median, 0.1), (0.5, 8 * median, 0.1))
    return (
        Way(callers="main;a;b", weight=1.0, classes=((1.0, median, 0.1),)),
        Way(callers="main;c", weight=1.0, classes=mixed),
    )


def _simulated(members: list[FleetMember], centre: Centre | None, given: argparse.Namespace) -> dict[str, Any]:
    known: dict[int, int] = {}
    finished: dict[int, float] = {}
    overhead: dict[int, float] = {0: 0.0}
    for second in range(1, given.seconds + 1):
        now_ns = BEGIN_NS + second * SECOND
        reached = centre is not None and not (given.lost and second >= given.lost)
        for member in members:
            member.turn(now_ns)
            if reached and centre is not None and second % given.every == member.phase_s:
                centre.contact(member, now_ns)
        if reached and centre is not None and second % 60 == 0:
            centre.plan(second)
        if second % 60 == 0:
            known[second] = len(centre.known_s) if centre is not None else 0
            finished[second] = float(np.mean([each.finished for each in members]))
            overhead[second] = float(np.mean([each.source.overhead_ns for each in members])) / SECOND
    return {"known": known, "finished": finished, "overhead": overhead}


if __name__ == "__main__":
    sys.exit(main())
