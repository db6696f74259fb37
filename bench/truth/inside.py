"""Is what specmine says of the inside of slow calls true?

    .venv/bin/python -m bench.truth.inside [--rounds 10] [--seconds 1.5] [--only callee,own] [--limit 200]

Programs whose slow calls have a known cause: a callee, one three levels down, one below a recursion, two callees at
once, misses of the cache in a callee, own code, a lock that another thread holds. Each measures the parts of its slow
calls by its own clock. That is compared with the shares of the slow class. A run is right if the true cause is named
first (of two that differ by less than ten points either may be), each share is within ten points, and nothing else has
more than ten. Needs root and gcc.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.lib.driver import TARGETS, Driver, table
from bench.lib.proportion import interval
from specmine.mining.inside.composition import ClassInside, best_known, composition
from specmine.model.batch import Unwatch
from specmine.model.buckets import BUCKETS, bucket_of
from specmine.model.observation import Kind, Observation
from specmine.probes.process.selection import Selection
from specmine.probes.settings import SourceSettings
from specmine.probes.source import BpfSource

SLOW_NS = 400_000
ENOUGH = 60
"""Slow calls from which these are judged."""
WINDOW_NS = 300_000_000
OWN = "own code"
NAMES = ("top", "parse", "slow", "other", "one", "two", "descend", "walk", "take_lock")
CAUSES = {
    "callee": {"slow": "slow"},
    "nested": {"one": "slow"},
    "recursion": {"descend": "slow"},
    "two": {"slow": "slow", "other": "other"},
    "cache": {"walk": "slow"},
    "own": {},
    "lock": {"take_lock": "take_lock"},
}
"""Program -> callees that are the cause, with the field of the truth that they are measured in."""
WITHIN = 0.10
USUAL_NS = 20_000
"""What ``parse`` takes in each call; the rest of a call without a callee is own code."""
DOWN = {"nested": (("one", "two"), ("two", "slow")), "recursion": (("descend", "slow"),)}
"""What the cause must be below its first level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What was said of the slow calls of one run, and what the program knows."""

    named: tuple[str, ...]
    """What has the most of their time, the largest first; as many as there are causes."""
    right: bool
    shares: tuple[float, ...]
    """Of each cause, as stated."""
    truths: tuple[float, ...]


def main() -> int:
    """Measure; 0 if 95 of 100 runs are right."""
    parser = argparse.ArgumentParser(description="Is what is said of the inside of slow calls true?")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=1.5, help="how long each program is watched at least")
    parser.add_argument("--only", default=",".join(CAUSES), help="programs, with commas between")
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds after which no further round begins")
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("bench.truth.inside: needs root", file=sys.stderr)
        return 4
    modes = options.only.split(",")
    runs: dict[str, list[Run]] = {mode: [] for mode in modes}
    with tempfile.TemporaryDirectory(prefix="specmine-bench-") as name:
        program = Path(name).resolve() / "slow_calls"
        subprocess.run(["cc", "-O2", "-pthread", "-o", program, TARGETS / "slow_calls.c"], check=True)
        settings = SourceSettings(watch=NAMES, sampling=False, isolate=False, cache=name)
        source = BpfSource([Selection(exe=str(program))], settings)
        try:
            source.start()
            driver = Driver(source)
            began = time.monotonic()
            for _ in range(options.rounds):
                if time.monotonic() - began > options.limit:
                    break
                for mode in modes:
                    runs[mode].append(judged(mode, *watched(driver, program, mode, options.seconds)))
        finally:
            source.close()
    head = ["slow by", "runs", "right", "named first", "share, specmine", "share, program"]
    table(head, [row_of(mode, found) for mode, found in runs.items()])
    right, number = sum(run.right for found in runs.values() for run in found), sum(map(len, runs.values()))
    low, high = interval(right, number)
    print(f"right in {right} of {number} runs: {right / number:.1%}, 95 % {low:.1%} to {high:.1%}")
    return int(right < 0.95 * number)


def watched(driver: Driver, program: Path, mode: str, seconds: float) -> tuple[dict[str, ClassInside], dict[str, Any]]:
    """Run and watch the program; return the slow class of each function, and what the program knows."""
    child = subprocess.Popen([program, mode], stdout=subprocess.PIPE, text=True)
    edge = int(bucket_of(np.array([SLOW_NS]))[0])
    driver.observations.clear()
    try:
        how = {"window_calls": 400, "window_ns": WINDOW_NS, "minimum_calls": 20}
        keys = {name: driver.watch(name, Kind.TIME, **how) for name in NAMES}
        child.send_signal(signal.SIGUSR1)
        begin = driver.last.now_ns

        def enough() -> bool:
            slow = sum(each.histogram.part(edge, BUCKETS).total for each in since(driver, keys["top"], begin))
            return slow >= ENOUGH and driver.last.now_ns - begin > seconds * 1e9

        driver.poll(enough, 60)
    finally:
        child.send_signal(signal.SIGTERM)
        out, _ = child.communicate(timeout=10)
    found = {}
    for name, key in keys.items():
        known = best_known(part for each in since(driver, key, begin) for part in each.inside)
        if known is not None:
            found[name] = composition(known, (edge,)).classes[1]
    for key in keys.values():
        driver.source.apply(Unwatch(function=key))
    driver.poll()
    return found, json.loads(out)


def since(driver: Driver, key: str, begin_ns: int) -> list[Observation]:
    """Return the windows of a function that began after a moment."""
    return [each for each in driver.observations if each.function == key and each.start_ns >= begin_ns]


def judged(mode: str, found: dict[str, ClassInside], truth: dict[str, Any]) -> Run:
    """Return what was said of the slow calls, and whether it is right."""
    slow = found.get("top", ClassInside())
    shares = {part.callee.name: part.share for part in slow.callees} | {OWN: slow.own}
    known = {name: truth[field] / max(1, truth["whole"]) for name, field in CAUSES[mode].items()}
    causes = known or {OWN: 1.0 - USUAL_NS / (truth["whole"] / max(1, truth["calls"]))}
    named = sorted(shares, key=lambda name: -shares[name])[: len(causes)]
    right = set(named) == set(causes) and causes[named[0]] >= max(causes.values()) - WITHIN
    right &= all(abs(shares.get(name, 0.0) - causes.get(name, 0.0)) <= WITHIN for name in {*shares, *causes} - {OWN})
    right &= OWN not in causes or abs(shares[OWN] - causes[OWN]) <= WITHIN
    for caller, callee in DOWN.get(mode, ()):
        parts = found.get(caller, ClassInside()).callees
        right &= bool(parts) and parts[0].callee.name == callee and parts[0].share > 1 - WITHIN
    if not right:
        print(f"{mode}: {shares}, truly {causes}", file=sys.stderr)
    of = tuple(causes)
    return Run(
        named=tuple(named),
        right=right,
        shares=tuple(shares.get(name, 0.0) for name in of),
        truths=tuple(causes[name] for name in of),
    )


def row_of(mode: str, found: list[Run]) -> tuple[str, ...]:
    """Return a row of the table: shares are medians over the runs."""

    def told(shares: list[tuple[float, ...]]) -> str:
        return ", ".join(f"{statistics.median(each):.1%}" for each in zip(*shares, strict=True))

    return (
        mode,
        str(len(found)),
        str(sum(run.right for run in found)),
        ", ".join(statistics.mode(run.named for run in found)),
        told([run.shares for run in found]),
        told([run.truths for run in found]),
    )


if __name__ == "__main__":
    sys.exit(main())
