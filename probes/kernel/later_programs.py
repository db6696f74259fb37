"""Programs that are loaded once they are needed: those that walk stacks take the verifier half of a second.

The first probes come sooner without them, above all on a busy host. A thread waits for the compiling child, so that the
loop does not.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor

from .compiling_child import Answer, answer
from .loader import Loaded

NICENESS = 10
"""Of the child, above the daemon's: what watches already goes before."""


class LaterPrograms:
    """The groups of programs that were left for later; each is loaded by a child of its own."""

    def __init__(self, loaded: Loaded, interpreter: str) -> None:
        """Load nothing yet."""
        self._requests, self._maps, self._interpreter = dict(loaded.later), loaded.maps, interpreter
        self._running: dict[str, Future[Answer]] = {}
        self._fds: list[int] = []
        self._given_up = threading.Event()
        self._pool = ThreadPoolExecutor(max(1, len(self._requests)), thread_name_prefix="loading")

    def awaited(self, group: str, *, niceness: int = NICENESS) -> bool:
        """Tell whether the programs of a group are not there yet, and have them loaded then."""
        if group not in self._requests:
            return False
        if group not in self._running:
            self._running[group] = self._pool.submit(
                answer,
                self._interpreter,
                self._requests[group],
                tuple(self._maps.values()),
                niceness=niceness,
                given_up=self._given_up,
            )
        return True

    def take(self) -> tuple[dict[str, int], list[str], int]:
        """Return the programs that came since the last call, as fds that stay ours, notes, and CPU time in ns.

        Raises
        ------
        SpecmineError
            If they cannot be loaded, as ``load`` does.
        """
        programs: dict[str, int] = {}
        notes: list[str] = []
        used_ns = 0
        for group, running in list(self._running.items()):
            if running.done():
                del self._running[group]
                came = running.result()
                del self._requests[group]
                programs |= came.programs
                notes += came.notes
                used_ns += round(came.cpu_seconds * 1e9)
        self._fds += programs.values()
        return programs, notes, used_ns

    def close(self) -> None:
        """End the children and close what came."""
        self._given_up.set()
        self._pool.shutdown(wait=True)
        for running in self._running.values():
            if running.exception() is None:
                self._fds += running.result().programs.values()
        self._running.clear()
        for fd in self._fds:
            os.close(fd)
        self._fds.clear()
