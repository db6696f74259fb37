"""A control group of a bench's own for running processes, of either version: a CPU limit, a weight."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

PERIOD_US = 100_000
MEASURED_S = 5.0
LEAST_CPUS = 0.01
"""The kernel takes no smaller limit."""
VERSION_1, VERSION_2 = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")
USUAL_WEIGHT, USUAL_SHARES = 100, 1024
"""What a group has by version 2 and 1 if nobody says more: a service as systemd starts it."""


class CpuGroup:
    """A control group of its own."""

    def __init__(self, name: str) -> None:
        """Choose the version that this host has."""
        self._old = VERSION_1.is_dir()
        self._group = (VERSION_1 if self._old else VERSION_2) / name

    def add(self, pid: int) -> None:
        """Take in a process and its children."""
        for each in _family(pid):
            (self._group / "cgroup.procs").write_text(str(each))

    def weigh(self, weight: int) -> None:
        """Give it a weight as of ``CPUWeight=``."""
        if self._old:
            (self._group / "cpu.shares").write_text(str(USUAL_SHARES * weight // USUAL_WEIGHT))
        else:
            (self._group / "cpu.weight").write_text(str(weight))

    def halve(self, pid: int) -> None:
        """Let a process and its children have half of the CPU time that they use now: a limit that must be felt."""
        before = sum(map(cpu_seconds, _family(pid)))
        time.sleep(MEASURED_S)
        used = sum(map(cpu_seconds, _family(pid))) - before
        self.limit(max(LEAST_CPUS, 0.5 * used / MEASURED_S))
        self.add(pid)

    def limit(self, cpus: float) -> None:
        """Let what is in it have so many CPUs."""
        quota = round(cpus * PERIOD_US)
        if self._old:
            (self._group / "cpu.cfs_quota_us").write_text(str(quota))
        else:
            (self._group / "cpu.max").write_text(f"{quota} {PERIOD_US}")

    def lift(self) -> None:
        """Let it have all again."""
        if self._old:
            (self._group / "cpu.cfs_quota_us").write_text("-1")
        else:
            (self._group / "cpu.max").write_text("max")

    def __enter__(self) -> Self:
        """Create it."""
        self._group.mkdir(exist_ok=True)
        return self

    def __exit__(self, *_: object) -> None:
        """Remove it, what is in it moved up."""
        for pid in (self._group / "cgroup.procs").read_text().split():
            with suppress(OSError):
                (self._group.parent / "cgroup.procs").write_text(pid)
        time.sleep(0.1)
        with suppress(OSError):
            self._group.rmdir()


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _family(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(one for child in children for one in _family(int(child)))]
