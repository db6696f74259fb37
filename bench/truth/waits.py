"""Is what specmine says of the waits of slow calls true: for what, where, and how long?

    .venv/bin/python -m bench.truth.waits [--rounds 10] [--only lock,file] [--limit 200]

A program's calls are slow for a reason that is known: a lock that another thread holds, a file, a pipe, a socket, a
sleep, poll, a page fault, a callee three levels down, two causes at once, a recursion; or they work. It measures by its
own clock what its slow calls took, and for how long they were blocked in the function in which they wait. That is
compared with the first phases in which waits were followed. Of two causes that differ by less than ten points either
may be named first. Needs root and gcc.
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

from bench.lib.driver import ROOT, Driver, built, table
from bench.lib.proportion import interval
from specmine.mining.inside.waits import ClassWaits, waits_of
from specmine.model.batch import FollowWaits
from specmine.model.buckets import BUCKETS, bucket_of
from specmine.model.inside.waits import Waits, pooled_waits
from specmine.model.observation import Kind
from specmine.probes.process.selection import Selection
from specmine.probes.settings import SourceSettings
from specmine.probes.source import BpfSource

SLOW_NS = 150_000
"""Usual calls take 20 us."""
ENOUGH = 100
"""Slow calls in the phases from which these are judged; one phase has them, unless the machine is busy."""
WITHIN = 0.10
MOST_WITHOUT = 0.10
"""A program whose slow calls only work may be said to wait for this share of their time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What is to be said of a program."""

    waits: tuple[tuple[str, str, str], ...]
    """For what, in which function, and the field of the program's own measurement; the largest first."""


TRUTHS = {
    "lock": Truth(waits=(("futex", "take_lock", "place"),)),
    "file": Truth(waits=(("file", "save", "place"),)),
    "pipe": Truth(waits=(("pipe", "receive", "place"),)),
    "socket": Truth(waits=(("socket", "receive", "place"),)),
    "sleep": Truth(waits=(("sleep", "nap", "place"),)),
    "poll": Truth(waits=(("poll", "watch_nothing", "place"),)),
    "fault": Truth(waits=(("fault", "touch", "place"),)),
    "nested": Truth(waits=(("sleep", "nap", "place"),)),
    "two": Truth(waits=(("sleep", "nap", "other"), ("futex", "take_lock", "place"))),
    "recursion": Truth(waits=(("sleep", "nap", "place"),)),
    "none": Truth(waits=()),
}


def main() -> int:
    """Measure; 0 if in 95 of 100 runs the named wait is the true one, and its share within ten points."""
    parser = argparse.ArgumentParser(description="Is what is said of the waits of slow calls true?")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--only", default=",".join(TRUTHS), help="programs, with commas between")
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds after which no further round begins")
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("bench.truth.waits: needs root", file=sys.stderr)
        return 4
    modes = options.only.split(",")
    runs: dict[str, list[tuple[bool, bool, float, float]]] = {mode: [] for mode in modes}
    with tempfile.TemporaryDirectory(prefix="specmine-bench-") as folder:
        program = built(Path(folder).resolve(), ROOT / "tests" / "programs" / "blocked.c")
        settings = SourceSettings(watch=("top",), isolate=False, cache=folder)
        source = BpfSource([Selection(exe=str(program))], settings)
        try:
            source.start()
            driver = Driver(source)
            began = time.monotonic()
            for _ in range(options.rounds):
                if time.monotonic() - began > options.limit:
                    break
                for mode in modes:
                    runs[mode].append(judged(mode, *one_run(driver, program, mode)))
        finally:
            source.close()
    rows = [row_of(mode, found) for mode, found in runs.items()]
    every = [each for found in runs.values() for each in found]
    right, number = sum(named and near for named, near, _, _ in every), len(every)
    low, high = interval(right, number)
    table(["slow by", "runs", "named first", "share within 10 points", "share, specmine", "share, program"], rows)
    print(f"right in {right} of {number} runs: {right / number:.1%}, 95 % {low:.1%} to {high:.1%}")
    return int(right < 0.95 * number)


def one_run(driver: Driver, program: Path, mode: str) -> tuple[Waits, dict[str, Any]]:
    """Run the program until a phase is told; return that, and what the program knows."""
    child = subprocess.Popen([program, mode, "60"], stdout=subprocess.PIPE, text=True, cwd=program.parent)
    told: list[Waits] = []
    try:
        key = driver.watch("top", Kind.TIME, window_calls=500, window_ns=10**9)
        time.sleep(0.2)
        child.send_signal(signal.SIGUSR1)
        driver.source.apply(FollowWaits(functions=(key,)))

        def heard() -> bool:
            told.extend(driver.last.waits)
            return sum(each.calls.part(edge(), BUCKETS).total for each in told) >= ENOUGH

        driver.poll(heard, 50)
    finally:
        driver.source.apply(FollowWaits(functions=()))
        child.send_signal(signal.SIGTERM)
        out, _ = child.communicate(timeout=10)
    driver.poll()
    found = pooled_waits(told)
    assert found is not None
    return found, json.loads(out)


def edge() -> int:
    """Return the first bucket of the slow calls."""
    return int(bucket_of(np.array([SLOW_NS]))[0])


def judged(mode: str, found: Waits, truth: dict[str, Any]) -> tuple[bool, bool, float, float]:
    """Return whether the true wait is named first, whether shares are near, and the first one's share by both."""
    every: ClassWaits = waits_of(found)[0]
    calls = found.calls.part(edge(), BUCKETS)
    whole = calls.time_ns()
    shares: dict[tuple[str, str], float] = {}
    for part in every.parts:
        name = part.place.name if part.place else "top"
        shares[part.kind.value, name] = shares.get((part.kind.value, name), 0.0) + part.mean_ns * every.calls / whole
    if not TRUTHS[mode].waits:
        said = sum(shares.values())
        return said <= MOST_WITHOUT, True, said, 0.0
    known = {(kind, name): truth[field] / truth["whole"] for kind, name, field in TRUTHS[mode].waits}
    first = max(known, key=lambda each: known[each])
    most = sorted(shares, key=lambda each: -shares[each])[: len(known)]
    named = set(most) == set(known) and known[most[0]] >= known[first] - WITHIN  # of two alike either may be first
    near = all(abs(shares.get(each, 0.0) - share) <= WITHIN for each, share in known.items())
    return named, near, shares.get(first, 0.0), known[first]


def row_of(mode: str, found: list[tuple[bool, bool, float, float]]) -> tuple[str, ...]:
    """Return a row of the table: medians over the runs."""
    return (
        mode,
        str(len(found)),
        str(sum(named for named, *_ in found)),
        str(sum(near for _, near, *_ in found)),
        f"{statistics.median(each[2] for each in found):.1%}",
        f"{statistics.median(each[3] for each in found):.1%}",
    )


if __name__ == "__main__":
    sys.exit(main())
