"""How much less does a saturated server do while ``mine`` starts, and how long until its first number?

    .venv/bin/python -m bench.overhead.starting [PROGRAM...] [--rounds 4]

``mine`` weighs a fifth of a service. In each round it runs once so, and once as any other process, in random order.
Each run is compared with the five seconds before it. The programs are those of bench/lib/server_load.py; server and
load fill both CPUs. While it lasts sessions have no weight of their own (``kernel.sched_autogroup_enabled``), as under
systemd. Needs root and the packages that server_load.py names.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.lib.bytecode import compiled
from bench.lib.driver import table
from bench.lib.server_load import loaded
from bench.lib.tools.minutes import FIRST

AUTOGROUPS = Path("/proc/sys/kernel/sched_autogroup_enabled")
BEFORE_S, SECONDS, AFTER_S, EVERY_S = 5.0, 20.0, 4.0, 0.25
PARTS = ((0.0, 6.0), (6.0, 12.0), (12.0, 20.0))
"""Of a run, in seconds since its start."""
AS_ANY_OTHER = """
import contextlib, sys
from specmine.cli.main import main
from specmine.daemon import foreground
foreground.lighter = contextlib.nullcontext
sys.exit(main())
"""
WAYS = {"a fifth of a service": ("-m", "specmine.cli"), "any other process": ("-c", AS_ANY_OTHER)}


class Rate:
    """The work done so far, looked at often by a thread."""

    def __init__(self, work: Callable[[], float]) -> None:
        """Begin to look."""
        self._work = work
        self._looks: list[tuple[float, float]] = []
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        while True:
            self._looks.append((time.monotonic(), self._work()))
            time.sleep(EVERY_S)

    def between(self, begin: float, end: float) -> float:
        """Return the work a second between two moments."""
        looks = [each for each in self._looks if begin <= each[0] <= end]
        return (looks[-1][1] - looks[0][1]) / (looks[-1][0] - looks[0][0])


@contextmanager
def no_autogroups() -> Iterator[None]:
    """Let nice values and groups count between sessions."""
    before = AUTOGROUPS.read_text() if AUTOGROUPS.exists() else ""
    if before:
        AUTOGROUPS.write_text("0")
    try:
        yield
    finally:
        if before:
            AUTOGROUPS.write_text(before)


def first_number_s(way: str, pid: int, seconds: float) -> float | None:
    """Mine to the end; return after how long there was a first line with a duration."""
    began, found = time.monotonic(), None
    command = (sys.executable, *WAYS[way], "mine", "--pid", str(pid), "--duration", str(seconds))
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if found is None and FIRST.encode() in line:
                found = time.monotonic() - began
    return found


def tried(way: str, pid: int, rate: Rate) -> tuple[float | None, ...]:
    """Return after how long there was a number, and the factor of the work in each part of the run."""
    time.sleep(BEFORE_S)
    began = time.monotonic()
    first = first_number_s(way, pid, SECONDS)
    usual = rate.between(began - BEFORE_S, began)
    parts = [rate.between(began + start, began + end) / usual for start, end in PARTS]
    time.sleep(AFTER_S)
    return first, *parts


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What a server loses while mine starts.")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", default=["redis-server", "nginx"])
    parser.add_argument("--rounds", type=int, default=4)
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("bench.overhead.starting: needs root", file=sys.stderr)
        return 4
    compiled()
    rows = []
    for name in options.programs:
        found: dict[str, list[tuple[float | None, ...]]] = {way: [] for way in WAYS}
        with tempfile.TemporaryDirectory(prefix="specmine-bench-") as text, no_autogroups():
            Path(text).chmod(0o755)
            with loaded(name, Path(text)) as running:
                rate = Rate(running.work)
                first_number_s(next(iter(WAYS)), running.pid, BEFORE_S)  # what is cached is as later
                for _ in range(options.rounds):
                    for way in random.sample(list(WAYS), len(WAYS)):
                        found[way].append(tried(way, running.pid, rate))
        rows += [(name, way, *map(_shown, zip(*runs, strict=True), ("{:.1f} s", *["{:+.0%}"] * len(PARTS))))
                 for way, runs in found.items()]  # fmt: skip
    table(("program", "mine as", "first number", *(f"work in {a:.0f} to {b:.0f} s" for a, b in PARTS)), rows)
    return 0


def _shown(values: tuple[float | None, ...], form: str) -> str:
    """Return the median, and the least and the most; of factors what they differ from 1 by."""
    known = [each - 1 if "%" in form else each for each in values if each is not None]
    if not known:
        return "-"
    return f"{form.format(statistics.median(known))} ({form.format(min(known))} .. {form.format(max(known))})"


if __name__ == "__main__":
    raise SystemExit(main())
