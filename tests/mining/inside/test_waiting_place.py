"""Where calls wait: the innermost function that has nearly all of it, what it waits for, and who ended that."""

from __future__ import annotations

import pytest

from specmine.mining.inside.waiting_place import where_waited
from specmine.model.call_path import Frame
from specmine.model.histogram import Histogram
from specmine.model.inside.waits import Wait, WaitKind, Waits, Waker

AT = [500]
LIBC = Frame("syscall", "libc.so.6")


def frames(*names: str) -> tuple[Frame, ...]:
    """Return functions of the program, innermost first."""
    return tuple(Frame(name, "app") for name in names)


def wait(
    ns: int,
    *stack: Frame,
    kind: WaitKind = WaitKind.FUTEX,
    within: str = "",
    by: dict[tuple[Frame, ...], int] | None = None,
) -> Wait:
    """Return a wait under a stack."""
    return Wait(
        kind=kind, call=kind.value, frames=stack, within=Frame(within, "app") if within else None,
        waits=Histogram.from_pairs(AT, [1]), blocked_ns=Histogram.from_pairs(AT, [ns]),
        wakers=tuple(Waker(frames=who, blocked_ns=Histogram.from_pairs(AT, [ns])) for who, ns in (by or {}).items()),
    )  # fmt: skip


def waits(*each: Wait, calls: int = 10) -> Waits:
    """Return what was followed in some calls."""
    return Waits(
        function="f",
        calls=Histogram.from_pairs(AT[: min(calls, 1)], [calls][: min(calls, 1)]),
        followed_ns=1,
        end_ns=1,
        waits=each,
    )


def test_a_lock_and_the_disk_under_one_function_are_that_functions() -> None:
    """Sessions that commit wait for the one that syncs: 66 % for its lock, 34 % for the disk."""
    found = where_waited(
        waits(
            wait(660, LIBC, *frames("sem_lock", "acquire", "flush_log", "commit")),
            wait(340, LIBC, *frames("sync", "write_log", "flush_log", "commit"), kind=WaitKind.FILE),
        )
    )
    assert found is not None
    assert found.place == Frame("flush_log", "app")
    assert found.callers == frames("commit")
    assert found.share == 1.0
    assert found.mean_ns == pytest.approx(100)
    assert [(part.kind, part.place, part.share) for part in found.parts] == [
        (WaitKind.FUTEX, Frame("sem_lock", "app"), 0.66),
        (WaitKind.FILE, Frame("sync", "app"), 0.34),
    ]


def test_what_is_little_changes_nothing() -> None:
    """The innermost function is named where it has nine tenths; a place is one, whatever was timed around it."""
    found = where_waited(
        waits(
            wait(500, LIBC, *frames("sleep_on", "lock")),
            wait(420, LIBC, *frames("sleep_on", "lock"), within="lock"),
            wait(80, *frames("other", "lock"), kind=WaitKind.FILE),
        )
    )
    assert found is not None
    assert found.place == Frame("sleep_on", "app")
    assert found.share == pytest.approx(0.92)
    assert len(found.parts) == 1


def test_calls_that_wait_in_the_c_library_or_in_several_callees_wait_in_the_function_itself() -> None:
    """The C library passes a wait on; two callees have no more in common than their caller."""
    for each in (waits(wait(10, LIBC)), waits(wait(6, *frames("a")), wait(4, *frames("b")))):
        found = where_waited(each)
        assert found is not None
        assert found.place is None
        assert found.share == 1.0
        assert found.callers == ()


def test_who_ended_most_of_the_largest_part_is_named() -> None:
    """Not another program, nobody, or who ended a third of it; and not within the C library."""
    unlock = (LIBC, *frames("unlock", "run"))
    cases: list[tuple[dict[tuple[Frame, ...], int], str]] = [
        ({unlock: 6}, "unlock"),
        ({unlock: 3, (): 7}, ""),
        ({(): 10}, ""),
        ({}, ""),
    ]
    for by, name in cases:
        found = where_waited(waits(wait(10, *frames("lock"), by=by), wait(9, *frames("save"), kind=WaitKind.FILE)))
        assert found is not None
        assert found.waker == (Frame(name, "app") if name else None)


def test_nothing_is_said_of_no_wait() -> None:
    """No call, or none that waited."""
    assert where_waited(waits()) is None
    assert where_waited(waits(wait(0, LIBC))) is None
    assert where_waited(waits(wait(10, LIBC), calls=0)) is None
