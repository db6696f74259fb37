"""Is it true for how much of the time threads are blocked where, by looks from outside and by the switch tracepoint?

    .venv/bin/python -m bench.truth.blocked [--seconds 60] [--rounds 3]

One thread of a program holds a lock for 40 of each 120 ms, four others want it each 3 ms. The program measures by its
own clock how long they take. The source samples for so long in one way and then in the other. Of a program of many
threads it is measured what one look takes. Needs root and gcc.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from bench.lib.driver import ROOT, Driver, built, table
from specmine.model.batch import Sampling
from specmine.probes.process.selection import Selection
from specmine.probes.sampling import profiler
from specmine.probes.settings import SourceSettings
from specmine.probes.source import BpfSource
from tests.support.source_driver import counts_of, running

HERTZ = 49
FUNCTIONS = ("hold", "update")
LOOKS = "looks"
WAYS = (LOOKS, "the switch tracepoint")
IDLE = (0, 100, 1000)
"""Threads that sleep, beside the six."""
LOOKS_TIMED = 200


def main() -> int:
    """Measure both; 0 unless root is missing."""
    parser = argparse.ArgumentParser(description="Time blocked, by looks and by the switch tracepoint.")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("bench.truth.blocked: needs root", file=sys.stderr)
        return 4
    with tempfile.TemporaryDirectory(prefix="specmine-blocked-") as folder:
        program = built(Path(folder), ROOT / "tests" / "programs" / "lock_shares.c")
        rows = []
        for way in WAYS:
            for _ in range(options.rounds):
                found, true = threads_in(program, options.seconds, way)
                rows.append([way, *(f"{found[name]:.2f} ({float(str(true[name])):.2f})" for name in FUNCTIONS)])
        table(["by", *(f"threads in `{name}` (true)" for name in FUNCTIONS)], rows)
        timed = [[str(idle + 6), f"{look_us(program, idle):.0f}"] for idle in IDLE]
        table(["blocked threads", "CPU time of a look, µs"], timed)
    return 0


def threads_in(program: Path, seconds: float, way: str) -> tuple[dict[str, float], dict[str, object]]:
    """Return how many threads are in each function on average, found and true."""
    profiler.LOOK_PROGRAM = "on_look" if way == LOOKS else "no such program"
    with running(program, 10 * seconds) as child:
        driver = Driver(BpfSource([Selection(pid=child.pid)], SourceSettings()))
        driver.source.start()
        try:
            driver.source.apply(Sampling(hertz=HERTZ))
            until = time.monotonic() + seconds
            driver.poll(lambda: time.monotonic() > until, limit_s=2 * seconds)
        finally:
            driver.source.close()
        true = counts_of(child)
    found: dict[str, float] = defaultdict(float)
    for sample in driver.hot_samples:
        found[driver.functions[sample.function].name] += sample.inclusive_ns * 1e-9 / seconds
    return found, true


def look_us(program: Path, idle: int) -> float:
    """Return what one look takes, in microseconds of CPU time; all threads are looked at."""
    profiler.LOOK_PROGRAM = "on_look"
    with running(program, 600, idle) as child:
        driver = Driver(BpfSource([Selection(pid=child.pid)], SourceSettings()))
        driver.source.start()
        try:
            driver.source.apply(Sampling(hertz=HERTZ))
            driver.poll(lambda: driver.hot_samples)
            looks = driver.source.parts.profiler.blocked
            assert looks is not None
            driver.source.parts.profiler._settings["look_every"][0] = 1
            took = []
            for _ in range(LOOKS_TIMED):
                began = time.thread_time()
                looks.look()
                took.append(time.thread_time() - began)
        finally:
            driver.source.close()
    return statistics.median(took) * 1e6


if __name__ == "__main__":
    raise SystemExit(main())
