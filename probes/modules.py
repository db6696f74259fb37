"""The files that the watched processes execute: opened once, described by the reader, their unwind rows in the kernel.

A *layout* is one arrangement of modules in an address space; forked processes share it, and the kernel's stack walk
reads it. Layouts are never changed in place except to add unwind rows, so a path taken earlier can still be named.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from . import processes as proc
from .errors import SpecmineError
from .facts import BinaryFacts, RowTable
from .kernel import write_array
from .layout import LAYOUT, MAX_RANGES, RANGE_FRAMES, RANGE_JIT, RANGE_PROBE, RANGE_ROWS
from .loading import Loaded
from .processes import FileId, Mapping
from .reader import Reader

CALIBRATION_ROWS = 256
"""Rows and index entries at the end of the arrays that calibration uses."""
VDSO: FileId = (0, -1)
"""The kernel's own module, the same in every process."""


@dataclass(slots=True, eq=False)
class Module:
    """One mapped file."""

    file: FileId
    path: str
    fd: int
    """-1 if it could not be opened."""
    facts: BinaryFacts | None = None
    error: str = ""
    flags: int = 0
    """RANGE_ROWS or RANGE_FRAMES once that is known; 0 while its rows are on their way."""
    index: int = 0
    """Where its page index begins in the kernel's array."""
    settled: bool = False
    """Facts and rows have come, or never will."""

    @property
    def name(self) -> str:
        """Base name of the file as it was mapped."""
        return os.path.basename(self.path.removesuffix(" (deleted)")) or self.path


@dataclass(slots=True)
class Layout:
    """One arrangement of modules, sorted by address."""

    mappings: tuple[Mapping, ...]
    modules: tuple[Module | None, ...]
    """None: executable memory without a file."""
    starts: list[int] = field(default_factory=list)


