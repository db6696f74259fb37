"""What does it cost a timed call that what happened inside it is known?

    .venv/bin/python -m bench.overhead.inside [--rounds 5]

A function calls another one 0, 1 or 4 times; both are timed. The kernel's own statistics of its programs give the time
of a timed call, entry and return together, with and without the sums of callees, in turn. With sessions and with
return sites. Needs root and gcc.
"""

from __future__ import annotations

import argparse
import os
import statistics
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.lib.driver import TARGETS, Driver, table
from specmine.model.observation import Kind
from specmine.probes.kernel import loader
from specmine.probes.kernel.maps import bpf
from specmine.probes.process.selection import Selection
from specmine.probes.settings import SourceSettings
from specmine.probes.source import BpfSource

ENABLE_STATS = 32
"""Command of bpf(): run times of programs are counted while its descriptor is open."""
BAR_NS = 40.0
CALLS = 60_000
PROGRAMS = {"sessions": ("call_time_session",), "return sites": ("call_time_site", "call_site_return")}


def main() -> int:
    """Measure; 0 if a timed call got at most 40 ns dearer."""
    parser = argparse.ArgumentParser(description="What does it cost to know what happened inside a call?")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("bench.overhead.inside: needs root", file=sys.stderr)
        return 4
    rows, worst = [], 0.0
    statistics_on = bpf(ENABLE_STATS, struct.pack("<I", 0))
    try:
        with tempfile.TemporaryDirectory(prefix="specmine-bench-") as folder:
            program = Path(folder) / "callees"
            subprocess.run(["cc", "-O2", "-o", program, TARGETS / "callees.c"], check=True)
            for way in PROGRAMS:
                for callees in (0, 1, 4):
                    row, added = compared(program, way, callees, options.rounds, Path(folder))
                    rows.append(row)
                    print(*row, sep="; ", file=sys.stderr, flush=True)
                    worst = max(worst, added)
    finally:
        os.close(statistics_on)
    table(["returns", "timed callees in each call", "without, ns", "with, ns", "added, ns"], rows)
    print(f"at most {worst:.0f} ns more; the bar is {BAR_NS:.0f} ns")
    return int(worst > BAR_NS)


def compared(program: Path, way: str, callees: int, rounds: int, cache: Path) -> tuple[tuple[str, ...], float]:
    """Return a row of the table, and the median of the differences within a round: hosts change speed between them."""
    found: dict[bool, list[float]] = {True: [], False: []}
    variants = loader.VARIANTS
    for number in range(rounds):
        for inside in (True, False) if number % 2 else (False, True):
            loader.VARIANTS = variants if inside else tuple((*flags, "-DNO_INSIDE") for flags in variants)
            try:
                found[inside].append(kernel_time_ns(program, way, callees, cache))
            finally:
                loader.VARIANTS = variants
    added = [on - off for on, off in zip(found[True], found[False], strict=True)]
    middle = statistics.median(added)
    spans = {of: f"{statistics.median(each):.0f} ({min(each):.0f} to {max(each):.0f})" for of, each in found.items()}
    told = f"{middle:.0f} ({min(added):.0f} to {max(added):.0f})"
    return (way, str(callees), spans[False], spans[True], told), middle


def kernel_time_ns(program: Path, way: str, callees: int, cache: Path) -> float:
    """Return what the programs take for one timed call, ns: the mean over all calls of both functions."""
    preload = {"LD_PRELOAD": "libgcc_s.so.1"} if way == "return sites" else {}
    names = ("outer", "inner")
    child = subprocess.Popen([program, str(callees)], env={**os.environ, **preload})
    settings = SourceSettings(watch=names, sampling=False, isolate=False, links=("session",), cache=str(cache))
    source = BpfSource([Selection(pid=child.pid)], settings)
    try:
        source.start()
        driver = Driver(source)
        for name in names:
            driver.watch(name, Kind.TIME, window_calls=10**9, window_ns=10**12)
        driver.poll(lambda: all(driver.counted(name, "timed") > 2000 for name in names))
        if driver.way("outer") != {"sessions": "session", "return sites": "sites"}[way]:
            raise SystemExit(f"outer is timed by {driver.way('outer')}, not by {way}")
        loaded = source.parts.loaded
        programs = [loaded.programs[name] for name in PROGRAMS[way]]
        before, timed = sum(map(run_time, programs)), sum(driver.counted(name, "timed") for name in names)
        driver.poll(lambda: sum(driver.counted(name, "timed") for name in names) > timed + CALLS)
        after, now = sum(map(run_time, programs)), sum(driver.counted(name, "timed") for name in names)
    finally:
        source.close()
        child.kill()
        child.wait()
    return (after - before) / (now - timed)


def run_time(program: int) -> int:
    """Return how long a loaded program ran in all, ns."""
    words = Path(f"/proc/self/fdinfo/{program}").read_text().split()
    return int(dict(zip(words[::2], words[1::2], strict=False))["run_time_ns:"])


if __name__ == "__main__":
    sys.exit(main())
