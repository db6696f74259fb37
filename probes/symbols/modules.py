"""The files that the watched processes execute: opened once, described by the reader, their unwind rows in the kernel.

A *layout* is one arrangement of modules in an address space; forked processes share it, and the kernel's stack walk
reads it. Layouts are never changed in place except to add unwind rows, so a path taken earlier can still be named.
"""

from __future__ import annotations

import math
import os
import time
from bisect import bisect_right
from collections.abc import Callable, Collection
from pathlib import Path

import numpy as np

from specmine.probes.elf.client import Reader
from specmine.probes.elf.debug_files import debuginfod_folders, open_debug_file
from specmine.probes.elf.facts import BinaryFacts
from specmine.probes.kernel.loader import Loaded
from specmine.probes.kernel.maps import write_array
from specmine.probes.kernel.structs import LAYOUT, MAX_RANGES, RANGE_JIT, RANGE_PROBE
from specmine.probes.process.mappings import FileId, Mapping, executable_mappings, open_mapped

from .module import VDSO, Layout, Module
from .unwind_loader import UnwindLoader

REST_NS = 10_000_000_000
"""How long a layout stays after its last process has ended: paths through it are named in the meantime."""
MOST_UNUSED = 64
"""Layouts that stay although no process has them: each start of a program has addresses of its own."""
UNUSED_NS = 600_000_000_000
"""How long a file stays open that no process maps: a program that is started each minute is not read each minute."""
MOST_FILES = 192
"""Open files, one or two a module, beyond which none stays open that no process maps."""


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
        self._debuginfod = debuginfod_folders(os.environ)
        self._now_ns = 0
        self._lost = 0
        """Mappings and layouts that did not fit."""
        self.by_file: dict[FileId, Module] = {}
        self._unwinding = UnwindLoader(loaded, cache, self.ask, self.by_file.values, self._write_layouts)
        self.layouts: dict[int, Layout] = {}
        self._numbers: dict[tuple[Mapping, ...], int] = {}
        self._free_numbers: list[int] = []
        self._unused_ns: dict[int, int] = {}
        """Since when no process has had a layout."""
        self._idle_ns: dict[Module, int] = {}
        """Since when no process has mapped a file."""
        self._news: set[str] = set()
        """Builds of which a file came or went."""
        self.retired: set[int] = set()
        """Numbers that were freed and not taken in yet: paths through them can be named no more."""
        self._waiting: dict[int, Callable[[object], None]] = {}

    def ask(self, op: str, fd: int, then: Callable[[object], None], **arguments: object) -> None:
        """Send one request to the reader; ``then`` gets its answer, or the error, in a later ``collect``."""
        self._waiting[self._reader.request(op, fd, **arguments)] = then

    def collect(self) -> None:
        """Hand out the answers that have come."""
        self._now_ns = time.monotonic_ns()
        self._unwinding.poll(self._now_ns)
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
            self._lost += 1
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

    def forget(self, unread: Collection[Module] = ()) -> set[Module]:
        """Close files that no process maps any more; return their modules.

        Every deployment brings new files, each container all of its libraries. A deleted file cannot come back: it is
        closed as soon as paths through it have names, and it is not ``unread`` any more. Others stay for a while. None
        stays where there are many.
        """
        if len(self._unused_ns) > MOST_UNUSED:
            self._retire()
        self._note_idle()
        crowded = len(self.by_file) > MOST_FILES
        gone = {
            module
            for module, since_ns in self._idle_ns.items()
            if module.settled
            and (crowded or module not in unread)
            and _is_over(module, self._now_ns - since_ns, crowded)
        }
        if not gone:
            return gone
        self._drop_layouts({n for n in self._unused_ns if not gone.isdisjoint(self.layouts[n].modules)})
        self._unwinding.forget(gone)
        for module in gone:
            self._close(module)
            module.gone, module.evicted = True, False
            del self.by_file[module.file], self._idle_ns[module]
            if module.facts is not None:
                self._news.add(module.facts.build_id)
        return gone

    def take_builds(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the builds of which a file came, and those of which none is open any more, since the last call."""
        if not self._news:
            return (), ()
        news, self._news = self._news, set()
        held = {module.facts.build_id for module in self.by_file.values() if module.facts is not None}
        return tuple(sorted(news & held)), tuple(sorted(news - held))

    def _note_idle(self) -> None:
        """Note which files no process maps, and since when."""
        used = {module for n, layout in self.layouts.items() if n not in self._unused_ns for module in layout.modules}
        since = {module: ns for module, ns in self._idle_ns.items() if module not in used}
        for number, unused_ns in self._unused_ns.items():
            for module in self.layouts[number].modules:
                if module is not None and module not in used:
                    since[module] = max(unused_ns, since.get(module, 0))
        idle = (module for module in self.by_file.values() if module not in used and module.file != VDSO)
        self._idle_ns = {module: since.get(module, self._now_ns) for module in idle}

    def _retire(self) -> None:
        """Forget half of the layouts that no process has had for a while, the longest unused first."""
        rested = sorted((ns, number) for number, ns in self._unused_ns.items() if self._now_ns - ns >= REST_NS)
        self._drop_layouts({number for _, number in rested[: math.ceil(0.5 * len(rested))]})

    def _drop_layouts(self, gone: Collection[int]) -> None:
        """Forget layouts; others may have their numbers."""
        self._numbers = {mappings: number for mappings, number in self._numbers.items() if number not in gone}
        for number in gone:
            del self.layouts[number]
            del self._unused_ns[number]
        self._free_numbers = sorted({*self._free_numbers, *gone})
        self.retired |= set(gone)

    def find(self, layout: int, address: int) -> tuple[Module, int] | None:
        """Return the module and the file offset of an address, None if it is in no file."""
        found = self.layouts.get(layout)
        if found is None:
            return None
        at = bisect_right(found.starts, address) - 1
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
                self._news.add(answer.build_id)
                self._find_debug_file(module, answer)
                self._unwinding.get(module)
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

    def _write_layouts(self, module: Module) -> None:
        for number, layout in self.layouts.items():
            if module in layout.modules:
                self._write(number)

    def want(self, layout: int, address: int) -> None:
        """Note that a walk ended for want of rows at an address: load them again if they made room for others'."""
        place = self.find(layout, address)
        if place is not None:
            self._unwinding.want(place[0])

    @property
    def evictions(self) -> int:
        """Modules whose rows made room."""
        return self._unwinding.evictions

    @property
    def lost(self) -> int:
        """Modules whose rows, and mappings and layouts that, did not fit."""
        return self._lost + self._unwinding.lost

    @property
    def row_bytes(self) -> int:
        """Bytes of kernel memory that hold unwind rows and their index now."""
        return self._unwinding.row_bytes

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


def _is_over(module: Module, idle_ns: int, crowded: bool) -> bool:
    """Tell whether a file that no process has mapped for so long is to be closed."""
    if idle_ns < REST_NS:
        return False
    return crowded or idle_ns >= UNUSED_NS or module.fd < 0 or not os.fstat(module.fd).st_nlink


def _flags(mapping: Mapping) -> int:
    """Return what executable memory without a file is."""
    return RANGE_PROBE if mapping.path == "[uprobes]" else RANGE_JIT
