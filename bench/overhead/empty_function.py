"""Is an empty function reported as taking no time, within the stated uncertainty?

    .venv/bin/python -m bench.overhead.empty_function [--runs 100] [--calls 3000] [--keep FILE]

In each run the kernel side is started and calibrated anew, and times an empty function by sessions and by return sites.
It is called in a tight loop, and between work that fills the first-level caches. A run is good if the median duration,
less the bias, is 0 within the uncertainty. Needs root and gcc.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.lib.driver import TARGETS, Driver, Spoken, built, driven, table
from specmine.model.observation import Kind

WAYS = {"sessions": "", "sites": "libgcc_s.so.1"}
PLACES = {"timed": "tight loop", "amid_work": "amid work"}
GOOD, UNCERTAIN = 0.95, 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """One empty function in one run, ns."""

    way: str
    place: str
    median: float
    """As recorded: the probes' own part is in it."""
    bias: float
    uncertainty: float

    @property
    def good(self) -> bool:
        """True if it is 0 within the uncertainty."""
        return abs(self.median - self.bias) <= self.uncertainty


def main() -> int:
    """Measure; 0 if the bars are kept."""
    parser = argparse.ArgumentParser(description="Is an empty function reported as empty?")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--calls", type=int, default=3000)
    parser.add_argument("--keep", type=Path, help="file of results to add to; all in it are reported")
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("bench.overhead.empty_function: needs root", file=sys.stderr)
        return 4
    found: list[Reported] = []
    with tempfile.TemporaryDirectory(prefix="specmine-bench-") as folder:
        program = built(Path(folder), TARGETS / "prices.c")
        for _ in range(options.runs):
            for way, preload in WAYS.items():
                fresh = one_run(program, Path(folder), way, preload, options.calls)
                found += fresh
                if options.keep:
                    with options.keep.open("a") as file:
                        file.writelines(json.dumps(asdict(each)) + "\n" for each in fresh)
    if options.keep:
        found = [Reported(**json.loads(line)) for line in options.keep.read_text().splitlines()]
    return report(found)


def one_run(program: Path, cache: Path, way: str, preload: str, calls: int) -> list[Reported]:
    """Calibrate anew and time the empty functions."""
    for prices in cache.glob("prices-*.json"):
        prices.unlink()  # the programs stay compiled
    with ExitStack() as stack:
        target = Spoken(program, "12", preload=preload)
        stack.callback(target.end)
        driver = stack.enter_context(driven(target.pid, PLACES, cache))
        return [timed(driver, target, name, way, calls) for name in PLACES]


def timed(driver: Driver, target: Spoken, name: str, way: str, calls: int) -> Reported:
    """Time an empty function and return what the kernel side reports of it."""
    key = driver.watch(name, Kind.TIME, window_calls=calls, window_ns=10**10, minimum_calls=calls // 2)
    end = time.monotonic() + 30
    while not (report := [o for o in driver.observations if o.function == key]):
        target.say(f"{name} {calls // 2}")
        target.hear()
        driver.poll()
        if time.monotonic() > end:
            raise SystemExit(f"{name} was not timed; refused: {driver.refusals}")
    return Reported(
        way=way,
        place=PLACES[name],
        median=report[0].histogram.quantile(0.5),
        bias=report[0].bias_ns,
        uncertainty=report[0].uncertainty_ns,
    )


def report(found: list[Reported]) -> int:
    """Print; return 1 if a bar is broken."""
    rows, broken = [], False
    for way in WAYS:
        for place in PLACES.values():
            some = [each for each in found if (each.way, each.place) == (way, place)]
            good = statistics.mean(each.good for each in some)
            share = statistics.median(each.uncertainty / each.bias for each in some)
            broken = broken or good < GOOD or share > UNCERTAIN
            errors = [each.median - each.bias for each in some]
            rows.append(
                (
                    way,
                    place,
                    len(some),
                    f"{statistics.median(each.median for each in some):.0f}",
                    f"{statistics.median(each.bias for each in some):.0f}",
                    f"{statistics.median(each.uncertainty for each in some):.0f} ({share:.0%})",
                    f"{statistics.median(errors):+.0f} ({min(errors):+.0f} .. {max(errors):+.0f})",
                    f"{good:.0%}",
                )
            )
    table(["way", "called", "runs", "recorded, ns", "bias", "uncertainty", "reported", "0 within it"], rows)
    return int(broken)


if __name__ == "__main__":
    raise SystemExit(main())
