"""An ELF file as arrays: headers, sections, symbols and strings, read with bounds checks and without trust.

Only 64-bit little-endian files of this host's machine. All is a view of the file's bytes; only what is small is copied.
"""

from __future__ import annotations

import mmap
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specmine.model.errors import InputError
from specmine.probes.arch.machine import machine
from specmine.probes.elf.facts import Segment

PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_NOTE, PT_GNU_EH_FRAME = 1, 2, 3, 4, 0x6474E550
SHT_NOBITS, SHF_COMPRESSED = 8, 0x800
MAX_SECTION = 1 << 28
"""A compressed section may not unpack to more."""

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")


def _packed(layout: str) -> np.dtype[Any]:
    """Return a record type from ``name:type`` words."""
    return np.dtype([(name, kind) for name, _, kind in (each.partition(":") for each in layout.split())])


_SEGMENT = _packed("type:<u4 flags:<u4 offset:<u8 address:<u8 physical:<u8 file_size:<u8 memory_size:<u8 align:<u8")
_SECTION = _packed("name:<u4 type:<u4 flags:<u8 address:<u8 offset:<u8 size:<u8 link:<u4 info:<u4 align:<u8 entry:<u8")
SYMBOL = _packed("name:<u4 info:u1 other:u1 section:<u2 value:<u8 size:<u8")
_DYNAMIC = np.dtype([("tag", "<i8"), ("value", "<u8")])

Record = NDArray[np.void]
Buffer = bytes | mmap.mmap


