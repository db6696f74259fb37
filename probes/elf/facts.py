"""What is known of a binary: plain values, light enough for the daemon.

The parser child makes them from foreign files, and they travel to the daemon. Places in a binary are **file offsets**,
since that is what the kernel's probes take.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A PT_LOAD segment."""

    offset: int
    address: int
    file_size: int
    memory_size: int
    flags: int
    """Bits of p_flags: 1 execute, 2 write, 4 read."""

    @property
    def executable(self) -> bool:
        """True if it holds code."""
        return bool(self.flags & 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class BinaryFacts:
    """What an ELF file is, as far as watching it is concerned."""

    build_id: str
    """In hex; without one ``sha256:`` and 16 hex of .text (of the executable segments if it has no .text)."""
    kind: str
    """executable, pie, library or other."""
    segments: tuple[Segment, ...]
    soname: str = ""
    needed: tuple[str, ...] = ()
    """Libraries that the dynamic linker maps with it, as the file names them."""
    is_go: bool = False
    unwinder: tuple[str, ...] = ()
    """Why exceptions may pass frames of this file, or stacks be switched or left, or code that does so be loaded; one
    finding each; empty: nothing."""
    self_check: str = ""
    """A name which tells that the file's code is compared with a checksum in memory, '' if there is none."""
    debuglink: str = ""
    """Name of its separate debug file, '' if it names none."""
    frames_digest: str = ""
    """Digest, in hex, of all that the unwind rows are made from; '' if that was not found by sections."""


class FunctionKind(StrEnum):
    """What a range of code is."""

    FUNCTION = "function"
    IFUNC = "ifunc"
    """A resolver that the dynamic linker runs; what it chooses has another address. Never probed."""
    FRAGMENT = "fragment"
    """The cold part of a function, entered by jumps; never probed, it names frames after its parent."""
    PLT = "plt"
    """Stubs of the dynamic linker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionFacts:
    """A range of code and its names. Control characters in names are escaped."""

    offset: int
    """File offset of its first byte."""
    size: int
    name: str
    """Demangled, no clone suffix, no version; ``module+0xoff`` if the file names it nowhere."""
    module: str
    kind: FunctionKind = FunctionKind.FUNCTION
    mangled: str = ""
    """The symbol as it stands in the file, '' if none."""
    aliases: tuple[str, ...] = ()
    parent: int = -1
    """Fragments: offset of the function it belongs to, -1 if not known."""


class Grade(StrEnum):
    """How the kernel runs the probed instruction: the price."""

    EMULATED = "emulated"
    STEPPED = "stepped"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where the probe of a function goes."""

    function: int
    """File offset of the function's first byte."""
    offset: int
    """File offset of the probe; equals ``function`` unless it was moved to an emulated instruction."""
    grade: Grade
    code: str = ""
    """Why it is not emulated, a stable code; '' if it is."""
    text: str = ""
    callee: int = -1
    """Return sites: file offset that the call before it names, -1 if it calls by a pointer."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowTable:
    """Unwind rules of a binary, sorted by file offset; see parser/unwind_rows.py for the layout of ``info``."""

    pc: NDArray[np.uint32]
    """File offset where each row begins to hold; strictly ascending, shape (rows,)."""
    info: NDArray[np.uint32]
    pages: NDArray[np.uint32]
    """For each 256 bytes of file offset the number of the last row at or before its first byte (0 if there is
    none), up to one entry past the end of the code: a row is searched in [pages[p], pages[p + 1]]."""

    def __post_init__(self) -> None:
        """Freeze the arrays; ValueError if their shapes do not fit."""
        if self.pc.shape != self.info.shape or self.pc.ndim != 1 or self.pages.ndim != 1:
            raise ValueError(f"rows of shapes {self.pc.shape}, {self.info.shape}, {self.pages.shape}")
        for array in (self.pc, self.info, self.pages):
            array.flags.writeable = False

    def at(self, offset: int) -> int:
        """Return ``info`` of the row that holds at a file offset, 0 if none does."""
        index = int(np.searchsorted(self.pc, offset, side="right")) - 1
        return int(self.info[index]) if index >= 0 else 0
