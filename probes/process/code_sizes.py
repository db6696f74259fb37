"""How much memory processes execute: a change tells that a library came or went, for 11 to 21 us a look."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

from .proc_files import PROC, read_proc

MOST_AT_ONCE = 64
"""Processes of which one question is answered; of more than that some are left out."""
_SIZES = re.compile(rb"^(?:VmExe|VmLib):\s+(\d+) kB$", re.MULTILINE)


class CodeSizes:
    """The size of each process's code when its mappings were read."""

    def __init__(self, most: int, root: Path = PROC) -> None:
        """Look at ``most`` processes in turn at once; ``root`` stands in for /proc in tests."""
        self._most, self._root = most, root
        self._sizes: dict[int, int] = {}
        self._doubted: set[int] = set()
        self._turn = 0

    def read(self, pid: int) -> None:
        """Note the size now; to be called before the mappings are read."""
        self._sizes[pid] = self._size(pid)

    def inherit(self, parent: int, child: int) -> None:
        """Take a forked child for what its parent was."""
        if parent in self._sizes:
            self._sizes[child] = self._sizes[parent]

    def forget(self, pid: int) -> None:
        """Forget a process that has ended."""
        self._sizes.pop(pid, None)

    def changed(self, pids: Collection[int]) -> list[int]:
        """Look at some of these processes; return those whose mappings are not what was read."""
        wanted, doubted = sorted(pids), self._doubted
        self._doubted = set()
        begin = self._turn % len(wanted) if len(wanted) > self._most else 0
        looked = (wanted[begin:] + wanted[:begin])[: self._most]
        self._turn = begin + len(looked)
        return [pid for pid in dict.fromkeys((*sorted(doubted), *looked)) if self._is_changed(pid)]

    def all_as_read(self, pids: Collection[int]) -> bool:
        """Tell whether the mappings of all these processes are what was read; the others are looked at next."""
        found = {pid for pid in sorted(pids)[:MOST_AT_ONCE] if self._is_changed(pid)}
        self._doubted |= found
        return not found

    def _is_changed(self, pid: int) -> bool:
        known = self._sizes.get(pid)
        return known is not None and known != self._size(pid)

    def _size(self, pid: int) -> int:
        """Return the executable memory of a process, kB; 0 for the dead."""
        try:
            return sum(map(int, _SIZES.findall(read_proc(f"{self._root}/{pid}/status"))))
        except OSError:
            return 0
