"""The C heap of the daemon: few holes in it, and what is free goes back to the host.

By default glibc gives threads heaps of their own, which never share what is free: each scrape is a thread, and so is
the writer of the store. Large blocks come to lie among small ones, since the limit from which they are mapped alone
grows with each one that is freed.
"""

from __future__ import annotations

import ctypes

TRIM_NS = 60_000_000_000
"""It takes less than a millisecond."""
_ARENA_MAX, _MMAP_THRESHOLD, _TRIM_THRESHOLD = -8, -3, -1
"""Numbers of mallopt(3)."""
_LARGE, _LEFT = 128 << 10, 512 << 10
"""Bytes of a block that is mapped alone, and that may stay free at the end of the heap."""


def settle_heap() -> None:
    """Have one heap for all threads, and large blocks outside of it; before threads start. Without glibc: nothing."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for what, value in ((_ARENA_MAX, 1), (_MMAP_THRESHOLD, _LARGE), (_TRIM_THRESHOLD, _LEFT)):
            mallopt(what, value)


class HeapTrim:
    """Gives what is free in the middle of the heap back, from time to time."""

    def __init__(self) -> None:
        """Wait for the first time."""
        self._trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        self._due_ns = 0

    def turn(self, now_ns: int) -> None:
        """Do it if it is due."""
        if self._trim is None or now_ns < self._due_ns:
            return
        if self._due_ns:
            self._trim(0)
        self._due_ns = now_ns + TRIM_NS
