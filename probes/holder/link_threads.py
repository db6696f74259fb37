"""Threads that keep links, in several file tables, so that the kernel closes them side by side.

A link takes the kernel some 50 ms to close. A process that is killed closes its files one after the other, but each
table by the last thread that has it: a hundred links in sixteen tables are off after 0.4 s, in one after five. Links
are made in the process's own table, since the probes of a hot function must follow each other at once, and sent on.

A descriptor means something else in each table. So whatever owns one must be closed by hand and by the threads of its
table: the garbage collector runs in any thread, and would close somebody else's link of the same number.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import os
import socket
import threading
from collections.abc import Callable, Collection
from queue import SimpleQueue

KEEPERS = 16
HANDS = 3
"""Threads of each: as many links of it are closed at once."""
CLONE_FILES = 0x400
MOST_FDS = 64
"""Descriptors of one message; a link may have more: the CPU clock has two for each CPU."""
_STACK = 256 << 10
_STANDARD = (0, 1, 2)

libc = ctypes.CDLL(None, use_errno=True)

Kept = SimpleQueue[list[int]]
"""The descriptors of one link in the table of its keeper, once they are there."""


class Keeper:
    """A file table with some of the links, and the threads that have it."""

    def __init__(self, needed: Collection[int]) -> None:
        """Begin with these of the process's fds in the table, and the standard ones."""
        self._jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._sending, self._receiving = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._receive = threading.Lock()
        self._awaited: dict[int, tuple[Kept, int, list[int]]] = {}
        """Number of a link -> where its descriptors go, how many they are, those that came."""
        self._number = 0
        kept = frozenset((*_STANDARD, *needed, self._receiving.fileno()))
        threading.stack_size(_STACK)
        threading.Thread(target=self._begin, args=(kept,), daemon=True).start()

    def take(self, fds: list[int]) -> Kept:
        """Move fds from the process's table to this one."""
        kept: Kept = SimpleQueue()
        self._number += 1
        self._awaited[self._number] = kept, len(fds), []
        for at in range(0, len(fds), MOST_FDS):
            packed = array.array("i", fds[at : at + MOST_FDS])
            message = self._number.to_bytes(8, "little")
            self._sending.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, packed)])
            self._jobs.put(self._receive_one)
        for fd in fds:
            os.close(fd)
        return kept

    def close(self, kept: Kept, then: Callable[[], None]) -> threading.Event:
        """Close the fds of a link; return what is set once that and ``then`` are done."""
        done = threading.Event()

        def closing() -> None:
            try:
                for fd in kept.get():
                    os.close(fd)
                then()
            finally:
                done.set()

        self._jobs.put(closing)
        return done

    def _begin(self, kept: frozenset[int]) -> None:
        if libc.unshare(CLONE_FILES) == 0:  # else all share one table, which works as well, only slower at the end
            for fd in map(int, os.listdir("/proc/thread-self/fd")):
                if fd not in kept:
                    with contextlib.suppress(OSError):  # the listing's own
                        os.close(fd)
        for _ in range(HANDS - 1):
            threading.Thread(target=self._work, daemon=True).start()
        self._work()

    def _work(self) -> None:
        while True:
            self._jobs.get()()

    def _receive_one(self) -> None:
        """Receive a message: the next one, which need not be the one that this job was put for."""
        with self._receive:
            message, extra, _, _ = self._receiving.recvmsg(8, socket.CMSG_SPACE(4 * MOST_FDS))
            number = int.from_bytes(message, "little")
            kept, count, fds = self._awaited[number]
            for _, _, payload in extra:
                fds.extend(array.array("i", payload))
            if len(fds) == count:
                del self._awaited[number]
                kept.put(fds)