class Modules:
    """All modules and layouts."""

    def __init__(
        self,
        reader: Reader,
        loaded: Loaded,
    ) -> None:
        """Write the kernel's arrays: rows, page index (one number per 8 bytes) and layouts."""
        self._reader, self._maps, self._entries = reader, loaded.maps, loaded.entries
        self._rows_used = self._index_used = 0
        self.lost = 0
        """Modules whose rows, and mappings and layouts that, did not fit."""
        self.by_file: dict[FileId, Module] = {}
        self.layouts: dict[int, Layout] = {}
        self._numbers: dict[tuple[Mapping, ...], int] = {}
        self._waiting: dict[int, Callable[[object], None]] = {}

    def ask(self, op: str, fd: int, then: Callable[[object], None], **arguments: object) -> None:
        """Send one request to the reader; ``then`` gets its answer, or the error, in a later ``collect``."""
        self._waiting[self._reader.request(op, fd, **arguments)] = then

    def collect(self) -> None:
        """Hand out the answers that have come."""
        for number, answer in self._reader.ready():
            then = self._waiting.pop(number, None)
            if then is not None:
                then(answer)

    @property
    def busy(self) -> bool:
        """True while answers are outstanding."""
        return bool(self._waiting)

    def layout_of(self, pid: int) -> int:
        """Return the number of the process's layout as it is now, making it if it is new; 0 for the dead."""
        mappings = tuple(m for m in proc.executable_mappings(pid) if m.path != "[vsyscall]")
        if not mappings:
            return 0
        known = self._numbers.get(mappings)
        if known is not None:
            return known
        number = len(self.layouts) + 1
        if number >= self._entries["layouts"] - 1 or len(mappings) > MAX_RANGES - 1:
            self.lost += 1
            if number >= self._entries["layouts"] - 1:
                return 0
            mappings = mappings[: MAX_RANGES - 1]
        modules = tuple(self._module(pid, m) for m in mappings)
        self.layouts[number] = Layout(mappings, modules, [m.start for m in mappings])
        self._numbers[mappings] = number
        self._write(number)
        return number

    def find(self, layout: int, address: int) -> tuple[Module, int] | None:
        """Return the module and the file offset of an address, None if it is in no file."""
        found = self.layouts.get(layout)
        if found is None:
            return None
        at = int(np.searchsorted(found.starts, address, side="right")) - 1
        if at < 0 or address >= found.mappings[at].end:
            return None
        module = found.modules[at]
        if module is None:
            return None
        return module, address - found.mappings[at].start + found.mappings[at].offset

    def _module(self, pid: int, mapping: Mapping) -> Module | None:
        if mapping.path == "[vdso]":
            return self._vdso(mapping)
        if not mapping.file[1]:
            return None
        module = self.by_file.get(mapping.file)
        if module is not None:
            return module
        try:
            fd = proc.open_mapped(pid, mapping)
        except OSError as error:
            module = Module(mapping.file, mapping.path, -1, error=str(error), settled=True)
        else:
            module = Module(mapping.file, mapping.path, fd)
            self._describe(module)
        self.by_file[mapping.file] = module
        return module

    def _vdso(self, mapping: Mapping) -> Module | None:
        module = self.by_file.get(VDSO)
        if module is None:
            own = next((m for m in proc.executable_mappings(os.getpid()) if m.path == "[vdso]"), None)
            if own is None:
                return None
            with Path("/proc/self/mem").open("rb") as memory:
                memory.seek(own.start)
                image = memory.read(own.end - own.start)
            fd = os.memfd_create("vdso", os.MFD_CLOEXEC)
            os.write(fd, image)
            module = self.by_file[VDSO] = Module(VDSO, mapping.path, fd)
            self._describe(module)
        return module

    def _describe(self, module: Module) -> None:
        def facts(answer: object) -> None:
            if isinstance(answer, BinaryFacts):
                module.facts = answer
                self.ask("rows", module.fd, rows)
            else:
                module.error, module.settled = str(answer), True

        def rows(answer: object) -> None:
            module.settled = True
            if isinstance(answer, RowTable) and len(answer.pc):
                self._load(module, answer)
            elif not isinstance(answer, SpecmineError):
                module.flags = RANGE_FRAMES
            for number, layout in self.layouts.items():
                if module in layout.modules:
                    self._write(number)

        self.ask("facts", module.fd, facts)

    def _load(self, module: Module, table: RowTable) -> None:
        """Put a module's rows and page index into the kernel's arrays."""
        rows, pages = len(table.pc), len(table.pages)
        if (
            self._rows_used + rows > self._entries["rows"] - CALIBRATION_ROWS
            or self._index_used + pages > self._entries["page_index"] - CALIBRATION_ROWS
        ):
            self.lost += 1
            return
        first, index = self._rows_used, self._index_used
        values = table.pc.astype(np.uint64) | table.info.astype(np.uint64) << np.uint64(32)
        write_array(self._maps["rows"], first, values)
        write_array(self._maps["page_index"], index, table.pages.astype(np.uint64) + np.uint64(first))
        self._rows_used += rows
        self._index_used += pages
        module.index, module.flags = index, RANGE_ROWS

    def _write(self, number: int) -> None:
        """Write one layout to the kernel; unused ranges begin at the end of memory, for the binary search."""
        layout = self.layouts[number]
        value = np.zeros((), LAYOUT)
        value["count"] = len(layout.mappings)
        value["ranges"]["start"] = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
        for i, (mapping, module) in enumerate(zip(layout.mappings, layout.modules, strict=True)):
            flags = _flags(mapping) if module is None else module.flags
            index = 0 if module is None else module.index
            # entry 0 stays empty: the search's position 0 stands for "below the first"
            value["ranges"][i + 1] = (mapping.start, mapping.end, mapping.offset, index, flags)
        value["ranges"][0] = (0, 0, 0, 0, 0)
        write_array(self._maps["layouts"], number, value.reshape(1))

    def close(self) -> None:
        """Close all files."""
        for module in self.by_file.values():
            if module.fd >= 0:
                os.close(module.fd)
                module.fd = -1


def _flags(mapping: Mapping) -> int:
    """Return what executable memory without a file is."""
    return RANGE_PROBE if mapping.path == "[uprobes]" else RANGE_JIT
