"""The control groups of a process, and which systemd unit it runs in."""

from __future__ import annotations

import os
from itertools import takewhile

from .proc_files import PROC, proc_lines, read_proc


def parse_control_groups(text: bytes) -> list[tuple[str, str]]:
    """Return (controllers, path) of each hierarchy from ``/proc/PID/cgroup``; the one of version 2 has none."""
    lines = [line.split(b":", 2) for line in proc_lines(text)]
    return [(os.fsdecode(words[1]), os.fsdecode(words[2])) for words in lines if len(words) == 3]


def control_groups(pid: int) -> list[tuple[str, str]]:
    """Return (controllers, path) of each hierarchy for a process; [] for the dead."""
    try:
        return parse_control_groups(read_proc(f"{PROC}/{pid}/cgroup"))
    except OSError:
        return []


def runs_in_unit(groups: list[tuple[str, str]], unit: str) -> bool:
    """Tell whether a process with these control groups runs in a unit of the host's systemd.

    Units lie in slices, and slices are never delegated. So the first group that is no slice is the host's unit. What
    lies below it is named by whoever it was delegated to: a container, or the systemd of a user. Units in
    ``user.slice`` are never meant.
    """
    return any(_is_below(path, unit) for controllers, path in groups if controllers in ("", "name=systemd"))


def _is_below(path: str, unit: str) -> bool:
    names = path.split("/")[1:]
    slices = list(takewhile(lambda name: name.endswith(".slice"), names))
    return "user.slice" not in slices and unit in (*slices, *names[len(slices) :][:1])
