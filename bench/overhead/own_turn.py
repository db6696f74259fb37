"""What does a turn of the loop cost ourselves to read counters, cut windows and account hits, without a kernel?

    .venv/bin/python -m bench.overhead.own_turn [--functions 60] [--windows 2] [--turns 300]

Functions are timed over arrays that stand in for the kernel's. Each turn some of them have had calls: durations,
single durations, waits, and every second one a callee. What reading the kernel's hashes takes is not in it. The
machine's speed changes, so two versions are compared by turns. Needs no root.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from bench.lib.driver import table
from specmine.model.batch import Prices, Watch
from specmine.model.buckets import BUCKETS, bucket_of
from specmine.model.function import Function
from specmine.model.observation import Kind
from specmine.probes.kernel.structs import (
    CALL_SAMPLE_PAGE,
    COUNTERS,
    INSIDE_KEY,
    INSIDE_VALUE,
    MAX_SLOTS,
    NEST,
    OFF_CPU,
    OFF_CPU_VALUE,
    PATH_BUCKET,
    SLOT,
)
from specmine.probes.timing.activity import ActivityMeter
from specmine.probes.timing.function.open_calls import OpenCalls
from specmine.probes.timing.function.slot import Slot
from specmine.probes.timing.function.timed_function import TimedFunction
from specmine.probes.timing.hit_watch import HitWatch
from specmine.probes.timing.inside import InsideMeter
from specmine.probes.timing.isolation import Isolation
from specmine.probes.timing.reservoir import CallReservoir
from specmine.probes.timing.slot_rows import SlotRows
from specmine.probes.timing.windows import Windows

CALLS = 231
SECOND = 1_000_000_000
PRICES = Prices(count_ns=700.0, time_ns=1300.0, path_ns=2300.0, stepped_ns=9000.0, sample_ns=5000.0, bias_ns=0.0)


class Rows:
    """A hash of the kernel."""

    def __init__(self, key: DTypeLike, value: DTypeLike) -> None:
        self.key, self.value = np.dtype(key), np.dtype(value)
        self.rows: list[tuple[NDArray[Any], NDArray[Any]]] = []

    def add(self, cookie: int, count: int, era: int = 0, callee: int = 0) -> None:
        """Count calls of one function in so many entries."""
        keys, values = np.zeros(count, self.key), np.zeros(count, self.value)
        keys["cookie"], keys["bucket"], values["calls"] = cookie, 400 + np.arange(count), CALLS // count
        if callee:
            keys["era"], keys["callees"][:, 0] = era, callee
            values["of"]["calls"][:, 0], values["of"]["ns"][:, 0] = CALLS // count, 1000 * CALLS // count
        self.rows.append((keys, values))

    def drain(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Take all entries out."""
        rows, self.rows = [(np.zeros(0, self.key), np.zeros(0, self.value)), *self.rows], []
        return np.concatenate([keys for keys, _ in rows]), np.concatenate([values for _, values in rows])


class Turns:
    """Functions timed over arrays."""

    def __init__(self, functions: int) -> None:
        self.limits, self.counters = np.zeros(MAX_SLOTS, SLOT), np.zeros(MAX_SLOTS, COUNTERS)
        self.histogram = np.zeros((MAX_SLOTS, BUCKETS), np.uint64)
        self.nests, self.samples = np.zeros(MAX_SLOTS, NEST), np.zeros(MAX_SLOTS, CALL_SAMPLE_PAGE)
        self.waits, self.inside = Rows(OFF_CPU, OFF_CPU_VALUE), Rows(INSIDE_KEY, INSIDE_VALUE)
        isolation = Isolation(self.nests)
        self.windows = Windows(
            self.histogram.reshape(-1),
            cast(Any, Rows(PATH_BUCKET, "<u8")),
            cast(Any, None),
            PRICES,
            isolation,
            CallReservoir(self.samples, random.Random(0)),
            InsideMeter(cast(Any, self.inside), self.counters, isolation, split=True),
            SlotRows(cast(Any, self.waits)),
            hits=HitWatch(self.counters),
        )
        self.activity = ActivityMeter(PRICES)
        self.functions = [self._timed(number) for number in range(functions)]
        self.took_s: dict[str, float] = {}
        self.cut = 0

    def _timed(self, number: int) -> TimedFunction:
        slot = Slot(number, self.limits, self.counters)
        function = Function(build_id="b", offset=number, name=f"f{number}", module="m", in_program=True)
        watch = Watch(function=function.key, kind=Kind.TIME, minimum_calls=200, window_calls=210)
        w = TimedFunction(function, cast(Any, SimpleNamespace(fd=0)), watch, slot, OpenCalls(slot, 10 * SECOND))
        w.place(0, stepped=False)
        w.choose("life")
        w.attachment.begin(number | 1 << 16)
        w.attachment.switch_on(1, 0)
        self.windows.begin(w, 1)
        self.activity.start(w)
        return w

    def call(self, w: TimedFunction, chance: np.random.Generator) -> None:
        """Have a function called as often as fills a window."""
        number, cookie = w.slot.number, w.attachment.cookies[0]
        for counter, by in (("hits", 2), ("calls", 1), ("timed", 1)):
            self.counters[counter][number] += by * CALLS
        durations = chance.lognormal(10, 0.3, CALLS)
        np.add.at(self.histogram[number], bucket_of(durations), np.uint64(1))
        self.samples["first"][number, :CALLS] = self.samples["kept"][number, :CALLS] = durations
        self.waits.add(cookie, 6)
        if number % 2:
            self.nests["inner"][number, 0] |= np.uint64(1)
            self.inside.add(cookie, 8, int(self.limits["era"][number]), self.functions[0].attachment.cookies[0])

    def turn(self, now_ns: int) -> None:
        """Do what a turn does at each function."""
        self._time("rows of the hashes", lambda: self.windows.drain(self.functions, now_ns))
        cut = self._time("windows", lambda: [self.windows.cut_if_due(w, now_ns) for w in self.functions])
        taken = [*zip(self.functions, cut, strict=True)]
        self._time("activity", lambda: [self.activity.take(w, now_ns, at_once=each) for w, each in taken])
        self.cut += sum(cut)
        self.windows._unnamed.clear()

    def _time(self, name: str, do: Callable[[], Any]) -> Any:
        begun = time.process_time()
        found = do()
        self.took_s[name] = self.took_s.get(name, 0.0) + time.process_time() - begun
        return found


def main() -> int:
    """Measure; 0 if every window was cut."""
    parser = argparse.ArgumentParser(description="What a turn of the loop costs ourselves.")
    parser.add_argument("--functions", type=int, default=60)
    parser.add_argument("--windows", type=int, default=2)
    parser.add_argument("--turns", type=int, default=300)
    options = parser.parse_args()
    turns, chosen, chance = Turns(options.functions), random.Random(0), np.random.default_rng(1)
    for number in range(1, options.turns + 1):
        for w in chosen.sample(turns.functions, options.windows):
            turns.call(w, chance)
        turns.turn(number * SECOND)
    rows = [(name, f"{took / options.turns * 1e6:.0f}") for name, took in turns.took_s.items()]
    print(f"{options.functions} functions, {options.windows} windows a turn, {turns.cut} in all")
    table(("part", "us a turn"), rows)
    return 0 if turns.cut == options.turns * options.windows else 1


if __name__ == "__main__":
    sys.exit(main())
