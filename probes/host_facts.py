"""What is said of this host, and where UTC lies on the clock of the kernel's events."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable

from .process import proc

NOTABLE_NS = 500_000_000
"""The clock was set, or the host was suspended, if the offset moved by more. Corrections in small steps move both
clocks."""
MOST_TRIES, CERTAIN_NS = 5, 1_000_000
"""The two clocks are read again while more time passes in between."""


def utc_offset_ns() -> int:
    """Return what to add to CLOCK_MONOTONIC to get UTC, ns."""
    taken: list[tuple[int, int]] = []
    while len(taken) < MOST_TRIES and (not taken or taken[-1][0] > CERTAIN_NS):
        before_ns, utc_ns, after_ns = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        taken.append((after_ns - before_ns, utc_ns - (before_ns + after_ns) // 2))
    return min(taken)[1]


class UtcOffset:
    """Where UTC lies on the clock of the kernel's events; it moves when the clock is set or the host was suspended."""

    def __init__(self, read_ns: Callable[[], int] = utc_offset_ns) -> None:
        """Read it for the first time."""
        self._read_ns = read_ns
        self.ns = read_ns()
        """As told last."""

    def changed(self) -> int | None:
        """Return it if it has moved since it was told last, ns."""
        now_ns = self._read_ns()
        if abs(now_ns - self.ns) < NOTABLE_NS:
            return None
        self.ns = now_ns
        return now_ns


def host_facts(link: str, utc_offset: UtcOffset) -> dict[str, str]:
    """Return what ``Started.host`` holds; ``link`` is the kind of link in use."""
    return {
        "hostname": platform.node(),
        "kernel": platform.release(),
        "boot_id": proc.boot_id(),
        "cpus": str(os.cpu_count() or 1),
        "link": link,
        "unwinder": "eh_frame",
        "utc_offset_ns": str(utc_offset.ns),
    }
