"""How soon are there numbers of a server's functions, how many are settled, and what was the overhead spent on?

    .venv/bin/python -m bench.overhead.learning [PROGRAM...] [--seconds 60] [--budget 0.01] [--keep FILE]

Each program runs under load (bench/lib/server_load.py) and is mined as ``specmine mine --duration 60`` does. A
function has *numbers* from 100 timed calls on, *levels* once p50, p90 and p99 are stated, *ranges* once these have
ranges, and is *settled* once it is stable. The second table says what the overhead was spent on. Needs root, gcc and
the packages that bench/lib/server_load.py names; ``shop`` is a C++ server of our own under a bounded load.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from bench.faults.programs import shop
from bench.lib.driver import table
from bench.lib.server_load import NAMES, loaded
from specmine.daemon.config.settings import settings_of
from specmine.daemon.config.tree import Config
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.documents.specification import specification
from specmine.daemon.kernel_source import DEFAULT_CACHE
from specmine.daemon.loop import Step, run
from specmine.daemon.worker.process import ProcessWorker
from specmine.model.batch import PURPOSES
from specmine.model.clock import SystemClock
from specmine.probes.process.selection import Selection
from specmine.probes.settings import SourceSettings
from specmine.probes.source import BpfSource

FIRST = 10
LEAST_CALLS = 100
SETTLED = ("single", "explaining", "explained", "unexplained")
USUAL = ("redis-server", "postgres", "nginx", "shop")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What one mining gave."""

    program: str
    budget: float
    first_s: tuple[float, ...]
    """Seconds after the start at which each function first had numbers, in order."""
    functions: int
    """Functions followed at the end."""
    numbers: int
    levels: int
    ranges: int
    settled: int
    timed: int
    overhead_ratio: float
    program_cpu_s: float
    agent_s: float
    started_s: float
    """Seconds from the start to the first probe at the earliest."""
    spent_s: dict[str, float] = field(default_factory=dict)
    states: dict[str, int] = field(default_factory=dict)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="How soon is how much known, and what was the overhead spent on?")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=f"of shop, {', '.join(NAMES)}")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--budget", type=float, default=0.01)
    parser.add_argument("--keep", type=Path, help="file to add the runs to")
    parser.add_argument("--functions", action="store_true", help="print each function as well")
    options = parser.parse_args()
    unknown = set(options.programs) - {*NAMES, "shop"}
    if unknown:
        parser.error(f"there is no {', '.join(unknown)}")
    if os.geteuid() != 0:
        print("bench.overhead.learning: needs root", file=sys.stderr)
        return 4
    runs = []
    for name in options.programs or USUAL:
        with tempfile.TemporaryDirectory(prefix="specmine-bench-") as folder, served(name, Path(folder)) as pid:
            runs.append(mined(name, pid, options.seconds, options.budget, shown=options.functions))
        if options.keep:
            with options.keep.open("a") as file:
                file.write(json.dumps(asdict(runs[-1])) + "\n")
    report(runs)
    return 0


@contextmanager
def served(name: str, folder: Path) -> Iterator[int]:
    """Run a program under load; yield its pid."""
    if name == "shop":
        with shop.served(folder) as service:
            yield service.pid
    else:
        with loaded(name, folder) as running:
            yield running.pid


def mined(name: str, pid: int, seconds: float, budget: float, *, shown: bool = False) -> Run:
    """Mine a program as ``specmine mine`` does."""
    duration_ns = int(seconds * 1e9)
    settings = replace(settings_of(Config()), overhead=budget, agent=0.0).for_duration(duration_ns)
    Path(DEFAULT_CACHE).mkdir(parents=True, exist_ok=True)
    source = BpfSource([Selection(pid=pid)], SourceSettings(cache=DEFAULT_CACHE))
    began, before_s = time.monotonic(), _used_s()
    first: dict[str, float] = {}

    def see(step: Step) -> None:
        now = step.state.now_ns * 1e-9 - began
        for key, function in step.state.functions.items():
            if key not in first and function.history.totals.timed >= LEAST_CALLS:
                first[key] = now

    state = run(source, settings, SystemClock(), ProcessWorker(), listeners=[see], deadline_ns=duration_ns)
    found = learnt(name, budget, state, tuple(sorted(first.values())), began, shown=shown)
    return replace(found, agent_s=found.agent_s - before_s)


