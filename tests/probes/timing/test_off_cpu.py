"""What a timed call did of its time, compared with what it asked for and with the kernel's account."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from specmine.model.buckets import BUCKET_MIDDLES, bucket_of
from specmine.model.histogram import Histogram
from specmine.model.inside.parts import ANYWHERE
from specmine.model.observation import Kind, Observation
from specmine.model.split import sum_of_splits, unbroken
from specmine.probes.kernel.structs import BLOCKED_CALL, OFF_CPU, OFF_CPU_VALUE
from specmine.probes.timing.off_cpu import blocked_calls, split_of
from tests.support.source_driver import Driver, driven, running
from tests.support.yielding import yielding

Programs = Callable[..., Path]


@contextmanager
def rivals(number: int, cpu: int) -> Iterator[None]:
    """Keep a CPU busy with so many tasks of our own session, of the priority of target programs."""
    with yielding():
        busy = [subprocess.Popen(["taskset", "-c", str(cpu), "sh", "-c", "while :; do :; done"]) for _ in range(number)]
    try:
        yield
    finally:
        for each in busy:
            each.kill()
            each.wait()


@dataclass(frozen=True)
class Parts:
    """What calls of a function did of their time; all in ns."""

    calls: int
    whole: float
    running: float
    waiting: int
    blocked: int
    least: float
    """What the first percentile of the calls ran, less the bias."""


def parts(observations: list[Observation]) -> Parts:
    """Add up the calls of some observations."""
    split = sum_of_splits([each.split for each in observations if each.split is not None])
    assert split is not None
    histogram = Histogram.sum(each.histogram for each in observations)
    bias_ns = max(each.bias_ns for each in observations)
    return Parts(
        calls=histogram.total,
        whole=histogram.time_ns(),
        running=split.on_cpu.time_ns(),
        waiting=split.waiting_ns.total,
        blocked=split.blocked_ns.total,
        least=float(BUCKET_MIDDLES[np.searchsorted(np.cumsum(split.on_cpu.dense), 0.01 * split.on_cpu.total)])
        - bias_ns,
    )


def delayed_ns(pid: int) -> int:
    """Return how long a process has waited for a CPU, by the kernel's account."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1])


def seen(driver: Driver, key: str) -> list[Observation]:
    """Return the observations of a function."""
    return [each for each in driver.observations if each.function == key]


@pytest.mark.kernel
@pytest.mark.parametrize(("kind", "busy"), [(Kind.TIME, 0), (Kind.PATH, 1)])
def test_calls_are_split_as_the_kernel_and_the_program_account(program: Programs, kind: Kind, busy: int) -> None:
    """The parts make up the whole; no call ran or slept less than it asked for, nor waited more than the kernel says.

    The bounds hold on any host: others only lengthen what a call runs, waits and sleeps.
    """
    cpu, names = max(os.sched_getaffinity(0)), ("work", "rest", "both")
    asked_ns = {"work": (1_000_000, 0), "rest": (0, 1_000_000), "both": (500_000, 500_000)}  # to run, to sleep
    with (
        running("taskset", "-c", cpu, program("splits"), 600) as child,
        rivals(busy, cpu),
        driven(child.pid, *names) as driver,
    ):
        keys = {name: driver.watch(name, kind, window_calls=150, window_ns=4 * 10**9) for name in names}
        driver.poll(lambda: all(len(seen(driver, key)) >= 8 for key in keys.values()), 120)
        delay_ns = delayed_ns(child.pid)
    found = {name: parts(seen(driver, key)) for name, key in keys.items()}
    for name, each in found.items():
        run_ns, slept_ns = asked_ns[name]
        assert each.running + each.waiting + each.blocked == pytest.approx(each.whole, rel=0.04), name
        assert each.least > 0.95 * run_ns - 10_000, name
        assert each.blocked >= 0.9 * slept_ns * each.calls, name
        if kind is Kind.PATH:
            own = sum_of_splits([p.split for o in seen(driver, keys[name]) for p in o.paths if p.split is not None])
            assert name == "work" or own is not None
            assert own is None or own.blocked_ns.total == each.blocked
    in_time = int(bucket_of(3_000_000))  # one that waits longer for a CPU sleeps for a small part of its time
    for name, part in (("work", 0), ("rest", 1), ("both", 1)):
        told = [each for one in seen(driver, keys[name]) for each in one.told_inside]
        calls = sum(each.calls.part(0, in_time).total for each in told)
        blocked = sum(each.calls.part(0, in_time).total for one in told for each in one.sets if each.blocked)
        assert blocked == pytest.approx(part * calls, abs=0.02 * calls), name
    # a page fault may let one call sleep for a tick of 10 ms or more: that is one window of eight
    asleep = [parts([one]).blocked / parts([one]).running for one in seen(driver, keys["work"])]
    assert np.median(asleep) < 0.01, "it never sleeps"
    assert sum(each.waiting for each in found.values()) <= delay_ns
    assert not busy or found["work"].waiting > 0, "a busy task wants the CPU as well"


def test_calls_that_were_blocked_for_much_of_their_time_are_told_apart() -> None:
    """The kernel marks them; the mark is no part of their time on CPU."""
    histogram = Histogram.from_pairs([100, 300], [7, 5])
    rows = np.empty(3, np.dtype([("key", OFF_CPU), ("value", OFF_CPU_VALUE)]))
    rows["key"] = np.array([(0, 1, 300, 100 | BLOCKED_CALL), (0, 1, 300, 90), (4, 1, 100, 80 | BLOCKED_CALL)], OFF_CPU)
    rows["value"] = np.array([(2, 1000, 50), (1, 10, 3), (1, 0, 40)], OFF_CPU_VALUE)
    (told,) = blocked_calls(histogram, rows)
    (blocked,) = told.sets
    assert (blocked.calls.pairs, blocked.blocked_ns.pairs) == ([[100, 1], [300, 2]], [[100, 40], [300, 50]])
    assert (blocked.blocked, blocked.callees, told.calls) == ((ANYWHERE,), (), histogram)
    assert (told.blocked_ns.total, told.waiting_ns.total, told.split) == (93, 1010, True)
    assert split_of(histogram, rows).on_cpu.pairs == [[80, 1], [90, 1], [100, 8], [300, 2]]
    rows["value"]["blocked"] = 0
    assert blocked_calls(histogram, rows) == ()


def test_calls_that_never_left_their_cpu_are_running() -> None:
    """What is not told to have left ran all the time; what left is moved from its duration to its time on CPU."""
    histogram = Histogram.from_pairs([100, 300], [7, 5])
    key = np.array([(0, 1, 300, 100), (0, 1, 300, 90)], OFF_CPU)
    value = np.array([(2, 1000, 50), (1, 10, 0)], OFF_CPU_VALUE)
    rows = np.empty(2, np.dtype([("key", OFF_CPU), ("value", OFF_CPU_VALUE)]))
    rows["key"], rows["value"] = key, value
    split = split_of(histogram, rows)
    assert split.on_cpu.pairs == [[90, 1], [100, 9], [300, 2]]
    assert (split.waiting_ns.pairs, split.blocked_ns.pairs) == ([[300, 1010]], [[300, 50]])
    assert unbroken(histogram).on_cpu == histogram
