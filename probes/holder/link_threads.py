"""Threads that hold links in several file tables, so that the kernel closes them in parallel.

Closing a link takes 50 ms and is serial per file table. A killed process closes each table in the last thread that has
it. So 100 links close in 0.4 s from 16 tables, and in 5 s from one. Links are created in the main table and then sent
to the others: creating them there delayed the second probe of a function.

A descriptor means something else in each table. So only the threads of its table may close it, explicitly: the garbage
collector runs in any thread, and would close another link of the same number.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import os
import socket
import sys
import threading
from collections.abc import Callable, Collection
from queue import SimpleQueue

TABLES = 16
THREADS = 3
"""Threads of each table: so many of its links close at once."""
CLONE_FILES = 0x400
MOST_FDS = 64
"""Descriptors of one message; a link may have more: the CPU clock has two for each CPU."""
_STACK = 256 << 10
_STANDARD = (0, 1, 2)

libc = ctypes.CDLL(None, use_errno=True)

LinkFds = SimpleQueue[list[int]]
"""The descriptors of one link in its table, once they are there."""


class LinkThreads:
    """A file table with some of the links, and its threads."""

    def __init__(self, needed: Collection[int]) -> None:
        """Start with these fds of the process in the table, and the standard ones."""
        self._jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._sending, self._receiving = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._receive = threading.Lock()
        self._awaited: dict[int, tuple[LinkFds, int, list[int]]] = {}
        """Number of a link -> where its descriptors go, how many they are, those that came."""
        self._number = 0
        needed = frozenset((*_STANDARD, *needed, self._receiving.fileno()))
        threading.stack_size(_STACK)
        threading.Thread(target=self._begin, args=(needed,), daemon=True).start()

    def take(self, fds: list[int]) -> LinkFds:
        """Move fds from the process's table to this one."""
        link_fds: LinkFds = SimpleQueue()
        self._number += 1
        self._awaited[self._number] = link_fds, len(fds), []
        for at in range(0, len(fds), MOST_FDS):
            packed = array.array("i", fds[at : at + MOST_FDS])
            message = self._number.to_bytes(8, "little")
            self._sending.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, packed)])
            self._jobs.put(self._receive_one)
        for fd in fds:
            os.close(fd)
        return link_fds

    def close(self, link_fds: LinkFds, then: Callable[[], None]) -> threading.Event:
        """Close the fds of a link; return an event that is set once that and ``then`` are done."""
        done = threading.Event()

        def close_fds() -> None:
            try:
                for fd in link_fds.get():
                    os.close(fd)
                then()
            finally:
                done.set()

        self._jobs.put(close_fds)
        return done

    def _begin(self, needed: frozenset[int]) -> None:
        if libc.unshare(CLONE_FILES) == 0:  # else all share one table, which works as well, only slower at the end
            for fd in map(int, os.listdir("/proc/thread-self/fd")):
                if fd not in needed:
                    with contextlib.suppress(OSError):  # the listing's own
                        os.close(fd)
        for _ in range(THREADS - 1):
            threading.Thread(target=self._work, daemon=True).start()
        self._work()

    def _work(self) -> None:
        while True:
            try:
                self._jobs.get()()
            except Exception as error:  # the thread serves other links too
                sys.excepthook(type(error), error, error.__traceback__)

    def _receive_one(self) -> None:
        """Receive the next message, which need not be that of this job."""
        with self._receive:
            message, extra, _, _ = self._receiving.recvmsg(8, socket.CMSG_SPACE(4 * MOST_FDS))
            number = int.from_bytes(message, "little")
            link_fds, count, fds = self._awaited[number]
            for _, _, payload in extra:
                fds.extend(array.array("i", payload))
            if len(fds) == count:
                del self._awaited[number]
                link_fds.put(fds)
