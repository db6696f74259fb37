"""The files that the watched processes execute: opened once, described by the reader, their unwind rows in the kernel.

A *layout* is one arrangement of modules in an address space; forked processes share it, and the kernel's stack walk
reads it. Layouts are never changed in place except to add unwind rows, so a path taken earlier can still be named.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from specmine.model.errors import SpecmineError
from specmine.probes.elf.client import Reader
from specmine.probes.elf.debug_files import debuginfod_folders, open_debug_file
from specmine.probes.elf.facts import BinaryFacts, RowTable
from specmine.probes.kernel.loader import Loaded
from specmine.probes.kernel.maps import write_array
from specmine.probes.kernel.structs import LAYOUT, MAX_RANGES, RANGE_FRAMES, RANGE_JIT, RANGE_PROBE, RANGE_ROWS
from specmine.probes.process.mappings import FileId, Mapping, executable_mappings, open_mapped
from specmine.probes.process.proc_files import path_as_text

from .unwind_cache import RowCache
from .unwind_space import Space

CALIBRATION_ROWS = 256
"""Rows and index entries at the end of the arrays that calibration uses."""
IDLE_NS = 10_000_000_000
"""Rows of a module that no path of the last seconds went through may make room."""
REST_NS = 10_000_000_000
"""How long a layout stays after its last process has ended: paths through it are named in the meantime."""
MOST_FILES = 192
"""Open files, one or two a module, beyond which those are closed that no process maps any more."""
VDSO: FileId = (0, -1)
"""The kernel's own module, the same in every process."""


