"""The timing of functions over a kernel that exists only as arrays: links are made when a test says so."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from specmine.model.batch import Prices, Watch
from specmine.model.buckets import BUCKETS, bucket_of
from specmine.model.function import Function
from specmine.model.observation import Kind, Observation
from specmine.probes.kernel.structs import (
    COUNTERS,
    INSIDE_KEY,
    INSIDE_VALUE,
    MAX_SLOTS,
    NEST,
    SLOT,
)
from specmine.probes.timing.attacher import Attacher
from specmine.probes.timing.function.open_calls import OpenCalls
from specmine.probes.timing.function.slot import Slot
from specmine.probes.timing.function.timed_function import TimedFunction
from specmine.probes.timing.inside import InsideMeter
from specmine.probes.timing.isolation import Isolation
from specmine.probes.timing.link_table import LinkTable
from specmine.probes.timing.phases.duty_cycle import DutyCycle
from specmine.probes.timing.windows import Windows

MS, SECOND = 1_000_000, 1_000_000_000
PRICES = Prices(count_ns=700.0, time_ns=1300.0, path_ns=2300.0, stepped_ns=9000.0, sample_ns=5000.0, bias_ns=0.0)


class Rows:
    """A map of the kernel that tests fill."""

    key, value = INSIDE_KEY, INSIDE_VALUE

    def __init__(self) -> None:
        self.rows: list[tuple[Any, Any]] = []

    def drain(self) -> tuple[Any, Any]:
        """Take all entries out."""
        rows, self.rows = self.rows, []
        return np.array([key for key, _ in rows], self.key), np.array([value for _, value in rows], self.value)


class Holder:
    """Notes what it is asked for; nothing is made before a test says so."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        """Cookies, in the order in which links were asked for."""
        self.closed: list[int] = []
        self.companions: dict[int, list[int]] = {}

    def attach(
        self, file: int, offsets: list[int], cookies: list[int], kind: Kind, pid: int = 0, companions: Any = ()
    ) -> int:
        self.asked.append(cookies[0])
        self.companions[len(self.asked)] = list(companions)
        return len(self.asked)

    def close(self, number: int) -> None:
        self.closed.append(number)


class TimedProgram:
    """Functions with probes that come and go, and calls that a test has them make."""

    def __init__(self) -> None:
        self.now_ns = 100 * SECOND
        self.limits, self.counters = np.zeros(MAX_SLOTS, SLOT), np.zeros(MAX_SLOTS, COUNTERS)
        self.histogram = np.zeros(MAX_SLOTS * BUCKETS, np.uint64)
        self.nests, self.inside = np.zeros(MAX_SLOTS, NEST), Rows()
        self.holder, self.isolation = Holder(), Isolation(self.nests)
        self.windows = Windows(
            self.histogram,
            cast(Any, SimpleNamespace(drain=lambda: ([], []))),
            cast(Any, None),
            PRICES,
            self.isolation,
            cast(Any, SimpleNamespace(begin=lambda slot, timed: None, take=lambda *each: None)),
            InsideMeter(cast(Any, self.inside), self.counters, self.isolation, split=False),
        )
        links = LinkTable(cast(Any, self.holder), cast(Any, None), self.windows.leaving)
        gate = SimpleNamespace(
            mapped=lambda: [1], way=lambda kind, layouts: (False, None), changed=lambda *each: None, pids=lambda: [1]
        )
        choice = SimpleNamespace(pids=lambda w, begun, beside: [0], is_shared=lambda w: False)
        activity = SimpleNamespace(
            start=lambda w: None, write_costs=lambda w: None, burst_hits=lambda w: w.watch.burst_hits
        )
        sizes = SimpleNamespace(all_as_read=lambda pids: True)
        around: Any = (gate, choice, links, self.windows, activity, None, sizes)
        attacher = Attacher(*around)
        self.links = links
        self.duty = DutyCycle(attacher, cast(Any, choice), self.windows, self.isolation, random.Random(0))

    def watch(self, name: str, **how: Any) -> TimedFunction:
        """Have a function timed."""
        number = len(self.duty.functions)
        slot = Slot(number, self.limits, self.counters)
        function = Function(build_id="b", offset=number, name=name, module="m", in_program=True)
        watch = Watch(function=function.key, kind=Kind.TIME, **{"minimum_calls": 200, "window_calls": 210, **how})
        w = TimedFunction(function, cast(Any, SimpleNamespace(fd=0)), watch, slot, OpenCalls(slot, 10 * SECOND))
        w.place(0, stepped=False)
        self.duty.functions[function.key] = w
        return w

    def poll(self, later_ns: int = 300 * MS) -> list[Observation]:
        """Do what is due at each function after a while; return what is finished."""
        self.now_ns += later_ns
        self.windows.drain(self.duty.functions.values(), self.now_ns)
        for w in list(self.duty.functions.values()):
            self.windows.cut_if_due(w, self.now_ns)
            assert self.duty.poll(w, self.now_ns, off=False) is None
        return list(self.windows.finished(self.now_ns))

    def make(self, *functions: TimedFunction) -> None:
        """Have the holder report that the probes of these are on, in this order."""
        for w in functions:
            self.duty.made(w, self.now_ns - 100 * MS)

    def empty(self, w: TimedFunction) -> None:
        """Have the kernel find the bucket of a function empty."""
        self.counters["hits"][w.slot.number] = w.slot.limit + 1
        self.duty.limited(w, self.now_ns - 50 * MS, self.now_ns)

    def call(self, w: TimedFunction, calls: int, *callees: TimedFunction, nested_ns: int = 0) -> None:
        """Have a function called, and in each of its calls some callees once; all are timed that have probes."""
        timed = [each for each in callees if each.attachment.links]
        for each in (w, *timed):
            for counter, by in (("hits", 2), ("calls", 1), ("timed", 1)):
                self.counters[counter][each.slot.number] += by * calls
        self.counters["nested_ns"][w.slot.number] += calls * nested_ns
        bucket = int(bucket_of(50_000))
        self.histogram[w.slot.number * BUCKETS + bucket] += np.uint64(calls)
        for each in timed:
            self.histogram[each.slot.number * BUCKETS + int(bucket_of(10_000))] += np.uint64(calls)
            self.nests["inner"][w.slot.number, 0] |= np.uint64(1 << each.slot.number)
        key, value = np.zeros((), INSIDE_KEY), np.zeros((), INSIDE_VALUE)
        key["cookie"], key["bucket"], key["era"] = w.attachment.cookies[0], bucket, self.limits["era"][w.slot.number]
        value["calls"] = calls
        for place, each in enumerate(timed):
            key["callees"][place] = each.attachment.cookies[0]
            value["of"][place] = (10_000 * calls, 0, 0, calls)
        self.inside.rows.append((key, value))
