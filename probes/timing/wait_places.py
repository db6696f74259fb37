"""From what the kernel says of a wait to its kind and place."""

from __future__ import annotations

import stat
from collections.abc import Collection, Sequence

from specmine.model.call_path import Frame
from specmine.model.function import Function
from specmine.model.inside.waits import WaitKind
from specmine.probes.arch.machine import machine
from specmine.probes.kernel.structs import NO_CALL

OBJECT_KNOWN, OBJECT_NAMELESS = 32, 16
MOST_FRAMES = 12
"""Frames between a wait and its function that are told; of more the innermost."""
_TYPE_BITS = 12
_SENDS = frozenset({"write", "writev", "pwritev", "sendto", "sendmsg", "sendmmsg", "sendfile", "splice", "close"})
_WAKE = {
    WaitKind.FUTEX: frozenset({"futex", "futex_wait", "futex_waitv"}),
    WaitKind.SOCKET: _SENDS | {"connect", "accept", "accept4", "recvfrom", "recvmsg", "read"},
    WaitKind.PIPE: _SENDS | {"vmsplice", "tee", "read", "readv"},
    WaitKind.POLL: _SENDS | {"connect", "vmsplice", "tee"},
}
"""In which system calls a thread ends waits of a kind. In another one it was only interrupted: by a timer, a device."""
_WOKEN_BY_SIGNALS = frozenset({WaitKind.POLL, WaitKind.SLEEP, WaitKind.OTHER})
"""Programs let threads sleep in these until a signal comes."""
_OBJECTS = {
    stat.S_IFREG: WaitKind.FILE,
    stat.S_IFDIR: WaitKind.FILE,
    stat.S_IFBLK: WaitKind.FILE,
    stat.S_IFSOCK: WaitKind.SOCKET,
    stat.S_IFIFO: WaitKind.PIPE,
}


def kind_of(call: int, descriptor: int) -> tuple[WaitKind, str]:
    """Return what a thread waited for, and the name of the system call.

    Parameters
    ----------
    call : int
        Number of the system call, ``NO_CALL`` without one.
    descriptor : int
        Kind of the object of the descriptor in its first argument, as the kernel side writes it; 0: not known.
    """
    if call == NO_CALL:
        return WaitKind.FAULT, ""
    known = machine().blocking_calls.get(call)
    if known is None:
        return WaitKind.OTHER, ""
    if known.kind:
        return WaitKind(known.kind), known.name
    if not descriptor & OBJECT_KNOWN or descriptor & OBJECT_NAMELESS:
        return WaitKind.OTHER, known.name
    return _OBJECTS.get((descriptor & 15) << _TYPE_BITS, WaitKind.OTHER), known.name


def may_wake(kind: WaitKind, call: str, waker_call: int) -> bool:
    """Tell whether a thread in a system call ends such waits by it.

    Parameters
    ----------
    kind : WaitKind
        What was waited for.
    call : str
        The system call that waited.
    waker_call : int
        Number of the one in which the waker was, ``NO_CALL`` without one.
    """
    if waker_call in machine().signal_calls:
        return kind in _WOKEN_BY_SIGNALS
    known = machine().blocking_calls.get(waker_call)
    if known is None:
        return False
    return known.name in _WAKE.get(kind, ()) or (kind is WaitKind.OTHER and bool(call) and known.name == call)


def place_of(
    stack: Sequence[Function | Frame], function: str, timed: Collection[str]
) -> tuple[tuple[Frame, ...], Frame | None]:
    """Return the frames between a wait and its function, innermost first, and the nearest timed function among them.

    Parameters
    ----------
    stack : sequence
        What stands on the stack, innermost first.
    function : str
        Key of the function.
    timed : collection of str
        Keys of the functions that are timed now.
    """
    places = [at for at, each in enumerate(stack) if isinstance(each, Function) and each.key == function]
    inner = stack[: places[-1]] if places else stack
    within = next((each.frame for each in inner if isinstance(each, Function) and each.key in timed), None)
    return frames_of(inner), within


def frames_of(stack: Sequence[Function | Frame]) -> tuple[Frame, ...]:
    """Return the innermost frames of a stack."""
    return tuple(each.frame if isinstance(each, Function) else each for each in stack[:MOST_FRAMES])
