"""What does a function called a billion times a second cost under the default budget, and what is learned of it?

    .venv/bin/python -m bench.overhead.hot_function [--pairs 30] [--budget 0.01]

A program calls one tiny function and nothing else, and writes down how many calls each 10 ms held. It is mined as
``specmine mine --function tiny`` does, with all probes off now and then (bench/lib/probe_toggle.py). Two programs: in
one the kernel must single-step the function's probe, in the other it emulates the first instruction. Needs root and
gcc.
"""

from __future__ import annotations

import argparse
import bisect
import mmap
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.lib.driver import TARGETS, built, table
from bench.lib.losses import loss_of
from bench.lib.probe_toggle import Meter, Mining, Phases, Toggled
from specmine.daemon.config.settings import settings_of
from specmine.daemon.config.tree import Config
from specmine.daemon.documents.specification import specification
from specmine.daemon.kernel_source import DEFAULT_CACHE
from specmine.daemon.loop import run
from specmine.daemon.worker.process import ProcessWorker
from specmine.probes.process.selection import Selection
from specmine.probes.settings import SourceSettings
from specmine.probes.source import BpfSource

WARM_S = 10.0
STEP_NS, WINDOW = 10_000_000, 10
LOSS_BAR, SLOW_BAR, TIMED_BAR, COUNT_BAR = 0.01, 0.8, 1000, 0.1


def main() -> int:
    """Measure; 0 if every bar is kept."""
    parser = argparse.ArgumentParser(description="What a very hot function costs.")
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--budget", type=float, default=0.01)
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("bench.overhead.hot_function: needs root", file=sys.stderr)
        return 4
    rows, broken = [], False
    for name, flags in (("single-stepped", ()), ("emulated", ("-DWELL_BEGUN",))):
        with tempfile.TemporaryDirectory(prefix="specmine-bench-") as folder:
            row, kept = measured(Path(folder), flags, options)
            rows.append((name, *row))
            broken = broken or not kept
    table(
        [
            "first instruction",
            "calls/s",
            "pairs",
            "loss",
            "95 %",
            "100-ms intervals below 80 % with probes",
            "without",
            "worst",
            "timed",
            "count / truth",
            "interval stated",
            "state",
        ],
        rows,
    )
    return int(broken)


@contextmanager
def calling(folder: Path, flags: tuple[str, ...]) -> Iterator[tuple[int, NDArray[np.uint64]]]:
    """Run the program; its pid and its counts."""
    program, counter = built(folder, TARGETS / "hot.c", *flags), folder / "counter"
    counter.touch()
    last = str((os.cpu_count() or 1) - 1)
    with ExitStack() as stack:
        process = subprocess.Popen(["taskset", "-c", last, program, counter, "590"], stdout=subprocess.DEVNULL)
        stack.callback(process.wait)
        stack.callback(process.kill)
        while counter.stat().st_size == 0:
            time.sleep(0.01)
        with counter.open("r+b") as file:
            counts = np.frombuffer(mmap.mmap(file.fileno(), 0), np.uint64)
        yield process.pid, counts


def measured(folder: Path, flags: tuple[str, ...], options: argparse.Namespace) -> tuple[list[object], bool]:
    """Mine one program; return what came out as a row, and whether the bars were kept."""
    settings = replace(settings_of(Config()), overhead=options.budget, agent=0.0, watch=("tiny",))
    settings = settings.for_duration(30_000_000_000)
    with calling(folder, flags) as (pid, counts):
        inner = BpfSource([Selection(pid=pid)], SourceSettings(cache=DEFAULT_CACHE, watch=("tiny",), sampling=False))
        source = Toggled(inner, pid)
        phases = Phases(Meter(pid, lambda: float(counts[0])), 2.0, 1)
        mining = Mining(source, phases, options.pairs, WARM_S)
        state = run(source, settings, source, ProcessWorker(), listeners=[mining.see], inbox=mining.inbox)
        end_ns = time.monotonic_ns()
        written = counts.copy()
    tiny = next(each for each in specification(state)["functions"] if each["function"] == "tiny")
    return judged(tiny, phases, source, written, end_ns)


def judged(
    tiny: dict[str, Any], phases: Phases, source: Toggled, counts: NDArray[np.uint64], end_ns: int
) -> tuple[list[object], bool]:
    """Compare what was learned and lost with the bars."""
    start_ns, steps = int(counts[1]), counts[2:]
    begun_ns = source.begun_ns
    inside = np.arange((begun_ns - start_ns) // STEP_NS + 1, (end_ns - start_ns) // STEP_NS - 1 - WINDOW)
    sums = np.convolve(steps.astype(float), np.ones(WINDOW), "valid")
    watched: dict[bool, list[float]] = {True: [], False: []}
    calls_on = calls_s = 0.0
    times, states = [at for at, _ in source.switched], [on for _, on in source.switched]
    usual = float(np.median([sums[at] for at in inside.tolist() if not is_on(times, states, start_ns + at * STEP_NS)]))
    for at in inside.tolist():
        first = is_on(times, states, start_ns + at * STEP_NS)
        last = is_on(times, states, start_ns + (at + WINDOW) * STEP_NS)
        if first == last:
            near = near_off(sums, inside, times, states, start_ns, at, usual)
            watched[first].append(sums[at] / near)
        if first:
            calls_on += float(steps[at])
            calls_s += STEP_NS * 1e-9
    loss = loss_of(phases.pairs)
    slow = {on: float(np.mean(np.array(ratios) < SLOW_BAR)) for on, ratios in watched.items()}
    rate = tiny["calls_counted"] / tiny["watched_seconds"] if tiny["watched_seconds"] else 0.0
    ratio = rate / (calls_on / calls_s)
    stated = next((str(tiny[key]) for key in tiny if key.startswith("calls") and "interval" in key), "none")
    kept = loss.high <= LOSS_BAR and slow[True] <= slow[False] and tiny["timed"] >= TIMED_BAR
    row: list[object] = [
        f"{calls_on / calls_s:.3g}",
        loss.pairs,
        f"{loss.value:+.2%}",
        f"{loss.low:+.2%} .. {loss.high:+.2%}",
        f"{slow[True]:.2%} of {len(watched[True])}",
        f"{slow[False]:.2%} of {len(watched[False])}",
        f"{min(watched[True]):.2f} / {min(watched[False]):.2f}",
        tiny["timed"],
        f"{ratio:.3f}",
        stated,
        f"{tiny['state']} {(tiny['reason'] or {}).get('code', '')}",
    ]
    return row, kept and abs(ratio - 1) <= COUNT_BAR


def is_on(times: list[int], states: list[bool], at_ns: int) -> bool:
    """Tell whether the probes were allowed at a time."""
    index = bisect.bisect_right(times, at_ns) - 1
    return states[index] if index >= 0 else True


def near_off(
    sums: NDArray[np.float64],
    inside: NDArray[np.int64],
    times: list[int],
    states: list[bool],
    start_ns: int,
    at: int,
    usual: float,
) -> float:
    """Return the median work of 100 ms without probes within 2.5 s: the host's speed changes by the second."""
    low, high = max(int(inside[0]), at - 250), min(int(inside[-1]), at + 250)
    near = [sums[i] for i in range(low, high, 5) if not is_on(times, states, start_ns + i * STEP_NS)]
    return float(np.median(near)) if near else usual


if __name__ == "__main__":
    raise SystemExit(main())
