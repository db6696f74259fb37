"""Looks at blocked threads give their shares of the time, whoever else is blocked, however many there are."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest

from specmine.model.batch import Sampling
from specmine.probes.kernel.structs import BLOCKED_THREAD, SETTINGS
from specmine.probes.sampling import blocked_threads
from specmine.probes.sampling.blocked_threads import MOST_SPAN_NS, MOST_THREADS, BlockedThreads
from tests.support.source_driver import Driver, counts_of, driven, running

SECOND = 1_000_000_000
LOCK, IDLE = 7, 9


def seen(*threads: tuple[int, int, int]) -> np.ndarray:
    """Return the rows of a look: path, how often it had gone to sleep, id of each blocked thread."""
    rows = np.zeros(len(threads), BLOCKED_THREAD)
    for at, (path, sleeps, tid) in enumerate(threads):
        rows[at] = (path, sleeps, tid, 0)
    return rows


@pytest.fixture
def settings() -> np.ndarray:
    """Return what the programs read."""
    return np.zeros(1, SETTINGS)


@pytest.fixture
def looks(settings: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> Iterator[BlockedThreads]:
    """Return what takes in looks; no kernel takes any."""
    monkeypatch.setattr(blocked_threads, "bpf", lambda command, attr: os.open(os.devnull, os.O_RDONLY))
    taken = BlockedThreads(0, settings)
    yield taken
    taken.close()


def each_second(looks: BlockedThreads, rows: Iterable[np.ndarray], since_s: int = 1) -> None:
    """Take in looks that are a second apart."""
    for at, one in enumerate(rows, since_s):
        looks.take(one, at * SECOND)


def test_time_goes_by_looks(looks: BlockedThreads) -> None:
    """A thread that each second look finds in a lock is in it for half of the time, of any burst."""
    rows = [seen((LOCK if at % 2 else IDLE, at * 10, 1)) for at in range(10)]
    each_second(looks, rows)
    found = {one.path: one for one in looks.stacks(2 * SECOND)}
    assert found[LOCK].ns + found[IDLE].ns == pytest.approx(2 * SECOND)
    assert found[LOCK].ns == pytest.approx(SECOND, rel=0.06)  # the first look stands for less
    assert (found[LOCK].samples, found[LOCK].looks.bit_count()) == (5, 5)
    assert found[LOCK].waits == pytest.approx(10, rel=0.06), "ten waits a second, half of them in the lock, for 2 s"


def test_a_look_is_counted_once_and_its_time_in_each_sum(looks: BlockedThreads) -> None:
    """A burst has several sums: all of them have the time, the first one the looks."""
    each_second(looks, [seen((LOCK, 1, 1))] * 4)
    first, second = looks.stacks(SECOND // 2)[0], looks.stacks(SECOND // 2)[0]
    assert first.ns == second.ns == pytest.approx(SECOND / 2)
    assert (first.samples, second.samples, second.looks) == (4, 0, 0)
    looks.forget()
    assert looks.stacks(SECOND) == []


def test_threads_in_one_look_are_one_look(looks: BlockedThreads) -> None:
    """Eight threads behind one lock, seen once, prove no more than one wait that lasted long."""
    each_second(looks, [seen(*((LOCK, 1, tid) for tid in range(8))), seen()])
    (one,) = looks.stacks(3 * SECOND // 2)
    assert (one.samples, one.looks.bit_count()) == (8, 1)
    assert one.ns == pytest.approx(8 * SECOND // 2)


def test_one_long_wait_is_no_wait_that_began(looks: BlockedThreads) -> None:
    """A main loop that sleeps all the time begins no wait; that is how it is told from a lock."""
    each_second(looks, [seen((IDLE, 5, 1), (LOCK, at * 1000, 2)) for at in range(6)])
    found = {one.path: one for one in looks.stacks(SECOND)}
    assert found[IDLE].waits < 0.5
    assert found[LOCK].waits == pytest.approx(1000, rel=0.2)


def test_what_is_old_is_forgotten(looks: BlockedThreads) -> None:
    """Where sampling never pauses, a lock of a minute ago has no time any more."""
    each_second(looks, [seen((LOCK, 1, 1))] * 20)
    each_second(looks, [seen((IDLE, 2, 1))] * (MOST_SPAN_NS // SECOND + 1), since_s=21)
    assert [one.path for one in looks.stacks(SECOND)] == [IDLE]


def test_of_many_threads_some_are_drawn_and_stand_for_all(looks: BlockedThreads, settings: np.ndarray) -> None:
    """A thousand blocked threads are not all walked; the time is still that of a thousand."""
    threads = np.arange(1000)
    chance = np.random.default_rng(3)
    sizes = []
    for at in range(1, 12):
        drawn = threads[chance.random(1000) < 1 / settings["look_every"][0]]
        sizes.append(len(drawn))
        looks.take(seen(*((LOCK, 1, int(tid)) for tid in drawn)), at * SECOND)
    assert sizes[0] == 1000
    assert max(sizes[2:]) < 1.5 * MOST_THREADS
    (one,) = looks.stacks(SECOND)
    assert one.ns == pytest.approx(1000 * SECOND, rel=0.15)


@pytest.mark.kernel
@pytest.mark.every_kernel
def test_shares_are_true(program: Callable[..., Path]) -> None:
    """Of a lock that is held for a third of the time, of who waits for it, and of a main that sleeps."""
    with running(program("lock_shares"), 600) as child:
        with driven(child.pid) as driver:
            driver.source.apply(Sampling(hertz=49))
            time_ns = _time_of(driver, 40.0)
            assert driver.source.parts.profiler.passes_ns() == (0.0, 0.0), "no thread passes a tracepoint"
        true = {name: float(str(threads)) for name, threads in counts_of(child).items()}
    total_ns = time_ns["main"]
    assert time_ns["holder"] == pytest.approx(total_ns, rel=0.1)
    assert time_ns["worker"] == pytest.approx(4 * total_ns, rel=0.1)
    # shares of some seventy looks, the first of which count most: four standard deviations of a third are 0.25
    assert time_ns["hold"] / total_ns == pytest.approx(true["hold"], abs=0.26)
    assert time_ns["take_lock"] / total_ns == pytest.approx(true["update"], abs=4 * 0.26)
    assert time_ns["take_lock"] == pytest.approx(time_ns["update"], rel=0.02), "but for samples of the CPU clock"


def _time_of(driver: Driver, seconds: float) -> dict[str, float]:
    """Return the time found of each function by name, on CPU and blocked."""
    until = time.monotonic() + seconds
    driver.poll(lambda: time.monotonic() > until, limit_s=2 * seconds)
    found: dict[str, float] = defaultdict(float)
    for sample in driver.hot_samples:
        found[driver.functions[sample.function].name] += sample.inclusive_ns
    return found