@dataclass(slots=True, eq=False)
class Module:
    """One mapped file."""

    file: FileId
    path: str
    fd: int
    """-1 if it could not be opened."""
    debug: int = -1
    """Its separate debug file, -1 if none was found."""
    facts: BinaryFacts | None = None
    error: str = ""
    flags: int = 0
    """RANGE_ROWS or RANGE_FRAMES once that is known; 0 while its rows are on their way."""
    index: int = 0
    """Where its page index begins in the kernel's array."""
    rows: int = 0
    """Where its rows begin."""
    lengths: tuple[int, int] = (0, 0)
    """Rows and index entries it has in the kernel; (0, 0): none."""
    used_ns: int = 0
    """When a path through it was last named."""
    evicted: bool = False
    """Its rows made room for others'; they come again when a walk asks for them."""
    settled: bool = False
    """Facts and rows have come, or never will."""
    gone: bool = False
    """No process maps it, and it was closed: if it is mapped again, it is another module."""

    @property
    def name(self) -> str:
        """Base name of the file as it was mapped, as text."""
        return path_as_text(os.path.basename(self.path.removesuffix(" (deleted)")) or self.path)


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
        cache: Path | None = None,
    ) -> None:
        """Write the kernel's arrays: rows, page index (one number per 8 bytes) and layouts.

        Rows that were made before are taken from the folder ``cache``.
        """
        self._reader, self._maps, self._entries = reader, loaded.maps, loaded.entries
        self._cache = RowCache(cache / "rows" if cache is not None else None)
        self._rows = Space(loaded.entries["rows"] - CALIBRATION_ROWS)
        self._index = Space(loaded.entries["page_index"] - CALIBRATION_ROWS)
        self._debuginfod = debuginfod_folders(os.environ)
        self._now_ns = 0
        self._waiting_for_room: list[Module] = []
        self.evictions = 0
        """Modules whose rows made room."""
        self.lost = 0
        """Modules whose rows, and mappings and layouts that, did not fit."""
        self.by_file: dict[FileId, Module] = {}
        self.layouts: dict[int, Layout] = {}
        self._numbers: dict[tuple[Mapping, ...], int] = {}
        self._free_numbers: list[int] = []
        self._unused_ns: dict[int, int] = {}
        """Since when no process has had a layout."""
        self.retired: set[int] = set()
        """Numbers that were freed and not taken in yet: paths through them can be named no more."""
        self._waiting: dict[int, Callable[[object], None]] = {}

    def ask(self, op: str, fd: int, then: Callable[[object], None], **arguments: object) -> None:
        """Send one request to the reader; ``then`` gets its answer, or the error, in a later ``collect``."""
        self._waiting[self._reader.request(op, fd, **arguments)] = then

    def collect(self) -> None:
        """Hand out the answers that have come."""
        self._now_ns = time.monotonic_ns()
        if self._waiting_for_room and not self._rows.rests(self._now_ns):
            waiting, self._waiting_for_room = self._waiting_for_room, []
            for module in waiting:
                self._get_rows(module)
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
        mappings = tuple(m for m in executable_mappings(pid) if m.path != "[vsyscall]")
        if not mappings:
            return 0
        known = self._numbers.get(mappings)
        if known is not None:
            self._unused_ns.pop(known, None)
            return known
        number = self._free_number()
        if not number or len(mappings) > MAX_RANGES - 1:
            self.lost += 1
            if not number:
                return 0
            mappings = mappings[: MAX_RANGES - 1]
        modules = tuple(self._module(pid, m) for m in mappings)
        self.layouts[number] = Layout(mappings, modules, [m.start for m in mappings])
        self._numbers[mappings] = number
        self._write(number)
        return number

    def use(self, layouts: Collection[int], now_ns: int) -> None:
        """Note which layouts processes have now; one that none had for a while may make room for another."""
        self._unused_ns = {
            number: self._unused_ns.get(number, now_ns) for number in self.layouts if number not in layouts
        }
        self._now_ns = now_ns

    def _free_number(self) -> int:
        """Return a number for a layout, 0 if all are in use."""
        if not self._free_numbers and len(self.layouts) + 1 < self._entries["layouts"] - 1:
            return len(self.layouts) + 1
        if not self._free_numbers:
            self._retire()
        return self._free_numbers.pop(0) if self._free_numbers else 0

    def forget(self, in_use: Collection[Module]) -> set[Module]:
        """Close files that no process has mapped for a while, once there are many; return their modules.

        Every deployment brings new files, each container all of its libraries. Those ``in_use`` stay.
        """
        if len(self.by_file) <= MOST_FILES:
            return set()
        self._retire(1.0)
        mapped = {module for layout in self.layouts.values() for module in layout.modules}
        kept = mapped.union(in_use)
        gone = {m for file, m in self.by_file.items() if file != VDSO and m.settled and m not in kept}
        for module in gone:
            if module.lengths[0]:
                self._evict(module)
            self._close(module)
            module.gone, module.evicted = True, False
            del self.by_file[module.file]
        self._waiting_for_room = [each for each in self._waiting_for_room if each not in gone]
        return gone

    def _retire(self, share: float = 0.5) -> None:
        """Forget the layouts that no process has had for a while, this share of them, the longest unused first."""
        rested = sorted((ns, number) for number, ns in self._unused_ns.items() if self._now_ns - ns >= REST_NS)
        gone = {number for _, number in rested[: math.ceil(share * len(rested))]}
        self._numbers = {mappings: number for mappings, number in self._numbers.items() if number not in gone}
        for number in gone:
            del self.layouts[number]
            del self._unused_ns[number]
        self._free_numbers = sorted({*self._free_numbers, *gone})
        self.retired |= gone

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
        module.used_ns = self._now_ns
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
            fd = open_mapped(pid, mapping)
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
            own = next((m for m in executable_mappings(os.getpid()) if m.path == "[vdso]"), None)
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
                self._find_debug_file(module, answer)
                self._get_rows(module)
            else:
                module.error, module.settled = str(answer), True

        self.ask("facts", module.fd, facts)

    def _find_debug_file(self, module: Module, facts: BinaryFacts) -> None:
        """Have names taken from a separate debug file too, if this host has one."""
        try:
            status = os.stat(module.path)
            ours = os.path.samestat(status, os.fstat(module.fd))
        except OSError:
            ours = False
        module.debug = open_debug_file(facts, module.path if ours else "", self._debuginfod)
        if module.debug >= 0:
            self._reader.accompany(module.fd, module.debug)

    def _get_rows(self, module: Module) -> None:
        """Fetch a module's rows from the disk, or have them made."""
        assert module.facts is not None
        key = module.facts.frames_digest
        known = self._cache.get(key)
        if known is not None:
            self._settle(module, known)
            return

        def then(answer: object) -> None:
            if isinstance(answer, RowTable) and len(answer.pc):
                self._cache.put(key, answer)
            self._settle(module, answer)

        self.ask("rows", module.fd, then)

    def _settle(self, module: Module, answer: object) -> None:
        module.settled = True
        if isinstance(answer, RowTable) and len(answer.pc):
            self._load(module, answer)
        elif not isinstance(answer, SpecmineError):
            module.flags = RANGE_FRAMES
        self._write_layouts(module)

    def _write_layouts(self, module: Module) -> None:
        for number, layout in self.layouts.items():
            if module in layout.modules:
                self._write(number)

    def _load(self, module: Module, table: RowTable) -> None:
        """Put a module's rows and page index into the kernel's arrays; those used the longest ago make room."""
        lengths = (len(table.pc), len(table.pages))
        first = self._rows.take(lengths[0], self._now_ns)
        index = self._index.take(lengths[1], self._now_ns)
        if first is None or index is None:
            if first is not None:
                self._rows.give_back(first, lengths[0], 0)
            if index is not None:
                self._index.give_back(index, lengths[1], 0)
            self._make_room(module, lengths)
            return
        values = table.pc.astype(np.uint64) | table.info.astype(np.uint64) << np.uint64(32)
        write_array(self._maps["rows"], first, values)
        write_array(self._maps["page_index"], index, table.pages.astype(np.uint64) + np.uint64(first))
        module.rows, module.index, module.lengths = first, index, lengths
        module.flags, module.used_ns, module.evicted = RANGE_ROWS, self._now_ns, False

    def _make_room(self, module: Module, lengths: tuple[int, int]) -> None:
        """Take out the rows of the modules used the longest ago, for one that is tried again when they have rested."""
        if lengths[0] > self._rows.size or lengths[1] > self._index.size:
            self.lost += 1  # it never fits: no other makes room in vain
            return
        idle = [m for m in self.by_file.values() if m.lengths[0] and self._now_ns - m.used_ns > IDLE_NS]
        rows = pages = 0
        for old in sorted(idle, key=lambda m: m.used_ns):
            if rows >= lengths[0] and pages >= lengths[1]:
                break
            rows, pages = rows + old.lengths[0], pages + old.lengths[1]
            self._evict(old)
        if rows or self._rows.resting:
            self._waiting_for_room.append(module)
        else:
            module.evicted = True  # tried again when a walk asks for it
            self.lost += 1

    def _evict(self, module: Module) -> None:
        module.flags, module.evicted = 0, True
        self._write_layouts(module)
        self._rows.give_back(module.rows, module.lengths[0], self._now_ns)
        self._index.give_back(module.index, module.lengths[1], self._now_ns)
        module.lengths = (0, 0)
        self.evictions += 1

    def want(self, layout: int, address: int) -> None:
        """Note that a walk ended for want of rows at an address: load them again if they made room for others'."""
        place = self.find(layout, address)
        if place is not None and place[0].evicted and place[0].facts is not None:
            place[0].evicted = False
            self._get_rows(place[0])

    @property
    def row_bytes(self) -> int:
        """Bytes of kernel memory that hold unwind rows and their index now; entries of arrays take 8."""
        return 8 * (self._rows.used + self._index.used)

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
            self._close(module)

    def _close(self, module: Module) -> None:
        self._reader.accompany(module.fd, -1)
        for fd in (module.fd, module.debug):
            if fd >= 0:
                os.close(fd)
        module.fd = module.debug = -1


def _flags(mapping: Mapping) -> int:
    """Return what executable memory without a file is."""
    return RANGE_PROBE if mapping.path == "[uprobes]" else RANGE_JIT
