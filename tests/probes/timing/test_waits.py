"""The waits of a function's calls: followed in phases, told by kind and place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from specmine.model.batch import FollowWaits
from specmine.model.inside.waits import Wait, WaitKind, Waits
from specmine.model.observation import Kind
from tests.support.source_driver import driven, running

Programs = Callable[..., Path]

TRUTH = {
    "lock": (WaitKind.FUTEX, "futex", "take_lock"),
    "file": (WaitKind.FILE, "fsync", "save"),
    "pipe": (WaitKind.PIPE, "read", "receive"),
    "socket": (WaitKind.SOCKET, "read", "receive"),
    "sleep": (WaitKind.SLEEP, "clock_nanosleep", "nap"),
    "poll": (WaitKind.POLL, "poll", "watch_nothing"),
    "fault": (WaitKind.FAULT, "", "touch"),
}


def largest(told: Waits) -> Wait:
    """Return the place at which most time was waited."""
    return max(told.waits, key=lambda each: each.blocked_ns.total)


@pytest.mark.kernel
@pytest.mark.parametrize("mode", TRUTH)
def test_kind_and_place_are_those_of_the_program(program: Programs, mode: str, tmp_path: Path) -> None:
    """Each wait is told with the kind of what is waited for, the system call, and the function that waits."""
    kind, call, place = TRUTH[mode]
    told: list[Waits] = []
    with running(program("blocked"), mode, 600) as child, driven(child.pid, "top", sampling=True) as driver:
        key = driver.watch("top", Kind.TIME, window_calls=300, window_ns=10**10)
        driver.source.apply(FollowWaits(functions=(key,)))

        def heard() -> bool:
            told.extend(driver.last.waits)
            return bool(told)

        driver.poll(heard)
    found = largest(told[0])
    assert (found.kind, found.call) == (kind, call)
    assert place in [frame.name for frame in found.frames]
    assert found.within is None
    assert 0 < found.waits.total <= told[0].calls.total
