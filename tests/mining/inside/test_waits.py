"""Waits are divided by class, kind and place; what only passes them on to the kernel is no place."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from specmine.mining.inside.waits import waits_of
from specmine.model.buckets import bucket_of
from specmine.model.call_path import Frame
from specmine.model.histogram import Histogram
from specmine.model.inside.waits import Wait, WaitKind, Waits, Waker, pooled_waits

LOCK, SAVE = Frame("take_lock", "app"), Frame("save", "libstore.so.1")
WRAPPERS = (Frame("__lll_lock_wait", "libc.so.6"), Frame("pthread_mutex_lock", "libpthread-2.31.so"))
US, MS = 1_000, 1_000_000


def wait(kind: WaitKind, call: str, frames: tuple[Frame, ...], ended_ns: int, number: int, each_ns: int) -> Wait:
    """Return waits of one length that ended when their calls had taken so long."""
    at = bucket_of(np.array([ended_ns]))
    return Wait(
        kind=kind,
        call=call,
        frames=frames,
        waits=Histogram.from_pairs(at, [number]),
        blocked_ns=Histogram.from_pairs(at, [number * each_ns]),
    )


def known(fast: int, slow: int, *waits: Wait, end_ns: int = 0) -> Waits:
    """Return what was followed of so many calls of 50 us, and of 5 ms."""
    calls = Histogram.from_durations([50 * US] * fast + [5 * MS] * slow)
    return Waits(function="f", calls=calls, followed_ns=10**9, end_ns=end_ns, waits=waits)


def test_each_class_has_its_own_waits() -> None:
    """30 slow calls wait 4 ms for a lock and 1 ms for a file; 70 fast ones wait for nothing."""
    found = known(
        70,
        30,
        wait(WaitKind.FUTEX, "futex", (*WRAPPERS, LOCK), 4 * MS, 30, 4 * MS),
        wait(WaitKind.FILE, "fsync", (Frame("fsync", "libc.so.6"), SAVE), 5 * MS, 30, 1 * MS),
    )
    fast, slow = waits_of(found, (int(bucket_of(np.array([MS]))[0]),))
    assert (fast.calls, fast.parts) == (70, ())
    lock, file = slow.parts
    assert (lock.kind, lock.call, lock.place) == (WaitKind.FUTEX, "futex", LOCK)
    assert (file.place, file.frames[0].name) == (SAVE, "fsync")
    assert lock.share == pytest.approx(0.8)
    assert lock.mean_ns == pytest.approx(4 * MS)
    assert lock.waits == pytest.approx(1.0)
    assert slow.mean_ns == pytest.approx(5 * MS)
    (every,) = waits_of(found)
    assert every.mean_ns == pytest.approx(0.3 * 5 * MS)


def test_a_wait_without_another_function_is_the_functions_own() -> None:
    """Frames of the C library only: the function itself waits."""
    (only,) = waits_of(known(0, 1, wait(WaitKind.SLEEP, "nanosleep", WRAPPERS[:1], MS, 1, MS)))[0].parts
    assert only.place is None


def test_different_ways_into_the_kernel_are_one_place() -> None:
    """Two stacks through the C library to one function count together; another kind does not."""
    one = wait(WaitKind.FUTEX, "futex", (WRAPPERS[0], LOCK), MS, 1, MS)
    other = wait(WaitKind.FUTEX, "futex", (WRAPPERS[1], LOCK), MS, 3, MS)
    third = wait(WaitKind.FAULT, "", (LOCK,), MS, 1, MS)
    parts = waits_of(known(0, 5, one, other, third))[0].parts
    assert [(part.kind, round(part.share, 6)) for part in parts] == [(WaitKind.FUTEX, 0.8), (WaitKind.FAULT, 0.2)]
    assert parts[0].frames[0] == WRAPPERS[1]


def test_phases_add_up() -> None:
    """The same place in two phases is one; calls and times are sums."""
    first = known(10, 10, wait(WaitKind.FUTEX, "futex", (LOCK,), 4 * MS, 10, 4 * MS), end_ns=1)
    second = known(0, 20, wait(WaitKind.FUTEX, "futex", (LOCK,), 4 * MS, 20, 2 * MS), end_ns=2)
    both = pooled_waits([first, second])
    assert both is not None and pooled_waits([]) is None
    assert (both.calls.total, both.followed_ns, both.end_ns, len(both.waits)) == (40, 2 * 10**9, 2, 1)
    assert waits_of(both)[0].mean_ns == pytest.approx(80 * MS / 40)


def test_who_ended_waits_is_told_by_place_and_share() -> None:
    """Three quarters by a function of the program, a part by another program; few by one that is not told."""
    held = wait(WaitKind.FUTEX, "futex", (LOCK,), 4 * MS, 40, 1 * MS)
    at = int(bucket_of(np.array([4 * MS]))[0])

    def waker(number: int, *frames: Frame) -> Waker:
        return Waker(frames=frames, blocked_ns=Histogram.from_pairs([at], [number * MS]))

    other = Frame("rarely", "app")
    woken = replace(held, wakers=(waker(20, *WRAPPERS, SAVE), waker(10, SAVE, LOCK), waker(6), waker(3, other)))
    (part,) = waits_of(known(0, 40, woken))[0].parts
    assert [(each.place, each.share) for each in part.wakers] == [(SAVE, 0.75), (None, 0.15)]
    assert part.wakers[0].frames == (*WRAPPERS, SAVE)
    both = pooled_waits([known(0, 40, woken)] * 2)
    assert both is not None
    (again,) = waits_of(both)[0].parts
    assert again.wakers == part.wakers
    assert waits_of(known(0, 40, held))[0].parts[0].wakers == ()
