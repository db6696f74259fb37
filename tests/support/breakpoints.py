"""Which probes are in a program's memory: its executable pages compared with the files that they come from."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from specmine.probes.process.mappings import Mapping, executable_mappings, open_mapped

PAGE = os.sysconf("SC_PAGE_SIZE")
_PRESENT, _FROM_FILE = 1 << 63, 1 << 61


class Text:
    """The executable pages of a family of processes, open for looking at again and again."""

    def __init__(self, pids: Iterable[int]) -> None:
        """Open the memory of each process that is there."""
        self._processes: list[tuple[int, int, int, list[Mapping]]] = []
        self._files: dict[tuple[int, int], int] = {}
        for pid in pids:
            mappings = [m for m in executable_mappings(pid) if m.path.startswith("/")]
            try:
                for mapping in mappings:
                    if mapping.file not in self._files:
                        self._files[mapping.file] = open_mapped(pid, mapping)
                memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY)
            except OSError:
                continue  # it has ended
            self._processes.append((pid, memory, os.open(f"/proc/{pid}/pagemap", os.O_RDONLY), mappings))

    def changed(self) -> list[tuple[int, str, int]]:
        """Return (pid, path, file offset) of each byte that is not what the file says: a probe."""
        found = []
        for pid, memory, pages, mappings in self._processes:
            try:
                for mapping in mappings:
                    found += [(pid, mapping.path, at) for at in self._changed_in(memory, pages, mapping)]
            except (ProcessLookupError, OSError):
                continue  # it has ended, and its probes with it
        return found

    def _changed_in(self, memory: int, pages: int, mapping: Mapping) -> list[int]:
        count = (mapping.end - mapping.start) // PAGE
        flags = np.frombuffer(os.pread(pages, 8 * count, mapping.start // PAGE * 8), "<u8")
        copied = np.flatnonzero((flags & _PRESENT != 0) & (flags & _FROM_FILE == 0))  # a probe is written into a copy
        found: list[int] = []
        for page in copied.tolist():
            at = mapping.offset + page * PAGE
            here = np.frombuffer(os.pread(memory, PAGE, mapping.start + page * PAGE), "u1")
            there = np.frombuffer(os.pread(self._files[mapping.file], PAGE, at), "u1")
            found += (np.flatnonzero(here[: len(there)] != there) + at).tolist()
        return found

    def close(self) -> None:
        """Close all files."""
        for _, memory, pages, _ in self._processes:
            os.close(memory)
            os.close(pages)
        for fd in self._files.values():
            os.close(fd)
        self._processes, self._files = [], {}

    def __enter__(self) -> Text:
        """Return the text."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close all files."""
        self.close()


def family(pid: int) -> list[int]:
    """Return a process and all that descend from it."""
    found, waiting = [], [pid]
    while waiting:
        one = waiting.pop()
        found.append(one)
        for children in Path(f"/proc/{one}/task").glob("*/children"):
            try:
                waiting += map(int, children.read_text().split())
            except OSError:
                continue
    return found
