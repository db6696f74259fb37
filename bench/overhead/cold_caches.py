"""What does a probe cost, and add to durations, amid work that fills the caches?

    .venv/bin/python -m bench.overhead.cold_caches [--rounds 13]

The results are the data of probes/calibration/cold_cache.py. An empty function is called between work on data, or
through code, of several sizes. For each size the bench prints the CPU time that a timed call adds, the median duration
that is recorded of it, and the time of the return's handler. It also prints these relative to a loop without work, and
what the two laws predict from the handler's time. Needs root and gcc.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from bench.lib.driver import TARGETS, Driver, Spoken, built, driven, table
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind
from specmine.model.probe_kind import TIMED
from specmine.probes.calibration.cold_cache import bias_factor, price_factor

WAYS = {"sessions": "", "sites": "libgcc_s.so.1"}
WORK = {
    "none": (20_000, 0, 0),
    "256 kB of data": (2000, 256 << 10, 0),
    "1 MB of data": (600, 1 << 20, 0),
    "4 MB of data": (120, 4 << 20, 0),
    "32 kB of code": (3000, 0, 512),
    "128 kB of code": (1000, 0, 2048),
    "256 kB of code": (500, 0, 4096),
    "512 kB of code": (300, 0, 8192),
    "1 MB of code": (120, 0, 16384),
}
"""Calls of the empty function in one loop, bytes and functions of 64 bytes between two of them."""


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What a probe costs where caches are cold.")
    parser.add_argument("--rounds", type=int, default=13)
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("bench.overhead.cold_caches: needs root", file=sys.stderr)
        return 4
    ratios = ["handler", "added", "by law", "recorded", "by law"]
    rows = []
    with tempfile.TemporaryDirectory(prefix="specmine-bench-") as folder, ExitStack() as stack:
        program = built(Path(folder), TARGETS / "cold.c")
        for way, preload in WAYS.items():
            target = Spoken(program, preload=preload)
            stack.callback(target.end)
            with driven(target.pid, ["empty"], Path(folder)) as driver:
                endless = {"window_calls": 1 << 40, "window_ns": 1 << 60, "minimum_calls": 1 << 40, "limit_ns": 1 << 60}
                driver.watch("empty", Kind.TIME, **endless)
                for _ in range(50):  # the return site is learnt
                    looped(target, (20, 0, 0), 1)
                    driver.poll()
                    time.sleep(0.01)
                found = {name: measured(driver, target, work, options.rounds) for name, work in WORK.items()}
            base = found["none"]
            for name, (added, recorded, handler) in found.items():
                own = handler / base[2]
                rows.append(
                    (
                        *(way, name, f"{added:.0f} ns", f"{recorded:.0f} ns", f"x {own:.2f}"),
                        *(f"x {added / base[0]:.2f}", f"x {price_factor(own, TIMED):.2f}"),
                        *(f"x {recorded / base[1]:.2f}", shown(*bias_factor(own, by_site=way == "sites"))),
                    )
                )
    table(["way", "between two calls", "added to a call", "recorded", *ratios], rows)
    return 0


def shown(factor: float, unsure: float) -> str:
    """Return a factor with its uncertainty."""
    return f"x {factor:.2f} +- {unsure:.2f}"


def looped(target: Spoken, work: tuple[int, int, int], called: int) -> float:
    """Return the CPU time of one turn of a loop, ns."""
    target.say(f"{' '.join(map(str, work))} {called}")
    return int(target.hear()) / work[0]


def measured(driver: Driver, target: Spoken, work: tuple[int, int, int], rounds: int) -> tuple[float, float, float]:
    """Return what a timed call adds, what is recorded of it and what its handler takes: medians and a mean, ns."""
    slot = driver.timed("empty").slot
    histogram = driver.source.parts.registry.windows._histogram
    before = histogram[slot.number].copy()
    handlers, took_ns = driver.counted("empty", "handlers_timed"), driver.counted("empty", "handler_ns")
    added = []
    for _ in range(rounds):
        called = looped(target, work, 1)
        driver.poll()  # a holder that hears nothing takes the probes off
        added.append(called - looped(target, work, 0))
        driver.poll()
    handlers, took_ns = (
        driver.counted("empty", "handlers_timed") - handlers,
        driver.counted("empty", "handler_ns") - took_ns,
    )
    median = Histogram.from_dense(histogram[slot.number] - before).quantile(0.5)
    return statistics.median(added), median, took_ns / max(1, handlers)


if __name__ == "__main__":
    raise SystemExit(main())
