"""Threads that keep links, each in a file table of its own, so that the kernel closes them side by side.

A link takes the kernel some 50 ms to close. A process that is killed closes its files one after the other, but each
table by the thread that owns it: a hundred links in sixteen tables are off within half a second, in one after five.

A descriptor means something else in each table. So whatever owns one must be closed by hand and by the thread that made
it: the garbage collector runs in any thread, and would close somebody else's link of the same number.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from collections.abc import Callable, Collection
from queue import SimpleQueue

KEEPERS = 16
CLONE_FILES = 0x400
_STACK = 256 << 10
_STANDARD = (0, 1, 2)

libc = ctypes.CDLL(None, use_errno=True)


class Keeper:
    """A thread with some of the links, which only it and the threads that it starts can close."""

    def __init__(self, needed: Collection[int]) -> None:
        """Start it with these of the process's fds in its table, and the standard ones."""
        self._jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        threading.stack_size(_STACK)
        threading.Thread(target=self._work, args=(frozenset(needed),), daemon=True).start()

    def make(self, maker: Callable[[], list[int]]) -> list[int]:
        """Have fds made in this table; what ``maker`` raises is raised here."""
        made: SimpleQueue[list[int] | Exception] = SimpleQueue()

        def job() -> None:
            try:
                made.put(maker())
            except Exception as error:
                made.put(error)

        self._jobs.put(job)
        result = made.get()
        if isinstance(result, Exception):
            raise result
        return result

    def close(self, fds: list[int], then: Callable[[], None]) -> threading.Event:
        """Close fds in a thread of their own; return what is set once that and ``then`` are done."""
        done = threading.Event()

        def closing() -> None:
            try:
                for fd in fds:
                    os.close(fd)
                then()
            finally:
                done.set()

        self._jobs.put(lambda: threading.Thread(target=closing, daemon=True).start())
        return done

    def _work(self, needed: frozenset[int]) -> None:
        if libc.unshare(CLONE_FILES) == 0:  # else all share one table, which works as well, only slower at the end
            for fd in map(int, os.listdir("/proc/thread-self/fd")):
                if fd not in _STANDARD and fd not in needed:
                    with contextlib.suppress(OSError):  # the listing's own
                        os.close(fd)
        while True:
            self._jobs.get()()
