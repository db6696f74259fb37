"""Breakpoints in the code of processes, as the memory shows them: whatever anybody says of probes.

A probe is written into a copy of its page. So only pages that a process has a copy of are compared with the file.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from specmine.probes.arch.machine import machine
from specmine.probes.process.mappings import Mapping, executable_mappings, open_mapped
from specmine.probes.process.proc import processes
from specmine.probes.process.proc_files import PROC

_PAGE = os.sysconf("SC_PAGE_SIZE")
_PRESENT, _FROM_FILE = 1 << 63, 1 << 61


def breakpoints_in(pid: int) -> int:
    """Count the bytes of a process's code that are a breakpoint where the file has something else; 0 for the dead.

    PermissionError if its memory may not be looked at. Code without a readable file is left out.
    """
    return sum(_in_mapping(pid, each) for each in executable_mappings(pid) if each.file[1])


def breakpoints_everywhere() -> tuple[dict[int, int], int]:
    """Return the processes that have breakpoints, with their number, and how many processes may not be looked at."""
    found: dict[int, int] = {}
    hidden = 0
    for each in processes():
        try:
            count = breakpoints_in(each.pid)
        except PermissionError:
            hidden += 1
            continue
        if count:
            found[each.pid] = count
    return found, hidden


class Remaining:
    """The breakpoints that are left in watched processes after all probes were asked to go."""

    def __init__(self, most: int = 32) -> None:
        """Look at ``most`` processes at once."""
        self._most = most
        self._waiting: list[int] | None = None
        self.count = -1
        """Seen at the last look; -1: not all processes were looked at."""

    def begin(self) -> None:
        """Look at everything again from now on."""
        self._waiting, self.count = None, -1

    def look(self, pids: Iterable[int]) -> int:
        """Look at the next processes until none has a breakpoint left; return ``count``."""
        if self._waiting is None:
            self._waiting = sorted(pids)
        looked, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
        left = 0
        for pid in looked:
            try:
                count = breakpoints_in(pid)
            except PermissionError:
                continue
            if count:
                self._waiting.append(pid)
                left += count
        self.count = left if left or not self._waiting else -1
        return self.count


def _in_mapping(pid: int, mapping: Mapping) -> int:
    copies = _copied_pages(pid, mapping)
    if not copies:
        return 0
    try:
        file = open_mapped(pid, mapping)
    except OSError:
        return 0
    try:
        memory = os.open(f"{PROC}/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return sum(_in_page(memory, file, mapping, page) for page in copies)
        finally:
            os.close(memory)
    except PermissionError:
        raise
    except OSError:
        return 0  # it has ended
    finally:
        os.close(file)


def _copied_pages(pid: int, mapping: Mapping) -> list[int]:
    """Return the pages of a mapping that are the process's own copies."""
    count = (mapping.end - mapping.start) // _PAGE
    try:
        with open(f"{PROC}/{pid}/pagemap", "rb", buffering=0) as pagemap:  # noqa: PTH123
            pagemap.seek(8 * (mapping.start // _PAGE))
            flags = memoryview(pagemap.read(8 * count)).cast("Q")
    except PermissionError:
        raise
    except OSError:
        return []
    return [page for page, each in enumerate(flags) if each & _PRESENT and not each & _FROM_FILE]


def _in_page(memory: int, file: int, mapping: Mapping, page: int) -> int:
    here = os.pread(memory, _PAGE, mapping.start + page * _PAGE)
    there = os.pread(file, _PAGE, mapping.offset + page * _PAGE)
    if here == there:
        return 0
    trap = machine().breakpoint[0]
    return sum(a == trap != b for a, b in zip(here, there, strict=False))
