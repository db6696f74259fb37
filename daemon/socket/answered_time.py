"""CPU time that answers to requests from outside took, told to the controller, which counts it apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from specmine.daemon.controller.events import Answered

LEAST_NS = 1_000_000
"""Less than this is told later: each event is a line of a recording."""


class AnsweredTime:
    """What the servers of requests took so far, all together."""

    def __init__(self, servers: Iterable[Callable[[], float]]) -> None:
        """Take what returns the CPU seconds of each server since its start."""
        self._servers = tuple(servers)
        self._told_ns = 0

    def turn(self, now_ns: int) -> Answered | None:
        """Return what changed since the last turn that told something, None if hardly anything did."""
        cpu_ns = round(sum(each() for each in self._servers) * 1e9)
        if cpu_ns - self._told_ns < LEAST_NS:
            return None
        self._told_ns = cpu_ns
        return Answered(now_ns=now_ns, cpu_ns=cpu_ns)
