"""What does following waits cost at each switch of a CPU, measured from outside and as specmine reports it?

    .venv/bin/python -m bench.overhead.switches [--pairs 60]

Two processes hand a byte to each other over pipes on one CPU. In random order the tracepoint that follows waits is on
or off for a quarter of a second. First the two are watched, then another program; once while it is sampled where
programs wait, and once while the waits within the calls of one function are followed, in none of which the two are. For
these the tracepoint of wake-ups is on, too.
Needs root and gcc.
"""

from __future__ import annotations

import argparse
import mmap
import os
import random
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.lib.driver import TARGETS, built, table
from bench.lib.peers import stopped
from bench.lib.server_load import LAST_CPU
from specmine.daemon.kernel_source import DEFAULT_CACHE
from specmine.probes.kernel.structs import SWITCHES_A_TIMED
from specmine.probes.process.selection import Selection
from specmine.probes.settings import SourceSettings
from specmine.probes.source import BpfSource

PHASE_S, SETTLE_S = 0.25, 0.05
NOBODY = 1 << 16
"""Identity of no function."""
EVERY = 100
"""One wait in so many is followed, as of a server under load."""


def main() -> int:
    """Measure; 0."""
    parser = argparse.ArgumentParser(description="What following waits costs at each switch of a CPU.")
    parser.add_argument("--pairs", type=int, default=60)
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("bench.overhead.switches: needs root", file=sys.stderr)
        return 4
    with tempfile.TemporaryDirectory(prefix="specmine-bench-") as name:
        folder = Path(name)
        program, counter = built(folder, TARGETS / "handing.c"), folder / "counter"
        counter.write_bytes(bytes(8))
        handing = subprocess.Popen(["taskset", "-c", str(LAST_CPU), program, counter], start_new_session=True)
        other = subprocess.Popen(["sleep", "infinity"], start_new_session=True)
        try:
            with counter.open("r+b") as file, mmap.mmap(file.fileno(), 8) as memory:

                def switches() -> int:
                    return int(struct.unpack("<Q", memory[:8])[0])

                pids = {"the two": handing.pid, "another program": other.pid}
                rows = [
                    (how, what, *costs(pid, switches, options.pairs, how))
                    for how in ("sampled", "of calls")
                    for what, pid in pids.items()
                ]
        finally:
            stopped(handing)
            stopped(other)
    table(
        [
            "waits are",
            "watched",
            "ns a switch without",
            "added, ns",
            "95 %",
            "reported, ns",
            "reported as the program's",
        ],
        rows,
    )
    return 0


def costs(pid: int, switches: Callable[[], int], pairs: int, how: str) -> tuple[str, ...]:
    """Watch a program, have the tracepoint on and off in turn; return what that added to each switch."""
    source = BpfSource([Selection(pid=pid)], SourceSettings(cache=DEFAULT_CACHE))
    os.sched_setaffinity(0, set(range(os.cpu_count() or 1)) - {LAST_CPU} or {0})
    added, without = [], []
    try:
        source.start()
        for _ in range(20):
            source.poll(time.monotonic_ns())
            time.sleep(0.05)
        finder, links = source.parts.profiler, source.parts.links
        for _ in range(pairs):
            took = {}
            for on in random.sample([True, False], 2):
                finder._settings["wait_every"][0] = EVERY if how == "sampled" else 0
                finder._settings["followed"][0] = 0 if how == "sampled" else NOBODY
                finder._settings["left"][0] = 1000
                points = ("sched_switch",) if how == "sampled" else ("sched_switch", "sched_waking")
                attached = [links.tracepoint(point, "on_switch") for point in points if on]
                time.sleep(SETTLE_S)
                source.poll(time.monotonic_ns())
                begun, before = time.monotonic_ns(), switches()
                time.sleep(PHASE_S)
                took[on] = (time.monotonic_ns() - begun) / (switches() - before)
                for link in attached:
                    links.close(link)
                time.sleep(SETTLE_S)
            added.append(took[True] - took[False])
            without.append(took[False])
        passes = finder.tracepoint._switches[0]
        own_ns, all_ns = finder.passes_ns()
        reported = all_ns / max(1, SWITCHES_A_TIMED * int(passes["timed"]))
    finally:
        source.close()
    half = 1.96 * 1.25 * statistics.stdev(added) / pairs**0.5  # of a median
    middle = statistics.median(added)
    interval = f"{middle - half:.0f} .. {middle + half:.0f}"
    return f"{statistics.median(without):.0f}", f"{middle:.0f}", interval, f"{reported:.0f}", f"{own_ns / all_ns:.0%}"


if __name__ == "__main__":
    raise SystemExit(main())
