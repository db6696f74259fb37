"""How soon are calls counted again after a program is deployed again, and is any counted twice?

    .venv/bin/python -m bench.resilience.redeploys [--times 10] [--only WORD] [--life 2]

A daemon watches a service that writes down its own number of calls. The service is deployed again in eleven ways, each
some times: see ``bench/lib/deployments.py``. *Counted after* is the time from the start of the new process until 20
more calls were counted, at most 30 s. *Rate* is the number of calls counted a watched second, to the service's own
calls a second in the same two seconds: 2 would mean that calls were counted twice. Of several processes that were
started by themselves some or all are observed at a time; their rate is divided by their number, so 3 is all of three.
*Processes* tells whether ``status`` named as many as there were, within 5 s; *lifetimes* how many the store holds, of
how many there were. Needs root and gcc.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench.lib.deployments import KINDS, Deployment
from bench.lib.driver import table
from specmine.store import open_store
from tests.support.product import Daemon, daemon, wait_until

CALLS_S = 5.0
"""What is promised."""
LIMIT_S = 30.0
STEADY_S = 1.5
LEAST_WATCHED_S = 0.5
TWICE = 1.5
"""A ratio of rates beyond which calls were counted twice; windows that are watched differ a little from the whole."""
SECTIONS = {
    "functions": "{watch: [work]}",
    "budget": "{overhead: 50%, agent: 50%}",
    "experiments": "{enabled: false}",
}


def seen(one: Daemon) -> tuple[int, float]:
    """Return how many calls of the service were counted in all its builds, and in how many seconds of watching."""
    functions = (one.ask("functions") or {}).get("functions", [])
    own = [each for each in functions if each["function"] == "work"]
    return sum(each["calls_counted"] for each in own), sum(each["watched_seconds"] for each in own)


def counted(one: Daemon) -> int:
    """Return how many calls of the service were counted in all its builds."""
    return seen(one)[0]


def processes(one: Daemon) -> int:
    """Return how many processes the daemon says that it watches."""
    return sum(each["processes"] for each in (one.ask("status") or {}).get("lifetimes", []))


def settled(one: Daemon) -> int:
    """Return what is counted once nothing more comes."""
    calls, since_s = counted(one), time.monotonic()
    while time.monotonic() - since_s < STEADY_S:
        time.sleep(0.1)
        now = counted(one)
        if now != calls:
            calls, since_s = now, time.monotonic()
    return calls


@dataclass(frozen=True, slots=True, kw_only=True)
class Redeploy:
    """What came of one."""

    after_s: float
    """Until calls were counted."""
    rate_ratio: float
    """Calls counted a watched second, to the service's own calls a second in the same time."""
    right: bool
    """Status named the processes that there were."""


def redeployed(one: Daemon, deployment: Deployment, number: int, life_s: float) -> Redeploy:
    """Deploy once."""
    deployment.replace(number)
    deployment.stop()
    before = counted(one) if deployment.running else settled(one)
    deployment.restart()
    began_s = time.monotonic()
    try:
        after_s = wait_until(lambda: counted(one) >= before + 20, "calls", LIMIT_S)
    except AssertionError:
        print(json.dumps([one.ask("status"), one.ask("functions")]), one.log.read_text(), sep="\n", file=sys.stderr)
        after_s = LIMIT_S
    while (right := processes(one) == deployment.processes) is False and time.monotonic() < began_s + CALLS_S:
        time.sleep(0.1)
    first, own, since_s = seen(one), deployment.calls, time.monotonic()
    time.sleep(life_s)
    own_rate = (deployment.calls - own) / (time.monotonic() - since_s) / deployment.copies
    last = seen(one)
    watched_s = last[1] - first[1]
    ratio = (last[0] - first[0]) / watched_s / own_rate if watched_s > LEAST_WATCHED_S else math.nan
    return Redeploy(after_s=after_s, rate_ratio=ratio, right=right)


def measured(kind: type[Deployment], folder: Path, times: int, life_s: float) -> list[object]:
    """Return the row of one way."""
    folder.mkdir()
    (folder / "private").mkdir()
    deployment = kind(folder)
    try:
        with daemon(folder / "private", programs=f"[{deployment.chosen}]", **SECTIONS) as one:
            deployment.begin()
            one.start(alone=True)
            wait_until(lambda: counted(one) > 20, "the first calls")
            found = []
            for number in range(times):
                found.append(redeployed(one, deployment, number, life_s))
                print(f"{kind.__name__} {number + 1}: {found[-1].after_s:.2f} s", file=sys.stderr, flush=True)
            deployment.end()
            wait_until(lambda: processes(one) == 0, "the end of all", LIMIT_S)
            one.end()
            with open_store(one.store, read_only=True) as store:
                lifetimes = len(store.load().lifetimes)
    finally:
        for child in deployment.running:
            child.kill()
            child.wait()
    took = [each.after_s for each in found]
    twice = TWICE * deployment.copies
    ratios = [each.rate_ratio for each in found if not math.isnan(each.rate_ratio)]
    faults = sum(each.after_s > CALLS_S or each.rate_ratio > twice or not each.right for each in found) + (
        lifetimes != deployment.execs
    )
    right = f"{sum(each.right for each in found)} of {times}"
    spread = f"{statistics.median(took):.1f} (at most {max(took):.1f})"
    rates = f"{min(ratios):.2f} to {max(ratios):.2f}" if ratios else "-"
    return [str(kind.__doc__), times, spread, rates, right, f"{lifetimes} of {deployment.execs}", faults]


def main() -> int:
    """Deploy in every way and print a table."""
    parser = argparse.ArgumentParser(description="What is counted of a program that is deployed again.")
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--only", default="", help="ways whose name holds this")
    parser.add_argument("--life", type=float, default=2.0, help="seconds over which the rate is taken")
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("bench.resilience.redeploys: needs root", file=sys.stderr)
        return 4
    rows = []
    with tempfile.TemporaryDirectory(prefix="specmine-bench-") as folder:
        os.environ["CACHE_DIRECTORY"] = f"{folder}/cache"
        for kind in KINDS:
            if options.only in str(kind.__doc__):
                rows.append(measured(kind, Path(folder) / kind.__name__, options.times, options.life))
                print(rows[-1], flush=True)
    table(("way", "times", "counted after, s", "rate", "processes right", "lifetimes", "faults"), rows)
    return 1 if any(row[-1] for row in rows) else 0


if __name__ == "__main__":
    raise SystemExit(main())
