"""A program that could switch stacks is timed like any other until it does; what does so is noticed at once."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from specmine.model.buckets import BUCKET_EDGES
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind
from tests.support.source_driver import Driver, counts_of, driven, running

Programs = Callable[..., Path]


def counted(driver: Driver, key: str) -> dict[str, int]:
    """Return what the kernel counted at a function."""
    slot = driver.source.parts.registry.by_function[key].slot
    return {name: slot.count(name) for name in ("calls", "timed", "unlearnt", "dropped")}


@pytest.mark.kernel
def test_calls_through_pointers_are_timed_until_stacks_are_switched(program: Programs) -> None:
    """Before the first switch nearly all calls are timed, from it on none; no duration is anybody else's."""
    with running(program("contexts"), 600) as child, driven(child.pid, "work") as driver:
        key = driver.watch("work", Kind.TIME, window_calls=200)
        following = driver.source.parts.nonlocal_exits
        driver.poll(lambda: len(driver.observations) >= 4)
        before = counted(driver, key)
        driver.poll(lambda: counted(driver, key)["calls"] > before["calls"] + 500)
        after = counted(driver, key)
        assert after["timed"] - before["timed"] >= 0.98 * (after["calls"] - before["calls"])
        assert not following._switchers

        child.send_signal(signal.SIGUSR1)
        driver.poll(lambda: following._switchers == {child.pid})
        driver.poll(lambda: driver.source.parts.registry.by_function[key].ready)
        before = counted(driver, key)
        driver.poll(lambda: counted(driver, key)["calls"] > before["calls"] + 500)
        after = counted(driver, key)
        assert after["timed"] - before["timed"] <= 5
        assert after["unlearnt"] - before["unlearnt"] >= 490
        assert not following._processes[child.pid].links

        shortest = BUCKET_EDGES[Histogram.sum(each.histogram for each in driver.observations).buckets[0] + 1]
        assert shortest - driver.observations[-1].bias_ns > 0.9 * 20_000
        assert counts_of(child)["calls"]
        assert child.returncode == 0