def _used_s() -> float:
    """Return the CPU time of this process and of its children that have ended, s: of earlier runs and their servers."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def learnt(
    name: str, budget: float, state: ControllerState, first_s: tuple[float, ...], began: float, *, shown: bool
) -> Run:
    """Put together what a mining gave."""
    document = specification(state)
    functions = document["functions"]
    if shown:
        describe(state)
    spent, states = state.account.spent, [each["state"] for each in functions]
    stated = [each["quantiles"] for each in functions]
    return Run(
        program=name,
        budget=budget,
        first_s=first_s,
        functions=len(functions),
        numbers=len(first_s),
        levels=sum("p99" in each for each in stated),
        ranges=sum((each.get("p50") or {}).get("low") is not None for each in stated),
        settled=sum(each in SETTLED for each in states),
        timed=sum(each["timed"] for each in functions),
        overhead_ratio=document["collection"]["overhead_ratio"],
        program_cpu_s=spent.program_cpu_ns * 1e-9,
        agent_s=document["collection"]["agent_cpu_seconds"],
        started_s=state.began_ns * 1e-9 - began,
        spent_s={purpose: ns * 1e-9 for purpose, ns in spent.purposes.items()},
        states={each: states.count(each) for each in sorted(set(states))},
    )


def describe(state: ControllerState) -> None:
    """Print what was spent on each function, the most expensive first."""
    order = sorted(state.functions.values(), key=lambda each: -each.probe.counts.cost_ns)
    rows = [
        (
            each.function.name[:40],
            each.state,
            each.reason.code if each.reason else "",
            f"{each.probe.rate or 0:,.0f}",
            each.history.totals.timed,
            each.history.totals.observations,
            each.inference.chain.chain if each.inference.chain else 0,
            f"{each.probe.counts.cost_ns / 1e6:.2f}",
            f"{each.profile.own_ns / 1e6:.1f}",
            each.profile.loop_bottom,
        )
        for each in order[:80]
    ]
    table(["function", "state", "reason", "calls/s", "timed", "windows", "chain", "ms", "own ms", "loop"], rows)


def report(runs: list[Run]) -> None:
    """Print the two tables."""
    head = [
        "program",
        f"s to {FIRST} with numbers",
        "after 5 s",
        "numbers",
        "levels",
        "ranges",
        "settled",
        "followed",
        "timed calls",
        "overhead",
        "own CPU s",
    ]
    rows = [
        (
            one.program,
            f"{one.first_s[FIRST - 1]:.1f}" if len(one.first_s) >= FIRST else "-",
            sum(each <= 5.0 for each in one.first_s),
            one.numbers,
            one.levels,
            one.ranges,
            one.settled,
            one.functions,
            f"{one.timed:,}",
            f"{one.overhead_ratio:.2%} of {one.program_cpu_s:.0f} s",
            f"{one.agent_s:.1f}",
        )
        for one in runs
    ]
    table(head, rows)
    spent = [
        (
            one.program,
            f"{1e3 * sum(one.spent_s.values()):.0f}",
            *(f"{_part(one, purpose):.0%}" for purpose in PURPOSES),
        )
        for one in runs
    ]
    table(["program", "ms", *PURPOSES], spent)
    for one in runs:
        print(one.program, f"started after {one.started_s:.1f} s", json.dumps(one.states))


def _part(one: Run, purpose: str) -> float:
    return one.spent_s.get(purpose, 0.0) / max(1e-9, sum(one.spent_s.values()))


if __name__ == "__main__":
    raise SystemExit(main())
