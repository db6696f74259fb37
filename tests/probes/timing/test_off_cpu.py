"""What a timed call did of its time, held against the thread's own CPU clock."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from specmine.model.buckets import BUCKET_MIDDLES, BUCKETS
from specmine.model.observation import Kind, Observation
from specmine.model.split import added, split_or_unbroken
from specmine.probes.kernel.structs import ABSENCE, ABSENCE_VALUE
from specmine.probes.timing.off_cpu import split_of
from tests.support.source_driver import Driver, counts_of, driven, running

Programs = Callable[..., Path]


@contextmanager
def rivals(number: int, cpu: int) -> Iterator[None]:
    """Keep a CPU busy with so many tasks of our own session."""
    busy = [subprocess.Popen(["taskset", "-c", str(cpu), "sh", "-c", "while :; do :; done"]) for _ in range(number)]
    try:
        yield
    finally:
        for each in busy:
            each.kill()
            each.wait()


def parts(observations: list[Observation]) -> tuple[int, float, float, float, float]:
    """Return calls, the seconds they ran, waited and were blocked, and those that the middle one ran."""
    split = added([each.split for each in observations if each.split is not None])
    assert split is not None
    calls = sum(each.timed for each in observations)
    bias_ns = sum(each.bias_ns * each.timed for each in observations)
    running_ns = float(split.on_cpu @ BUCKET_MIDDLES) - bias_ns
    middle_ns = BUCKET_MIDDLES[np.searchsorted(np.cumsum(split.on_cpu), split.on_cpu.sum() / 2)] - bias_ns / calls
    waiting_ns, blocked_ns = int(split.waiting_ns.sum()), int(split.blocked_ns.sum())
    return calls, running_ns * 1e-9, waiting_ns * 1e-9, blocked_ns * 1e-9, float(middle_ns) * 1e-9


def seen(driver: Driver, key: str) -> list[Observation]:
    """Return the observations of a function."""
    return [each for each in driver.observations if each.function == key]


@pytest.mark.kernel
@pytest.mark.parametrize(("kind", "busy"), [(Kind.TIME, 0), (Kind.PATH, 1)])
def test_calls_are_split_as_the_threads_own_clock_says(program: Programs, kind: Kind, busy: int) -> None:
    """Time on CPU and off it agree with what the program measured of itself, alone and beside a busy task.

    Each function asks for the same time in each call, by a clock that stands still while the hypervisor runs somebody
    else: such a call is longer for us, so the middle one is compared, and the mean must not be shorter.
    """
    cpu, names = max(os.sched_getaffinity(0)), ("work", "rest", "both")
    with running("taskset", "-c", cpu, program("splits"), 90) as child, rivals(busy, cpu):
        with driven(child.pid, *names) as driver:
            keys = {name: driver.watch(name, kind, window_calls=150, window_ns=4 * 10**9) for name in names}
            driver.poll(lambda: all(len(seen(driver, key)) >= 6 for key in keys.values()), 60)
        truth = counts_of(child)
    for name, key in keys.items():
        calls, ran, waited, blocked, middle = parts(seen(driver, key))
        told = truth[name]
        assert isinstance(told, list)
        true_ran = told[2] / told[0]
        assert middle == pytest.approx(true_ran, rel=0.05, abs=10e-6), name
        assert ran / calls > 0.95 * true_ran - 10e-6, name
        if name == "work":
            assert blocked < 0.01 * ran, "it never sleeps"
            assert not busy or waited > 0.2 * ran, "a busy task wants the CPU as well"
        else:
            assert 0.3e-3 < blocked / calls < 1.5e-3, name
        if kind is Kind.PATH:
            own = added([p.split for o in seen(driver, key) for p in o.paths if p.split is not None])
            assert name == "work" or own is not None
            assert own is None or int(own.blocked_ns.sum()) == pytest.approx(blocked * 1e9, abs=1)


def test_calls_that_never_left_their_cpu_are_running() -> None:
    """What is not told to have left ran all the time; what left is moved from its duration to its time on CPU."""
    counts = np.zeros(BUCKETS, np.uint64)
    counts[[100, 300]] = 7, 5
    key = np.array([(0, 1, 300, 100), (0, 1, 300, 90)], ABSENCE)
    value = np.array([(2, 1000, 50), (1, 10, 0)], ABSENCE_VALUE)
    rows = np.empty(2, np.dtype([("key", ABSENCE), ("value", ABSENCE_VALUE)]))
    rows["key"], rows["value"] = key, value
    split = split_of(counts, rows)
    assert {int(b): int(split.on_cpu[b]) for b in np.flatnonzero(split.on_cpu)} == {90: 1, 100: 9, 300: 2}
    assert (int(split.waiting_ns[300]), int(split.blocked_ns[300])) == (1010, 50)
    assert int(split.waiting_ns.sum()) == 1010
    assert np.array_equal(split_or_unbroken(counts, None).on_cpu, counts)
