"""The unwind rows of modules in the kernel's arrays; those used the longest ago make room for others."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

import numpy as np

from specmine.model.errors import SpecmineError
from specmine.probes.elf.facts import RowTable
from specmine.probes.kernel.loader import Loaded
from specmine.probes.kernel.maps import write_array
from specmine.probes.kernel.structs import RANGE_FRAMES, RANGE_ROWS

from .module import Module
from .unwind_cache import RowCache
from .unwind_space import Space

CALIBRATION_ROWS = 256
"""Rows and index entries at the end of the arrays that calibration uses."""
IDLE_NS = 10_000_000_000
"""Rows of a module that no path of the last seconds went through may make room."""

Ask = Callable[[str, int, Callable[[object], None]], None]
"""Sends a question about a file to the reader, whose answer goes to a function."""


class UnwindLoader:
    """Which module's rows lie where in the kernel."""

    def __init__(
        self,
        loaded: Loaded,
        cache: Path | None,
        ask: Ask,
        known: Callable[[], Collection[Module]],
        changed: Callable[[Module], None],
    ) -> None:
        """Load nothing yet.

        Parameters
        ----------
        loaded : Loaded
            Holds the arrays: rows, and a page index of one number per 8 bytes.
        cache : path or None
            Folder with rows that were made before.
        ask : callable
        known : callable
            Returns all modules, of which some may make room.
        changed : callable
            Gets each module whose place in the arrays has changed.
        """
        self._maps, self._ask, self._known, self._changed = loaded.maps, ask, known, changed
        self._cache = RowCache(cache / "rows" if cache is not None else None)
        self._rows = Space(loaded.entries["rows"] - CALIBRATION_ROWS)
        self._index = Space(loaded.entries["page_index"] - CALIBRATION_ROWS)
        self._now_ns = 0
        self._waiting_for_room: list[Module] = []
        self.evictions = 0
        """Modules whose rows made room."""
        self.lost = 0
        """Modules whose rows did not fit."""

    @property
    def row_bytes(self) -> int:
        """Bytes of kernel memory that hold rows and their index now; entries of arrays take 8."""
        return 8 * (self._rows.used + self._index.used)

    def poll(self, now_ns: int) -> None:
        """Try those again that wait for room."""
        self._now_ns = now_ns
        if self._waiting_for_room and not self._rows.rests(now_ns):
            waiting, self._waiting_for_room = self._waiting_for_room, []
            for module in waiting:
                self.get(module)

    def get(self, module: Module) -> None:
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

        self._ask("rows", module.fd, then)

    def want(self, module: Module) -> None:
        """Load a module's rows again if they made room: a walk ended for want of them."""
        if module.evicted and module.facts is not None:
            module.evicted = False
            self.get(module)

    def forget(self, gone: Collection[Module]) -> None:
        """Take the rows of modules out for good."""
        for module in gone:
            if module.lengths[0]:
                self._take_out(module)
        self._waiting_for_room = [each for each in self._waiting_for_room if each not in gone]

    def _settle(self, module: Module, answer: object) -> None:
        module.settled = True
        if isinstance(answer, RowTable) and len(answer.pc):
            self._load(module, answer)
        elif not isinstance(answer, SpecmineError):
            module.flags = RANGE_FRAMES
        self._changed(module)

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
        idle = [m for m in self._known() if m.lengths[0] and self._now_ns - m.used_ns > IDLE_NS]
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
        """Take the rows of a module out for those of another; a walk may ask for them again."""
        self._take_out(module)
        self.evictions += 1

    def _take_out(self, module: Module) -> None:
        module.flags, module.evicted = 0, True
        self._changed(module)
        self._rows.give_back(module.rows, module.lengths[0], self._now_ns)
        self._index.give_back(module.index, module.lengths[1], self._now_ns)
        module.lengths = (0, 0)