def not_elf(why: str) -> InputError:
    """Return the one error that a bad file leads to."""
    return InputError(f"not an ELF file: {why}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A section header; ``offset`` and ``size`` lie within the file."""

    name: str
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SymbolTable:
    """A symbol table and where its strings are."""

    records: Record
    """Shape (symbols,), dtype SYMBOL."""
    strings: int
    """File offset of the string table."""
    strings_end: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Image:
    """The headers of an ELF file over its bytes."""

    data: Buffer
    type: int
    """e_type: 2 executable, 3 shared."""
    entry: int
    segments: tuple[Segment, ...]
    program: Record
    """All program headers."""
    sections: tuple[Section, ...]
    """Empty if the file has none that are usable."""

    @property
    def view(self) -> NDArray[np.uint8]:
        """The file's bytes, a view."""
        return np.frombuffer(self.data, dtype=np.uint8)

    @property
    def code(self) -> tuple[Segment, ...]:
        """The executable segments, by file offset."""
        return tuple(sorted((each for each in self.segments if each.executable), key=lambda each: each.offset))

    def section(self, name: str) -> Section | None:
        """Return the first section of that name that has bytes in the file."""
        for each in self.sections:
            if each.name == name and each.type != SHT_NOBITS and each.size:
                return each
        return None

    def read(self, offset: int, size: int) -> bytes:
        """Return a copy of part of the file, cut off at its end."""
        return self.data[offset : offset + size]

    def content(self, section: Section) -> bytes:
        """Return a section's bytes, uncompressed; b'' if they cannot be."""
        raw = self.read(section.offset, section.size)
        if not section.flags & SHF_COMPRESSED:
            return raw
        if len(raw) < 24 or raw[0] != 1:  # 1: zlib
            return b""
        try:
            return zlib.decompressobj().decompress(raw[24:], MAX_SECTION)
        except zlib.error:
            return b""

    def string(self, offset: int, end: int) -> bytes:
        """Return the NUL-terminated bytes at a file offset, b'' if they do not end before ``end``."""
        if not 0 <= offset < end <= len(self.data):
            return b""
        stop = self.data.find(b"\0", offset, end)
        return self.data[offset:stop] if stop >= 0 else b""

    def file_offset(self, address: int) -> int | None:
        """Return the file offset of an address, None if no segment holds it."""
        for each in self.segments:
            if each.address <= address < each.address + each.file_size:
                return address - each.address + each.offset
        return None

    def code_offsets(self, addresses: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the file offsets of addresses, -1 where no executable segment holds them; same shape."""
        found = np.full(addresses.shape, -1, dtype=np.int64)
        for each in self.code:
            # below the segment the difference wraps round to a huge number
            distance = addresses - np.uint64(each.address)
            inside = distance < np.uint64(each.file_size)
            found[inside] = distance[inside].astype(np.int64) + each.offset
        return found

    def dynamic(self) -> dict[int, list[int]]:
        """Return the dynamic section: tag -> values in the file's order."""
        entries: dict[int, list[int]] = {}
        for header in self.program[self.program["type"] == PT_DYNAMIC][:1]:
            table = _array(self.data, int(header["offset"]), int(header["file_size"]) // 16, _DYNAMIC)
            stop = np.flatnonzero(table["tag"] == 0)
            for tag, value in table[: stop[0] if len(stop) else None].tolist():
                entries.setdefault(tag, []).append(value)
        return entries

    def notes(self) -> Iterator[tuple[bytes, int, bytes]]:
        """Yield (owner, type, content) of the notes in the PT_NOTE segments, or in note sections."""
        places = [
            (int(each["offset"]), int(each["file_size"]), int(each["align"]))
            for each in self.program[self.program["type"] == PT_NOTE]
        ]
        places += [(each.offset, each.size, 4) for each in self.sections if each.type == 7]
        for offset, size, align in places:
            yield from _notes(self.read(offset, min(size, 1 << 20)), 8 if align == 8 else 4)

    def symbols(self, name: str) -> SymbolTable | None:
        """Return the symbol table in section ``name``; .dynsym is found without sections, too."""
        section = self.section(name)
        if section is not None and section.link < len(self.sections):
            strings = self.sections[section.link]
            records = _array(self.data, section.offset, section.size // SYMBOL.itemsize, SYMBOL)
            return SymbolTable(records=records, strings=strings.offset, strings_end=strings.offset + strings.size)
        return self._dynamic_symbols() if name == ".dynsym" else None

    def _dynamic_symbols(self) -> SymbolTable | None:
        entries = self.dynamic()
        table = self.file_offset(entries.get(6, [0])[0])  # DT_SYMTAB
        strings = self.file_offset(entries.get(5, [0])[0])  # DT_STRTAB
        if table is None or strings is None or not 0 < table < strings:
            return None
        # nothing says how long the table is; linkers put its strings right behind it
        records = _array(self.data, table, (strings - table) // SYMBOL.itemsize, SYMBOL)
        end = min(strings + entries.get(10, [0])[0], len(self.data))  # DT_STRSZ
        return SymbolTable(records=records, strings=strings, strings_end=end)


def open_image(data: Buffer, *, names_only: bool = False) -> Image:
    """Read the headers of an ELF file.

    Parameters
    ----------
    data : bytes or mmap
        The whole file.
    names_only : bool
        True for a separate debug file, whose segments point at bytes that it does not hold.

    Raises
    ------
    InputError
        If it is no 64-bit little-endian ELF file of this machine, or cut short.
    """
    if len(data) < _HEADER.size or data[:4] != b"\x7fELF":
        raise not_elf("too short" if len(data) < _HEADER.size else "no ELF signature")
    ident, kind, number, _, entry, phoff, shoff, _, _, phsize, phnum, shsize, shnum, names = _HEADER.unpack(
        data[: _HEADER.size]
    )
    if ident[4] != 2 or ident[5] != 1 or number != machine().elf:
        raise InputError(f"not an {machine().title} program: class {ident[4]}, machine {number}")
    if kind not in (2, 3):
        raise InputError(f"neither a program nor a shared library: ELF type {kind}")
    first = _array(data, shoff, int(shoff > 0 and shsize == _SECTION.itemsize), _SECTION)
    if len(first):  # numbers that do not fit the header stand in the first section header
        shnum = shnum or min(int(first[0]["size"]), len(data) // _SECTION.itemsize)
        names = int(first[0]["link"]) if names == 0xFFFF else names
        phnum = int(first[0]["info"]) if phnum == 0xFFFF else phnum
    if phsize != _SEGMENT.itemsize and phnum:
        raise not_elf(f"program headers of {phsize} bytes")
    program = _array(data, phoff, phnum, _SEGMENT)
    if len(program) < phnum:
        raise not_elf("program headers beyond the end of the file")
    headers = _array(data, shoff, shnum, _SECTION) if len(first) else first
    return Image(
        data=data,
        type=kind,
        entry=entry,
        segments=tuple(_segments(program, len(data), names_only)),
        program=program,
        sections=tuple(_sections(data, headers, names)) if len(headers) == shnum else (),
    )


def _array(data: Buffer, offset: int, count: int, dtype: np.dtype[Any]) -> Record:
    """Return up to ``count`` records at an offset, fewer where the file ends."""
    fit = max(0, len(data) - offset) // dtype.itemsize
    if min(count, fit) <= 0:
        return np.empty(0, dtype=dtype)
    return np.frombuffer(data, dtype=dtype, count=min(count, fit), offset=offset)


def _segments(program: Record, length: int, names_only: bool) -> Iterator[Segment]:
    for each in program[program["type"] == PT_LOAD]:
        segment = Segment(
            offset=int(each["offset"]),
            address=int(each["address"]),
            file_size=int(each["file_size"]),
            memory_size=int(each["memory_size"]),
            flags=int(each["flags"]) & 7,
        )
        if segment.offset + segment.file_size > length and not names_only:
            end = segment.offset + segment.file_size
            raise not_elf(f"cut short: a segment ends at {end} of {length} bytes")
        if segment.address + segment.memory_size >= 1 << 64:
            raise not_elf("a segment beyond the end of memory")
        yield segment


def _sections(data: Buffer, headers: Record, names: int) -> Iterator[Section]:
    start = end = 0
    if names < len(headers):
        start = int(headers[names]["offset"])
        end = min(start + int(headers[names]["size"]), len(data))
    for name, kind, flags, address, offset, size, link, *_ in headers.tolist():
        stop = data.find(b"\0", start + name, end) if start + name < end else -1
        inside = kind != SHT_NOBITS and offset + size <= len(data)
        yield Section(
            name=data[start + name : stop].decode("ascii", "replace") if stop >= 0 else "",
            type=kind,
            flags=flags,
            address=address,
            offset=offset if inside else 0,
            size=size if inside else 0,
            link=link,
        )


def _notes(data: bytes, align: int) -> Iterator[tuple[bytes, int, bytes]]:
    position = 0
    while position + 12 <= len(data):
        name_size, size, kind = struct.unpack_from("<III", data, position)
        start = position + 12
        content = start + name_size + (-name_size % align)
        yield data[start : start + name_size].rstrip(b"\0"), kind, data[content : content + size]
        position = content + size + (-size % align)
