"""The only file of the daemon that reads a clock."""

from __future__ import annotations

import select
import time
from typing import Protocol


class Clock(Protocol):
    """Time as the loop sees it; a fake one jumps instead of sleeping."""

    def now_ns(self) -> int:
        """Return CLOCK_MONOTONIC in ns, the clock of the kernel's timestamps."""
        ...

    def sleep_until_ns(self, deadline_ns: int, wake: int = -1) -> None:
        """Return at the deadline, or as soon as the descriptor ``wake`` is readable (-1: none)."""
        ...


class SystemClock:
    """The clocks of this host."""

    def now_ns(self) -> int:
        """Return CLOCK_MONOTONIC in ns."""
        return time.monotonic_ns()

    def sleep_until_ns(self, deadline_ns: int, wake: int = -1) -> None:
        """Sleep until the deadline, or until the descriptor is readable; a past deadline returns at once."""
        rest_s = max(0.0, (deadline_ns - time.monotonic_ns()) * 1e-9)
        if wake < 0:
            time.sleep(rest_s)
        else:
            poll = select.poll()
            poll.register(wake, select.POLLIN)
            poll.poll(rest_s * 1e3)


def utc_ns() -> int:
    """Return the time of day, ns since 1970 in UTC."""
    return time.time_ns()


def age_ns() -> int:
    """Return CLOCK_BOOTTIME in ns: it goes on while the host sleeps, so ages are measured with it."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)
