"""What a process and all its descendants use: CPU time by role, and memory where shared pages count once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from specmine.probes.process.proc import processes

ROLES = {
    b"specmine.daemon.worker.process": "worker",
    b"specmine.probes.holder": "holder",
    b"probes/holder": "holder",
    b"specmine.probes.elf.parser": "reader",
    b"probes/compiler": "compiling child",
}
"""What is in the command line of each process; any other descendant is a helper."""


@dataclass(slots=True)
class Costs:
    """What the processes of one run used."""

    cpu_s: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """By role."""
    proportional: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Most memory, MB, of each role: shared pages are divided among those that share them."""
    together: list[float] = field(default_factory=list)
    """MB of all processes, one number a look."""
    resident: list[float] = field(default_factory=list)
    by_time: list[tuple[float, float]] = field(default_factory=list)
    """(s since the start, CPU s so far)."""
    last: dict[tuple[int, int], float] = field(default_factory=dict)

    def look(self, pid: int, at_s: float, *, memory: bool) -> None:
        """Take in what all descendants of a process used until now."""
        together = resident = 0.0
        for each, ticks, role, cpu_s in family(pid):
            used = cpu_s - self.last.get((each, ticks), 0.0)
            self.last[each, ticks] = cpu_s
            self.cpu_s[role] += max(0.0, used)
            if memory:
                shared, whole = memory_of(each)
                self.proportional[role] = max(self.proportional[role], shared)
                together, resident = together + shared, resident + whole
        if memory:
            self.together.append(together)
            self.resident.append(resident)
        self.by_time.append((at_s, sum(self.cpu_s.values())))

    def most_of(self, seconds: float, since_s: float) -> float:
        """Return the largest share of one CPU over a stretch of this length that begins later than ``since_s``."""
        shares = [
            (used - before) / (at - start)
            for start, before in self.by_time
            for at, used in self.by_time
            if start >= since_s and at - start >= seconds
        ]
        return max(shares, default=float("nan"))


def family(pid: int) -> Iterator[tuple[int, int, str, float]]:
    """Yield (pid, start, role, CPU s) of a process and all its descendants."""
    everything = processes()
    members = {pid}
    while more := {each.pid for each in everything if each.parent in members} - members:
        members |= more
    for each in everything:
        if each.pid in members:
            yield each.pid, each.start_ticks, "main" if each.pid == pid else role_of(each.pid), each.cpu_ns / 1e9


def role_of(pid: int) -> str:
    """Return what a child is, by its command line."""
    try:
        line = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return "helper"
    return next((role for text, role in ROLES.items() if text in line), "helper")


def memory_of(pid: int) -> tuple[float, float]:
    """Return proportional and resident memory, MB; zeros for one that is gone."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0.0, 0.0
    values = {line.split(":")[0]: line.split()[1] for line in text.splitlines()[1:]}
    return int(values["Pss"]) / 1024, int(values["Rss"]) / 1024
