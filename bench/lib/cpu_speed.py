"""How fast a CPU was meanwhile: fixed pieces of work of several kinds, done on it sixty times a second."""

from __future__ import annotations

import mmap
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.lib.driver import TARGETS, built

KINDS = ("arithmetic", "first cache", "second cache", "branches", "system calls")
"""What targets/reference.c does."""
PRIORITY = 10
"""Real-time: a piece of work is not interrupted by the program that it is compared with."""


class Reference:
    """What the reference work on one CPU has taken so far."""

    def __init__(self, counters: mmap.mmap) -> None:
        self._counters = counters

    def read(self) -> NDArray[np.uint64]:
        """Return the rounds done, and the ns of CPU time that each kind took in all of them."""
        return np.frombuffer(self._counters[:], np.uint64)


def ns_a_round(before: NDArray[np.uint64], after: NDArray[np.uint64]) -> NDArray[np.float64] | None:
    """Return what a round of each kind took between two readings, ns; None if there was none."""
    passed = (after - before).astype(np.float64)
    return passed[1:] / passed[0] if passed[0] else None


@contextmanager
def referring(cpu: int, folder: Path) -> Iterator[Reference]:
    """Do the reference work on a CPU, about a hundredth of its time; needs root."""
    work, counters = built(folder, TARGETS / "reference.c"), folder / "reference-counters"
    counters.write_bytes(bytes(8 * (1 + len(KINDS))))
    child = subprocess.Popen(["taskset", "-c", str(cpu), work, counters], stdin=subprocess.PIPE)
    try:
        os.sched_setscheduler(child.pid, os.SCHED_FIFO, os.sched_param(PRIORITY))
        with counters.open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
            yield Reference(memory)
    finally:
        child.communicate()
