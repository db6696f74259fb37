"""How soon does a fleet know its functions, and at what cost for each host, against hosts that learn alone?

    .venv/bin/python -m bench.fleet.sharing [--hosts 100] [--functions 200] [--seconds 300] [--alone 8] [--every 60]
        [--processes 2]

Hosts are simulated; each runs the real controller on a program that exists as numbers, and reaches the fleet every
*every* seconds. Duties come from ``mining.fleet.duties``, statements from ``mining.fleet.pooled_statement``, as planner
and analysts call them, without a database. Rates of calls are log-uniform over functions, times a lognormal
load of each host. Hosts are in five roles, and each function is in three of them. *Known* are functions that the fleet
states, or that a lone host has finished. Overhead is what probes and samples added to the program. Needs some
1.5 s of CPU time a host, and neither root nor a database.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from bench.lib.driver import table
from bench.lib.fleet_minutes import MINUTE_S, Task, divided, together
from bench.lib.simulated_fleet import Centre, FleetMember, made_fleet
from specmine.mining.fleet.duties import Assignment
from tests.support.simulated import SECOND

BEGAN = time.monotonic()


@dataclass
class Outcome:
    """What became of some hosts, by second."""

    known: dict[int, int] = field(default_factory=dict)
    """Functions that the fleet states."""
    finished: dict[int, float] = field(default_factory=dict)
    """Functions of which a host states something, the mean."""
    overhead: dict[int, float] = field(default_factory=lambda: {0: 0.0})
    """Of a host until then, s; the mean."""


def main() -> int:
    """Run it and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=100)
    parser.add_argument("--functions", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--alone", type=int, default=8, help="hosts that learn alone, to compare with")
    parser.add_argument("--every", type=int, default=60, help="s between contacts of a host")
    parser.add_argument("--slowest", type=float, default=0.2, help="calls a second of the rarest function on a host")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--lost", type=int, default=0, help="s from which the fleet is not reached any more")
    given = parser.parse_args()
    began = time.process_time()
    fleet, centre = made_fleet(given.hosts, given.functions, slowest=given.slowest, every=given.every, shares=True)
    shared = simulated(fleet, centre, given, shares=True)
    lonely, nobody = made_fleet(given.alone, given.functions, slowest=given.slowest, every=given.every, shares=False)
    alone = simulated(lonely, nobody, given, shares=False)
    took = time.process_time() - began + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    table(["seconds", "known to the fleet", "known to a lone host, mean", "stated by a host of the fleet, mean"],
          [[str(second), f"{known} of {given.functions}", f"{alone.finished[second]:.0f}",
            f"{shared.finished[second]:.0f}"] for second, known in shared.known.items()])  # fmt: skip
    print()
    table(["overhead, share of the program's CPU time", "host of the fleet", "lone host", "ratio"],
          [[f"{first} to {last} s", f"{100 * mine:.4f} %", f"{100 * theirs:.4f} %", f"{mine / theirs:.3f}"]
           for (first, last), mine, theirs in _costs(shared, alone)])  # fmt: skip
    plan_ms = 1e3 * centre.planning_s / max(1, given.seconds // 60)
    print(f"\nat the centre: {dict(Counter(centre.found.values()))}; CPU time of mining {centre.mining_s:.1f} s,"
          f" of a plan {plan_ms:.0f} ms, of the bench {took:.0f} s")  # fmt: skip
    return 0


def _costs(shared: Outcome, alone: Outcome) -> list[tuple[tuple[int, int], float, float]]:
    """Return the overhead in CPU time a second of both, minute by minute and in all."""
    marks = sorted(shared.overhead)

    def rate(of: Outcome, first: int, last: int) -> float:
        return float(of.overhead[last] - of.overhead[first]) / (last - first)

    pairs = [*pairwise(marks), (marks[0], marks[-1])]
    return [(each, rate(shared, *each), rate(alone, *each)) for each in pairs]


def simulated(members: list[FleetMember], centre: Centre, given: argparse.Namespace, *, shares: bool) -> Outcome:
    """Let hosts run, and return what became of them; *given*: seconds, every, lost, processes."""
    came, stated = Outcome(), 0
    told: dict[str, Assignment] | None = {} if shares else None
    with divided(members, centre, given.processes) as pipes:
        for first in range(1, given.seconds + 1, MINUTE_S):
            last = min(first + MINUTE_S - 1, given.seconds)
            task = Task(first=first, last=last, every=given.every, lost=given.lost, told=told,
                        statements=centre.statements[stated:])  # fmt: skip
            stated = len(centre.statements)
            report = together(pipes, task)
            for each in report.sent:
                centre.receive(each.name, each.rows)
            if last % MINUTE_S == 0:
                if shares and not (given.lost and last >= given.lost):
                    centre.plan(last)
                    told = centre.told
                came.known[last] = len(centre.known_s)
                came.finished[last] = float(np.mean(list(report.finished.values())))
                came.overhead[last] = float(np.mean(list(report.overhead_ns.values()))) / SECOND
                print(f"{last} s: {came.known[last]} known, {time.monotonic() - BEGAN:.0f} s since the start",
                      file=sys.stderr)  # fmt: skip
    return came


if __name__ == "__main__":
    sys.exit(main())
