"""One file that watched processes execute, and one arrangement of such files in an address space."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from specmine.probes.elf.facts import BinaryFacts
from specmine.probes.process.mappings import FileId, Mapping
from specmine.probes.process.proc_files import path_as_text

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
