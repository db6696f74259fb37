"""Processes as /proc shows them: identity, mappings, families."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from specmine.model.errors import HostError

PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")

FileId = tuple[int, int]
"""(device, inode) of a file: its identity while it is mapped, whatever its path says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process at one moment."""

    pid: int
    parent: int
    start_ticks: int
    cpu_ns: int
    """User and system time of all its threads, also of those that have ended."""
    name: str
    zombie: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Mapping:
    """One executable mapping of a process."""

    start: int
    end: int
    offset: int
    file: FileId
    path: str
    """As the kernel shows it; '' for memory without a file."""


def process(pid: int) -> Process | None:
    """Return the process, or None if there is none (any more)."""
    try:
        with open(f"{PROC}/{pid}/stat", "rb") as file:  # noqa: PTH123 (often called; a Path costs as much as the read)
            text = file.read().decode(errors="replace")
    except OSError:
        return None
    head, _, tail = text.rpartition(")")
    words = tail.split()
    return Process(
        pid=pid,
        parent=int(words[1]),
        start_ticks=int(words[19]),
        cpu_ns=(int(words[11]) + int(words[12])) * (1_000_000_000 // _TICKS),
        name=head.partition("(")[2],
        zombie=words[0] in ("Z", "X"),
    )


def processes() -> list[Process]:
    """Return all processes of this pid namespace, by pid."""
    found = (process(int(name)) for name in sorted(os.listdir(PROC), key=_number) if name.isdigit())
    return [p for p in found if p is not None]


def _number(name: str) -> int:
    return int(name) if name.isdigit() else -1


def executable(pid: int) -> FileId | None:
    """Return the identity of the file that the process executes; None for kernel threads and the dead."""
    try:
        status = os.stat(f"{PROC}/{pid}/exe")
    except OSError:
        return None
    return (status.st_dev, status.st_ino)


def executable_path(pid: int) -> str:
    """Return the path of the executable as the kernel shows it, '' if it cannot be read."""
    try:
        return str((PROC / str(pid) / "exe").readlink())
    except OSError:
        return ""


_LINE = re.compile(r"([0-9a-f]+)-([0-9a-f]+) ..(.). ([0-9a-f]+) ([0-9a-f]+):([0-9a-f]+) (\d+) *(.*)")


def executable_mappings(pid: int) -> list[Mapping]:
    """Return the executable mappings of a process by address; [] for the dead. PermissionError if not allowed."""
    try:
        text = (PROC / str(pid) / "maps").read_text(errors="surrogateescape")
    except (FileNotFoundError, ProcessLookupError):
        return []
    found = []
    for line in text.splitlines():
        if line[line.index(" ") + 3] != "x":
            continue
        match = _LINE.match(line)
        if match is None:
            continue
        start, end, _, offset, major, minor, inode, path = match.groups()
        device = os.makedev(int(major, 16), int(minor, 16))
        found.append(
            Mapping(
                start=int(start, 16),
                end=int(end, 16),
                offset=int(offset, 16),
                file=(device, int(inode)),
                path=path,
            )
        )
    return found


def open_mapped(pid: int, mapping: Mapping) -> int:
    """Open the very file that is mapped, also if it was deleted, replaced or lies in another mount namespace.

    Returns
    -------
    int
        An fd, the caller's to close. OSError if neither way works.
    """
    try:
        return os.open(f"/proc/{pid}/map_files/{mapping.start:x}-{mapping.end:x}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        fd = os.open(f"/proc/{pid}/root{mapping.path}", os.O_RDONLY | os.O_CLOEXEC)
    status = os.fstat(fd)
    if status.st_ino != mapping.file[1]:
        os.close(fd)
        raise FileNotFoundError(f"{mapping.path} is no longer the file that process {pid} maps")
    return fd


HOST_PID_NAMESPACE = "pid:[4026531836]"
"""The kernel gives the first pid namespace this fixed number."""


def pid_namespace(pid: int | str = "self") -> str:
    """Return the pid namespace of a process as the kernel names it, '' if that cannot be read."""
    try:
        return str((PROC / str(pid) / "ns/pid").readlink())
    except OSError:
        return ""


def check_own_namespace() -> None:
    """Refuse to work in a container's pid namespace (HostError): the kernel counts by the host's process ids.

    Processes in other namespaces are no trouble as long as we see them from the host's.
    """
    if pid_namespace() not in ("", HOST_PID_NAMESPACE):
        raise HostError(
            f"specmine runs in a pid namespace of its own ({pid_namespace()}), the kernel counts by the host's",
            remedy="run specmine in the host's pid namespace (docker: --pid=host; kubernetes: hostPID)",
        )


def boot_id() -> str:
    """Return the identity of this boot."""
    return (PROC / "sys/kernel/random/boot_id").read_text().strip()


def cgroups(pid: int) -> list[str]:
    """Return the cgroup paths of a process, one per hierarchy."""
    try:
        text = (PROC / str(pid) / "cgroup").read_text()
    except OSError:
        return []
    return [line.split(":", 2)[2] for line in text.splitlines() if line.count(":") >= 2]


def family(pid: int, everything: Iterable[Process]) -> list[int]:
    """Return the process and all its descendants that run the same executable, the process first."""
    file = executable(pid)
    children: dict[int, list[int]] = {}
    for p in everything:
        if not p.zombie:
            children.setdefault(p.parent, []).append(p.pid)
    members, waiting = [pid], [pid]
    while waiting:
        for child in children.get(waiting.pop(), []):
            if executable(child) == file:
                members.append(child)
                waiting.append(child)
    return members
