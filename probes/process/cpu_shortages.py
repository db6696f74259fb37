"""What keeps the watched programs from CPU time: other threads, limits of control groups, the hypervisor."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from specmine.model.host.cpu_shortage import CpuLimit, CpuShortage

from .proc_files import PROC, read_proc
from .tracker import Member

CpuLimits = Callable[[int], Iterable[CpuLimit]]
"""The CPU limits above a process."""

LOOK_NS, LOOKS_SHARE, LONGEST_NS = 5_000_000_000, 0.0003, 60_000_000_000
"""From look to look; how much of a CPU these may take, and how far apart they may be: many threads are many files."""
MOST_PROCESSES, MOST_THREADS = 8, 32
"""So many of a program are looked at, of more some: processes with most CPU time, threads of all ages."""
LEAST_RAN_NS = 1_000_000
"""A program whose threads could run for less says nothing."""
LEAST_PERIODS = 5
STEAL, TICKS = 7, slice(0, 8)
"""The columns of ``/proc/stat``: time in guests is part of that of users."""


def no_limits(pid: int) -> tuple[CpuLimit, ...]:
    """Return nothing: limits are not looked for."""
    return ()


@dataclass(slots=True)
class _Seen:
    """The running totals of one program at the last look."""

    threads: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """(pid, tid) -> ns that it ran, and that it waited."""
    limits: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Group -> periods, and those in which it was stopped."""


class CpuShortages:
    """Looks from time to time."""

    def __init__(self, limits: CpuLimits = no_limits, proc: Path = PROC) -> None:
        """Look at nothing yet."""
        self._limits, self._proc = limits, proc
        self._seen: dict[str, _Seen] = {}
        self._ticks: tuple[int, int] | None = None
        """Those of all CPUs at the last look, and the stolen ones."""
        self._due_ns = 0

    def look(self, members: Iterable[Member], now_ns: int) -> tuple[CpuShortage, ...]:
        """Return what is known of each program since the last look; () if none is due.

        Of a program that is new nothing is: its running totals say only where to begin.
        """
        if now_ns < self._due_ns:
            return ()
        began_ns = time.thread_time_ns()
        processes = defaultdict[str, list[Member]](list)
        for member in members:
            processes[member.called].append(member)
        steal = self._steal()
        before, self._seen = self._seen, {name: self._seen.get(name, _Seen()) for name in processes}
        found = [self._of(name, each, steal) for name, each in sorted(processes.items())]
        took_ns = time.thread_time_ns() - began_ns
        self._due_ns = now_ns + min(LONGEST_NS, max(LOOK_NS, round(took_ns / LOOKS_SHARE)))
        return tuple(each for each in found if each.program in before)

    def _of(self, program: str, members: list[Member], steal: float) -> CpuShortage:
        seen = self._seen[program]
        chosen = sorted(members, key=lambda each: (-each.cpu_ns, each.pid))[:MOST_PROCESSES]
        threads = self._threads([each.pid for each in chosen])
        ran, waited = 0, 0
        for thread, (now_ran, now_waited) in threads.items():
            if thread in seen.threads:
                ran += now_ran - seen.threads[thread][0]
                waited += now_waited - seen.threads[thread][1]
        limits = {limit.group: limit for each in chosen for limit in self._limits(each.pid)}
        stopped = {group: _share_stopped(limit, seen.limits.get(group)) for group, limit in limits.items()}
        tightest = min(limits.values(), key=lambda limit: (-stopped[limit.group], limit.cpus), default=None)
        seen.threads = threads
        seen.limits = {limit.group: (limit.periods, limit.throttled) for limit in limits.values()}
        return CpuShortage(
            program=program,
            waiting=_part(waited, ran + waited) if ran + waited >= LEAST_RAN_NS else None,
            throttled=stopped[tightest.group] if tightest is not None else 0.0,
            limit_cpus=tightest.cpus if tightest is not None else 0.0,
            steal=steal,
        )

    def _threads(self, pids: list[int]) -> dict[tuple[int, int], tuple[int, int]]:
        """Return for how long threads ran, and waited for a CPU, as far as the kernel tells."""
        names = []
        for pid in pids:
            try:
                names += [(pid, int(tid)) for tid in os.listdir(f"{self._proc}/{pid}/task")]
            except OSError:
                continue  # it has ended
        names.sort()
        found = {}
        for pid, tid in names[:: -(-len(names) // MOST_THREADS) or 1]:
            try:
                ran, waited, _ = map(int, read_proc(f"{self._proc}/{pid}/task/{tid}/schedstat").split())
            except (OSError, ValueError):
                continue  # it has ended, or the kernel counts nothing
            found[pid, tid] = ran, waited
        return found

    def _steal(self) -> float:
        try:
            words = read_proc(f"{self._proc}/stat").split(b"\n", 1)[0].split()[1:]
            ticks = list(map(int, words[TICKS]))
        except (OSError, ValueError):
            return 0.0
        if len(ticks) <= STEAL:
            return 0.0
        before, self._ticks = self._ticks, (sum(ticks), ticks[STEAL])
        return 0.0 if before is None else _part(self._ticks[1] - before[1], self._ticks[0] - before[0])


def _share_stopped(limit: CpuLimit, before: tuple[int, int] | None) -> float:
    """Return the share of its periods since the last look in which a group was stopped."""
    if before is None or limit.periods - before[0] < LEAST_PERIODS:
        return 0.0
    return _part(limit.throttled - before[1], limit.periods - before[0])


def _part(part: int, whole: int) -> float:
    """Return a share in three digits: more of them mean nothing, and recordings keep each."""
    return round(min(1.0, max(0.0, part / whole)), 3) if whole > 0 else 0.0
