"""Where a binary's functions are, from symbols and from call frame information: distributions strip symbols."""

from __future__ import annotations

import lzma
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specmine.model.errors import InputError
from specmine.probes.arch.interface import Branch
from specmine.probes.arch.machine import machine
from specmine.probes.elf.demangle import printable
from specmine.probes.elf.facts import FunctionKind

from .branches import Branches
from .function_table import FunctionTable, Names
from .image import Image, open_image
from .unwind_rows import ENTRY_ROW, PLT_ROW, Frames

MAX_MINI_DEBUG = 1 << 26
"""Unpacked size of .gnu_debugdata beyond which it is ignored."""
_NOTYPE, _FUNC, _IFUNC = 0, 2, 10
_CODE = machine().instruction_set()


def function_table(
    image: Image, frames: Frames, branches: Branches, module: str, *, debug: Image | None = None
) -> FunctionTable:
    """Find the functions of a binary.

    Parameters
    ----------
    image, frames, branches
        The binary, its call frame information, its direct branches.
    module : str
        Base name of the mapped file.
    debug : Image, optional
        Its separate debug file, used for names only.
    """
    sources = tuple(_sources(image, debug))
    symbols = _Symbols.of(image, sources, frames)
    starts = np.union1d(symbols.offset, frames.starts)
    first = np.append(np.searchsorted(symbols.offset, starts), len(symbols.offset))
    sizes = np.zeros(len(starts), dtype=np.int64)
    framed = np.searchsorted(starts, frames.starts)
    sizes[framed] = frames.sizes
    own = np.zeros(len(starts), dtype=np.int64)
    np.maximum.at(own, np.searchsorted(starts, symbols.offset), symbols.size)
    sizes = _within_code(image, starts, np.where(own > 0, own, sizes))
    entry = np.full(len(starts), ENTRY_ROW, dtype=np.uint32)
    entry[framed] = frames.first
    kinds = _kinds(image, branches, starts, entry, nameless=np.diff(first) == 0)
    resolvers = np.searchsorted(starts, symbols.offset[symbols.type == _IFUNC])
    kinds[resolvers] = tuple(FunctionKind).index(FunctionKind.IFUNC)
    return FunctionTable(
        starts=starts,
        sizes=sizes,
        kinds=kinds,
        parents=_parents(starts, sizes, kinds, branches),
        framed=framed,
        module=printable(module),
        _sources=sources,
        _source=symbols.source,
        _index=symbols.index,
        _first=first,
    )


def _sources(image: Image, debug: Image | None) -> Iterator[Names]:
    mini = image.section(".gnu_debugdata")
    unpacked = _unpacked(image.content(mini)) if mini is not None else None
    places = ((image, ".dynsym"), (image, ".symtab"), (debug, ".symtab"), (unpacked, ".symtab"))
    for each, name in places:
        table = each.symbols(name) if each is not None else None
        if each is not None and table is not None:
            yield Names(image=each, table=table, exported=name == ".dynsym")


def _unpacked(content: bytes) -> Image | None:
    """Return the small ELF file with the symbols of static functions that Fedora's packages carry."""
    try:
        data = lzma.LZMADecompressor(memlimit=MAX_MINI_DEBUG).decompress(content, MAX_MINI_DEBUG)
        return open_image(data, names_only=True)
    except (lzma.LZMAError, InputError, EOFError):
        return None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Symbols:
    """The symbols of code, sorted by file offset."""

    offset: NDArray[np.int64]
    size: NDArray[np.int64]
    type: NDArray[np.uint8]
    source: NDArray[np.uint8]
    index: NDArray[np.int64]

    @classmethod
    def of(cls, image: Image, sources: tuple[Names, ...], frames: Frames) -> _Symbols:
        """Take the functions and ifuncs, and untyped names where call frame information begins."""
        parts = []
        for number, each in enumerate(sources):
            records = each.table.records
            kind = records["info"] & 15
            index = np.flatnonzero(np.isin(kind, (_NOTYPE, _FUNC, _IFUNC)) & (records["section"] != 0))
            offset = image.code_offsets(records["value"][index])
            good = (offset >= 0) & ((kind[index] != _NOTYPE) | np.isin(offset, frames.starts))
            index, offset = index[good], offset[good]
            size = np.minimum(records["size"][index], np.uint64(1 << 40)).astype(np.int64)
            parts.append((offset, size, kind[index], np.full(len(index), number, dtype=np.uint8), index))
        if not parts:
            nothing = np.empty(0, dtype=np.int64)
            byte = nothing.astype(np.uint8)
            return cls(offset=nothing, size=nothing, type=byte, source=byte, index=nothing)
        offset, size, types, source, index = (np.concatenate(each) for each in zip(*parts, strict=True))
        order = np.lexsort((source, offset))
        return cls(
            offset=offset[order],
            size=size[order],
            type=types[order],
            source=source[order],
            index=index[order],
        )


def _within_code(image: Image, starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Cut sizes at the segment's end; a symbol without size and frame reaches to the next function."""
    gap = np.append(np.diff(starts), 1 << 40) if len(starts) else starts
    sizes = np.where(sizes > 0, sizes, gap)
    for each in image.code:
        end = each.offset + each.file_size
        inside = (starts >= each.offset) & (starts < end)
        sizes[inside] = np.minimum(sizes[inside], end - starts[inside])
    return sizes


def _kinds(
    image: Image,
    branches: Branches,
    starts: NDArray[np.int64],
    entry: NDArray[np.uint32],
    *,
    nameless: NDArray[np.bool_],
) -> NDArray[np.uint8]:
    """Distinguish functions, PLT stubs and fragments; what has a name is a function."""
    code = {kind: number for number, kind in enumerate(FunctionKind)}
    kinds = np.zeros(len(starts), dtype=np.uint8)
    called = np.isin(starts, branches.target[branches.kind == Branch.CALL])
    jumped = np.isin(starts, branches.target[branches.kind == Branch.CONDITIONAL])
    # a function is entered with nothing pushed, not by a condition, and does not begin by leaving; but
    # hand-written ones share tails in such ways, and compilers align functions, not their cold parts
    left = (jumped | _CODE.begins_with_branch(image.view, starts)) & ~called & (starts % 16 != 0)
    cold = (entry != ENTRY_ROW) | left
    kinds[nameless & cold] = code[FunctionKind.FRAGMENT]

    stubs = nameless & ((entry & 7) == PLT_ROW)
    for section in image.sections:
        if section.name.startswith(".plt"):
            stubs |= nameless & (starts >= section.offset) & (starts < section.offset + section.size)
    kinds[stubs] = code[FunctionKind.PLT]
    return kinds


def _parents(
    starts: NDArray[np.int64], sizes: NDArray[np.int64], kinds: NDArray[np.uint8], branches: Branches
) -> NDArray[np.int64]:
    """Return for each fragment the function that first jumps to it, -1 if none is seen to."""
    fragment = tuple(FunctionKind).index(FunctionKind.FRAGMENT)
    parents = np.full(len(starts), -1, dtype=np.int64)
    for number in np.flatnonzero(kinds == fragment).tolist():
        into = branches.into(int(starts[number]), int(starts[number]) + 1)
        source = np.sort(branches.source[into][branches.kind[into] != Branch.CALL])
        holder = np.searchsorted(starts, source, side="right") - 1
        good = (holder >= 0) & (source < (starts + sizes)[holder])
        holder = holder[good & (kinds[holder] != fragment)]
        if len(holder):
            parents[number] = holder[0]
    return parents
