"""A wait's kind comes from the system call, or from the kind of its descriptor; its place from the stack."""

from __future__ import annotations

import stat

import pytest

from specmine.model.call_path import Frame
from specmine.model.function import Function
from specmine.model.inside.waits import WaitKind
from specmine.probes.arch.machine import machine
from specmine.probes.kernel.structs import NO_CALL
from specmine.probes.timing.wait_places import MOST_FRAMES, OBJECT_KNOWN, OBJECT_NAMELESS, kind_of, may_wake, place_of

NUMBERS = {call.name: number for number, call in machine().blocking_calls.items()}


def descriptor(mode: int) -> int:
    """Return what the kernel side says of an inode of this type."""
    return OBJECT_KNOWN | stat.S_IFMT(mode) >> 12


@pytest.mark.parametrize(
    ("call", "of", "kind"),
    [
        ("read", descriptor(stat.S_IFREG), WaitKind.FILE),
        ("read", descriptor(stat.S_IFBLK), WaitKind.FILE),
        ("read", descriptor(stat.S_IFIFO), WaitKind.PIPE),
        ("write", descriptor(stat.S_IFSOCK), WaitKind.SOCKET),
        ("read", descriptor(stat.S_IFREG) | OBJECT_NAMELESS, WaitKind.OTHER),  # an eventfd, from 6.16 on
        ("read", OBJECT_KNOWN, WaitKind.OTHER),  # the same before
        ("read", descriptor(stat.S_IFCHR), WaitKind.OTHER),
        ("read", 0, WaitKind.OTHER),
        ("futex", descriptor(stat.S_IFSOCK), WaitKind.FUTEX),  # its first argument is no descriptor
        ("epoll_wait", 0, WaitKind.POLL),
        ("clock_nanosleep", 0, WaitKind.SLEEP),
    ],
)
def test_kind(call: str, of: int, kind: WaitKind) -> None:
    """The kind is that of the call, or of its descriptor where the call may wait for anything."""
    assert kind_of(NUMBERS[call], of) == (kind, call)


def test_kind_without_a_known_call() -> None:
    """A page fault is no system call; a number that nobody listed is told as other."""
    assert kind_of(NO_CALL, 0) == (WaitKind.FAULT, "")
    assert kind_of(60_000, 0) == (WaitKind.OTHER, "")


@pytest.mark.parametrize(
    ("kind", "call", "waker", "may"),
    [
        (WaitKind.POLL, "epoll_wait", "write", True),
        (WaitKind.POLL, "epoll_wait", "kill", True),  # it sleeps until a signal comes
        (WaitKind.FUTEX, "futex", "futex", True),
        (WaitKind.FUTEX, "futex", "kill", False),
        (WaitKind.FILE, "fsync", "kill", False),
        (WaitKind.POLL, "epoll_wait", "fsync", False),  # an interrupt came while it synced
    ],
)
def test_who_may_end_a_wait(kind: WaitKind, call: str, waker: str, *, may: bool) -> None:
    """Who is in a system call that can end such a wait: of another one it is not known."""
    numbers = NUMBERS | {name: number for number, name in machine().signal_calls.items()}
    assert may_wake(kind, call, numbers[waker]) is may


def function(name: str) -> Function:
    """Return a function of the program."""
    return Function(build_id="b", offset=abs(hash(name)) % 10**6, name=name, module="app")


def test_place_lies_between_the_wait_and_the_outermost_call() -> None:
    """Frames outside of the function are left out; of a recursion all inner calls are part of it."""
    top, callee, main = function("top"), function("callee"), function("main")
    libc = Frame("read", "libc.so.6")
    stack: list[Function | Frame] = [libc, callee, top, top, main]
    frames, within = place_of(stack, top.key, {top.key, callee.key})
    assert [frame.name for frame in frames] == ["read", "callee", "top"]
    assert within == callee.frame
    assert place_of([libc, top, main], top.key, {top.key}) == ((libc,), None)
    deep = [libc] * 40
    assert len(place_of([*deep, top], top.key, set())[0]) == MOST_FRAMES
