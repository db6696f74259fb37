"""Who else maps a probed file: a process that nobody chose must not pay for our probes."""

from __future__ import annotations

import time
from collections.abc import Container

from . import proc
from .mappings import FileId, executed_files

RESCAN_NS, LOOKS_SHARE = 30_000_000_000, 0.0001
"""How often all processes are looked at again at most, and how much of a CPU that may take: each look at a host of a
thousand takes tens of milliseconds, and those that execute something are looked at anyway."""

MOST_UNREAD = 1_000
"""Processes that are looked at together at the latest."""


class Bystanders:
    """The files that unwatched processes execute."""

    def __init__(self) -> None:
        """Know nothing; the first question looks at all processes."""
        self._maps: dict[int, frozenset[FileId]] = {}
        self._kinds: dict[frozenset[FileId], frozenset[FileId]] = {}
        """Each set of files once: most processes map the same ones, and thousands come and go between two looks."""
        self._scan_ns = 0
        self._hit: set[FileId] = set()
        self._unread: dict[int, None] = {}
        """Processes that executed something since the last question: most have ended when it comes."""
        self._mapped: set[FileId] | None = set()
        """All of ``_maps`` together; None: some were forgotten since."""

    def look_around(self, now_ns: int, watched: Container[int]) -> None:
        """Look at all processes again if the last look is old."""
        if self._maps and now_ns < self._scan_ns:
            return
        began_ns = time.thread_time_ns()
        self._mapped = None
        self._unread.clear()
        self._kinds.clear()
        self._maps = {p.pid: self._files(p.pid) for p in proc.processes() if p.pid not in watched and not p.zombie}
        self._scan_ns = now_ns + max(RESCAN_NS, round((time.thread_time_ns() - began_ns) / LOOKS_SHARE))

    def look_at(self, pid: int) -> None:
        """Look at one process that executed something, with the next question."""
        self._unread[pid] = None
        if len(self._unread) > MOST_UNREAD:
            self._read()

    def _read(self) -> None:
        unread, self._unread = self._unread, {}
        for pid in unread:
            files = self._files(pid)
            if pid in self._maps:
                self._mapped = None
            elif self._mapped is not None:
                self._mapped |= files  # programs come by the thousand, questions with each
            self._maps[pid] = files

    def chosen(self, pid: int) -> None:
        """Forget a process that is watched now."""
        self._unread.pop(pid, None)
        if self._maps.pop(pid, None) is not None:
            self._mapped = None

    def hit(self, file: FileId) -> None:
        """Remember that an unwatched process hit a probe in this file: never again for all."""
        self._hit.add(file)

    def share(self, file: FileId) -> bool:
        """Tell whether a process that nobody chose maps the file, as far as was seen."""
        self._read()
        if self._mapped is None:
            self._mapped = set().union(*self._maps.values())
        return file in self._hit or file in self._mapped

    def _files(self, pid: int) -> frozenset[FileId]:
        try:
            files = executed_files(pid)
        except OSError:
            files = frozenset()
        return self._kinds.setdefault(files, files)
