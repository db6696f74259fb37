"""What one of our own processes does: stopped or not, CPU time used. Standard library only, for all who have one."""

from __future__ import annotations

import os

_TICKS = os.sysconf("SC_CLK_TCK")


def is_stopped(pid: int) -> bool:
    """Tell whether a process is stopped, by a signal or a debugger."""
    return _fields(pid)[:1] in ([b"T"], [b"t"])


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process has used, user and system; 0 of one that is gone."""
    used = _fields(pid)[11:13]
    return sum(map(int, used)) / _TICKS


def _fields(pid: int) -> list[bytes]:
    """Return what /proc tells of a process from its state on; nothing if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 (often called)
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []
