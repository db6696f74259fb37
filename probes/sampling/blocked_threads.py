"""Where threads are blocked, by looks at all of them from outside: they pass no probe, and the program pays nothing.

A look is a snapshot, so what it finds goes by time, not by the number of waits: a lock that is held for a tenth of each
second is seen in each tenth look. Looks go on between the bursts of samples, so that they are far enough apart to be
independent; what they found stands for the burst that follows.

A look may hang while a process holds its memory map, as in a page fault from a dead disk. So a thread takes it.
"""

from __future__ import annotations

import math
import os
import queue
import random
import struct
import threading
import time
from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specmine.probes.kernel.maps import bpf
from specmine.probes.kernel.structs import BLOCKED_THREAD

from .sums import StackTime

APART_NS, LONGEST_NS = 500_000_000, 3_000_000_000
"""Looks are so far apart at least; each stands for the time since the one before, for so much at most."""
DELAY_S = 0.1
"""Up to so much later, at random: programs do things in step with clocks, and so do we."""
OWN_SHARE = 0.001
"""Of one CPU, for looks at most: those of a host with thousands of threads are further apart."""
MOST_THREADS = 128
"""Stacks walked in a look, on average; of more blocked threads some are drawn."""
MOST_SPAN_NS = 15_000_000_000
"""What was found longer ago is forgotten: samples may never pause."""
_FORGOTTEN_NS = 60_000_000_000
_LINK_CREATE, _ITERATOR_CREATE, _ITERATOR = 28, 33, 28
_READ = 1 << 16


@dataclass(slots=True)
class _Look:
    """What one look saw."""

    at_ns: int
    passed_ns: int
    """Since the one before: so long it stands for."""
    every: int
    """One blocked thread in so many was looked at."""
    waits: dict[int, list[float]]
    """By path, of each thread how often it began to be blocked since the look before."""
    is_told: bool = False


class BlockedThreads:
    """What looks found since the last burst of samples."""

    def __init__(self, program: int, settings: NDArray[np.void]) -> None:
        """Take no look yet. Raises OSError if the kernel cannot."""
        self._link = bpf(_LINK_CREATE, struct.pack("<IIIIQII", program, 0, _ITERATOR, 0, 0, 0, 0))
        self._settings = settings
        self._asked: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._came: queue.SimpleQueue[tuple[int, int, bytes | OSError]] = queue.SimpleQueue()
        self._looking = False
        self._due_ns = self._at_ns = 0
        self._every = 1
        self._sleeps: dict[int, tuple[int, int]] = {}
        """Of each thread, how often it had gone to sleep, and when that was seen."""
        self._looks: deque[_Look] = deque()
        settings["look_every"][0] = 1
        self._thread = threading.Thread(target=self._serve, name="blocked-threads", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Take no more looks; one that hangs ends with the process."""
        self._asked.put(False)
        self._thread.join(1.0)
        if not self._thread.is_alive():
            os.close(self._link)

    def poll(self, now_ns: int) -> None:
        """Take in what was found, and have the next look taken if it is due. Raises OSError if the kernel will not."""
        while not self._came.empty():
            at_ns, cost_ns, data = self._came.get()
            if isinstance(data, OSError):
                raise data
            self._looking = False
            self._due_ns = at_ns + max(APART_NS, round(cost_ns / OWN_SHARE))
            self.take(np.frombuffer(data, BLOCKED_THREAD), at_ns)
        if not self._looking and now_ns >= self._due_ns:
            self._looking = True
            self._asked.put(True)

    def take(self, rows: NDArray[np.void], at_ns: int) -> None:
        """Take in the blocked threads of one look."""
        passed_ns = min(at_ns - self._at_ns, LONGEST_NS) if self._at_ns else APART_NS
        self._at_ns = at_ns
        waits: dict[int, list[float]] = {}
        for path, sleeps, tid in zip(*(rows[name].tolist() for name in ("path", "sleeps", "tid")), strict=True):
            before, since_ns = self._sleeps.get(tid, (sleeps - 1, at_ns - passed_ns))
            self._sleeps[tid] = (sleeps, at_ns)
            if path:
                waits.setdefault(path, []).append((sleeps - before) * passed_ns / max(at_ns - since_ns, 1))
        self._looks.append(_Look(at_ns, passed_ns, self._every, waits))
        self._every = max(1, math.ceil(len(rows) * self._every / MOST_THREADS))
        self._settings["look_every"][0] = self._every
        if len(self._sleeps) > 2 * len(rows) * self._every:
            self._sleeps = {tid: of for tid, of in self._sleeps.items() if at_ns - of[1] < _FORGOTTEN_NS}

    def stacks(self, length_ns: int) -> list[StackTime]:
        """Return where threads are blocked, scaled to so long a time; each look is counted as one once."""
        while self._looks and self._at_ns - self._looks[0].at_ns > MOST_SPAN_NS:
            self._looks.popleft()
        part = length_ns / max(sum(look.passed_ns for look in self._looks), 1)
        found: dict[int, StackTime] = {}
        for number, look in enumerate(self._looks):
            for path, waits in look.waits.items():
                one = found.get(path) or StackTime(path, is_blocked=True, samples=0, ns=0.0)
                found[path] = one._replace(
                    samples=one.samples + (0 if look.is_told else look.every * len(waits)),
                    ns=one.ns + look.every * len(waits) * look.passed_ns * part,
                    waits=one.waits + look.every * sum(waits) * part,
                    looks=one.looks | (0 if look.is_told else 1 << number),
                )
            look.is_told = True
        return list(found.values())

    def forget(self) -> None:
        """Forget what was found: a burst is over."""
        self._looks.clear()

    def _serve(self) -> None:
        while self._asked.get():
            time.sleep(random.random() * DELAY_S)
            began_ns = time.thread_time_ns()
            data: bytes | OSError
            try:
                data = self.look()
            except OSError as error:
                data = error
            self._came.put((time.monotonic_ns(), time.thread_time_ns() - began_ns, data))

    def look(self) -> bytes:
        """Return the rows of one look. Raises OSError if the kernel will not."""
        iterator = bpf(_ITERATOR_CREATE, struct.pack("<II", self._link, 0))
        try:
            parts = []
            while data := os.read(iterator, _READ):
                parts.append(data)
        finally:
            os.close(iterator)
        return b"".join(parts)
