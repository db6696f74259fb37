"""What /proc says of a process that bears on probing it: a debugger, a shadow stack, seccomp, huge pages under code.

Reading and parsing are apart, so that situations which a machine cannot make are tested with recorded files.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from specmine.probes.arch.machine import machine

from .mappings import FileId, parse_mapping
from .proc_files import PROC, proc_lines, read_proc

FRESH_NS = 500_000_000
"""A look at a process holds for so long: a debugger may come at any time."""
LOOKS_AT_ONCE = 16
"""Processes looked at again in one go, the longest ago first; what was seen of others stands a little longer."""

_HUGE = re.compile(rb"(?:AnonHugePages|ShmemPmdMapped|FilePmdMapped):\s+0*[1-9]\d* kB")


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One process at one moment."""

    tracer: int = 0
    """Process that traces it (gdb, strace), 0 if none."""
    tracer_name: str = ""
    seccomp: int = 0
    """0 off, 1 strict, 2 a filter."""
    shadow_stack: bool = False
    huge: frozenset[FileId] = field(default_factory=frozenset)
    """Files with code on huge pages here."""
    writable: frozenset[FileId] = field(default_factory=frozenset)
    """Files with code that the process may write to."""

    @property
    def troubled(self) -> bool:
        """True if anything here may bar probes of every kind."""
        return bool(self.tracer or self.huge or self.writable)


def parse_status(status: bytes) -> Condition:
    """Return what ``/proc/PID/status`` tells; fields that a kernel does not have count as off."""
    return Condition(
        tracer=_number(_field(status, b"TracerPid")),
        seccomp=_number(_field(status, b"Seccomp")),
        shadow_stack=b"shstk" in _field(status, machine().thread_features.encode()).split(),
    )


def _field(status: bytes, name: bytes) -> bytes:
    """Return what a line says, b'' without one; to cut all sixty lines takes longer than to read them."""
    begin = b"\n" + name + b":"
    _, found, rest = (b"\n" + status).partition(begin)
    return rest.partition(b"\n")[0].strip() if found else b""


def _number(word: bytes) -> int:
    return int(word) if word.isdigit() else 0


def writable_code(maps: bytes) -> frozenset[FileId]:
    """Return the files of which ``/proc/PID/maps`` shows memory that is both executed and written."""
    parsed = (parse_mapping(line, b"wx") for line in proc_lines(maps))
    return frozenset(each[1].file for each in parsed if each is not None and each[1].file[1])


def huge_code(smaps: bytes) -> frozenset[FileId]:
    """Return the files of which ``/proc/PID/smaps`` shows executable memory on huge pages."""
    found: set[FileId] = set()
    file: FileId | None = None
    for line in proc_lines(smaps):
        parsed = parse_mapping(line)
        if parsed is not None:
            file = parsed[1].file if b"x" in parsed[0] and parsed[1].file[1] else None
        elif file is not None and (_HUGE.fullmatch(line) or (line.startswith(b"VmFlags:") and b"ht" in line.split())):
            found.add(file)
    return frozenset(found)


def any_huge_code(meminfo: bytes) -> bool:
    """Tell from ``/proc/meminfo`` whether any file of this host may be mapped by huge pages."""
    sizes = re.findall(rb"^(?:ShmemPmdMapped|FilePmdMapped|Hugetlb):\s+(\d+)", meminfo, re.MULTILINE)
    return any(map(int, sizes)) or not sizes


class Conditions:
    """What is known of processes now; each is read again when its last look is no longer fresh."""

    def __init__(self, root: Path = PROC) -> None:
        """Know nothing yet; ``root`` stands in for /proc in tests."""
        self._root = root
        self._known: dict[int, tuple[int, Condition]] = {}
        self._now_ns = 0

    def look(self, pids: Iterable[int], now_ns: int) -> None:
        """Read again those that were last read too long ago, and forget all that are not named."""
        self._now_ns = now_ns
        wanted = set(pids)
        self._known = {pid: known for pid, known in self._known.items() if pid in wanted}
        stale = [p for p in wanted if p not in self._known or now_ns - self._known[p][0] >= FRESH_NS]
        stale.sort(key=lambda p: (self._known[p][0] if p in self._known else 0, p))
        for pid in stale[:LOOKS_AT_ONCE]:
            before = self._known.get(pid)
            self._known[pid] = (now_ns, self._read(pid, before[1] if before else None))

    def doubt(self, pid: int) -> None:
        """Take what is known of a process for no longer fresh."""
        if pid in self._known:
            self._known[pid] = (-FRESH_NS, self._known[pid][1])

    def of(self, pid: int) -> Condition:
        """Return the condition of a process as it was last seen, reading it if it was never looked at."""
        known = self._known.get(pid)
        if known is None:
            known = self._known[pid] = (self._now_ns, self._read(pid, None))
        return known[1]

    def _read(self, pid: int, before: Condition | None) -> Condition:
        now = parse_status(self._text(f"{pid}/status"))
        if before is None:  # dear to read, and what a program does at its start if ever
            maps = self._text(f"{pid}/maps")
            huge = any_huge_code(self._text("meminfo")) or b"/hugepages" in maps
            huge_files = huge_code(self._text(f"{pid}/smaps")) if huge else frozenset()
            writable = writable_code(maps)
        else:
            huge_files, writable = before.huge, before.writable
        return Condition(
            tracer=now.tracer,
            tracer_name=self._text(f"{now.tracer}/comm").decode(errors="replace").strip() if now.tracer else "",
            seccomp=now.seccomp,
            shadow_stack=now.shadow_stack,
            huge=huge_files,
            writable=writable,
        )

    def _text(self, name: str) -> bytes:
        try:
            return read_proc(f"{self._root}/{name}")
        except OSError:
            return b""  # it has ended: nothing can be probed there either
