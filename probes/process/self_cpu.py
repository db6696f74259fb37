"""What specmine's own processes cost."""

from __future__ import annotations

import resource
from collections.abc import Mapping, Sequence

from . import proc


class SelfCpu:
    """CPU time of our processes, also of those that have ended, and the memory of those that live."""

    def __init__(self) -> None:
        """Begin at nothing."""
        self.ns = 0
        self.resident: dict[str, int] = {}
        """Bytes of resident memory at the last look, by name."""
        self._last: dict[int, int] = {}
        self._ended_ns = 0

    def take_ended(self) -> None:
        """Add what the children have used that ended since the last call: those of the start, which nobody looks at."""
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        ended_ns = int((ended.ru_utime + ended.ru_stime) * 1e9)
        self.ns, self._ended_ns = self.ns + ended_ns - self._ended_ns, ended_ns

    def add(self, used_ns: int) -> None:
        """Add what a child has used that nobody looked at."""
        self.ns += used_ns

    def look(self, named: Mapping[str, Sequence[int]]) -> None:
        """Add what each used since the last look; processes by name."""
        used: dict[int, int] = {}
        self.resident = {}
        for name, pid in ((name, pid) for name, pids in named.items() for pid in pids):
            found = proc.process(pid)
            if found is not None:
                self.ns += max(0, found.cpu_ns - self._last.get(pid, 0))
                used[pid] = found.cpu_ns
                if found.resident_bytes:
                    self.resident[name] = self.resident.get(name, 0) + found.resident_bytes
        self._last = used
