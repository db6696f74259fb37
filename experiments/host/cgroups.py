"""Where control groups of the CPU controller are, and which limit a process lives under."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

US = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchy:
    """The tree that holds the CPU controller."""

    version: Literal[1, 2]
    root: Path

    def group(self, path: str) -> Path:
        """Return the folder of a group's path as in ``/proc/PID/cgroup``."""
        return self.root / path.lstrip("/")


def parse_mounts(text: str) -> list[Hierarchy]:
    """Return the trees that can hold the CPU controller from ``/proc/self/mountinfo``, version 1 first."""
    found = []
    for line in text.split("\n"):
        left, _, right = line.partition(" - ")
        fields, kind = left.split(" "), right.split(" ")  # names hold any byte but these: the kernel escapes them
        if len(fields) < 5 or len(kind) < 3:
            continue
        root = Path(fields[4].replace("\\040", " "))
        if kind[0] == "cgroup" and "cpu" in kind[2].split(","):
            found.append(Hierarchy(version=1, root=root))
        elif kind[0] == "cgroup2":
            found.append(Hierarchy(version=2, root=root))
    return sorted(found, key=lambda each: each.version)


def parse_membership(text: str, version: int) -> str | None:
    """Return a process's group in the tree of the CPU controller from ``/proc/PID/cgroup``, None if it has none."""
    for line in text.split("\n"):
        number, controllers, path = [*line.split(":", 2), "", ""][:3]
        if (version == 2 and number == "0" and not controllers) or (version == 1 and "cpu" in controllers.split(",")):
            return path
    return None


def parse_limit(quota: str, period: str) -> tuple[int, int] | None:
    """Return (quota, period) in ns from microseconds as text; None without a limit."""
    if quota.strip() in ("max", "-1", ""):
        return None
    return int(quota) * US, int(period) * US


def hierarchy(proc: Path = Path("/proc")) -> Hierarchy | None:
    """Return the tree that holds the CPU controller, None if none is mounted."""
    for each in parse_mounts(_text(proc / "self" / "mountinfo")):
        if each.version == 1 or "cpu" in _text(each.root / "cgroup.controllers").split():
            return each
    return None


def group_of(pid: int | str, tree: Hierarchy, proc: Path = Path("/proc")) -> Path | None:
    """Return the folder of a process's group, None if it is unknown."""
    path = parse_membership(_text(proc / str(pid) / "cgroup"), tree.version)
    return None if path is None or ".." in PurePosixPath(path).parts else tree.group(path)


def limit_of(pid: int | str, tree: Hierarchy | None) -> tuple[int, int] | None:
    """Return the tightest CPU limit above a process, (quota, period) in ns; None if it has none."""
    return min(limits_of(pid, tree).values(), key=lambda limit: limit[0] / limit[1], default=None)


def limits_of(pid: int | str, tree: Hierarchy | None) -> dict[Path, tuple[int, int]]:
    """Return the CPU limits above a process, (quota, period) in ns, by the folder of their group."""
    folder = group_of(pid, tree) if tree else None
    if tree is None or folder is None:
        return {}
    return {
        each: limit
        for each in (folder, *folder.parents)
        if each.is_relative_to(tree.root)
        if (limit := _limit(each, tree.version)) is not None
    }


def cpu_counts(folder: Path) -> dict[str, int]:
    """Return what a group's ``cpu.stat`` counts, by name; {} if there is none."""
    words = _text(folder / "cpu.stat").split()
    return dict(zip(words[::2], map(int, words[1::2]), strict=True))


def _limit(folder: Path, version: int) -> tuple[int, int] | None:
    if version == 1:
        return parse_limit(_text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us"))
    words = _text(folder / "cpu.max").split()
    return parse_limit(words[0], words[1]) if len(words) == 2 else None


def _text(path: Path) -> str:
    try:
        return os.fsdecode(path.read_bytes())
    except OSError:
        return ""
