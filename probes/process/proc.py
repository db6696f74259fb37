"""Processes as /proc shows them: identity and families."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from .mappings import FileId
from .proc_files import PROC, proc_lines, read_proc

_TICKS, _PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process at one moment."""

    pid: int
    parent: int
    start_ticks: int
    cpu_ns: int
    """User and system time of all its threads, also of those that have ended."""
    name: str
    resident_bytes: int = 0
    zombie: bool = False
    image: int = 0
    """Where its stack began when it executed its program: the next exec has another place; 0 if we may not know."""


def process(pid: int) -> Process | None:
    """Return the process, or None if there is none (any more)."""
    try:
        return parse_process(pid, read_proc(f"{PROC}/{pid}/stat"))
    except OSError:
        return None


def parse_process(pid: int, stat: bytes) -> Process | None:
    """Return the process that ``/proc/PID/stat`` describes, None if it does not."""
    head, _, tail = stat.rpartition(b")")  # its name may hold parentheses, what follows it none
    words = tail.split()
    try:
        return Process(
            pid=pid,
            parent=int(words[1]),
            start_ticks=int(words[19]),
            cpu_ns=(int(words[11]) + int(words[12])) * (1_000_000_000 // _TICKS),
            name=head.partition(b"(")[2].decode(errors="replace"),
            resident_bytes=int(words[21]) * _PAGE,
            zombie=words[0] in (b"Z", b"X"),
            image=int(words[25]),
        )
    except (IndexError, ValueError):
        return None


def newest() -> int:
    """Return the number of the process or thread that began last, 0 if that is not known."""
    try:
        return int(read_proc(f"{PROC}/loadavg").split()[4])
    except (OSError, IndexError, ValueError):
        return 0


def resident_bytes(pid: int) -> int:
    """Return the resident memory of a process, 0 if there is none (any more)."""
    try:
        return int(read_proc(f"{PROC}/{pid}/statm").split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0


def user(pid: int) -> int | None:
    """Return the real user of a process, who started it; None for the dead.

    Whoever runs a setuid program has its owner's rights there, and stays the real user.
    """
    try:
        lines = proc_lines(read_proc(f"{PROC}/{pid}/status"))
        return next((int(line.split()[1]) for line in lines if line.startswith(b"Uid:")), None)
    except (OSError, IndexError, ValueError):
        return None


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
        return os.readlink(f"{PROC}/{pid}/exe")
    except OSError:
        return ""


def runs_deleted(pid: int, path: str) -> bool:
    """Tell whether the process executes what lay at this path before it was deleted or replaced.

    The kernel's word for the path can be forged by who may mount: in a user namespace of their own users may, and in a
    container with another root its root may.
    """
    process = f"{PROC}/{pid}"
    try:
        if os.stat(f"{process}/exe").st_nlink or os.readlink(f"{process}/exe") != f"{path} (deleted)":
            return False
        users = os.readlink(f"{process}/ns/user") == os.readlink(f"{PROC}/self/ns/user")
        return users and os.path.samestat(os.stat(f"{process}/root"), os.stat("/"))
    except OSError:
        return False


_LONGEST_NAME = 15
"""Bytes of a name that the kernel keeps of what a process executed."""


def executed_name(pid: int, name: str) -> str:
    """Return the base name of what a process executed, '' if it cannot be read.

    A link counts, not its target: Debian's ``redis-server`` is a link to ``redis-check-rdb``. Of a script it is the
    interpreter. The memory of the process, which knows more, is not read: that may block for as long as it likes.

    Parameters
    ----------
    pid : int
    name : str
        What the kernel keeps, ``Process.name``: the name executed, unless the process has given itself another.
    """
    path = executable_path(pid).removesuffix(" (deleted)")
    folder, base = os.path.split(path)
    if not base or os.fsencode(base)[:_LONGEST_NAME] == os.fsencode(name) or "/" in name or name in ("", ".", ".."):
        return base
    return name if os.path.realpath(os.path.join(folder, name)) == path else base  # noqa: PTH118 (may hold any byte)


def boot_id() -> str:
    """Return the identity of this boot."""
    return (PROC / "sys/kernel/random/boot_id").read_text().strip()


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
