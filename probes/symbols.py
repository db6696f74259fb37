"""The functions of a binary: where they are, from symbols and from call frame information, and their names.

Distributions strip symbols, so a function may be known by its range alone; then it is called
``module+0xoff``. Names are made when they are asked for: a database server has 35,000.
"""

from __future__ import annotations

import lzma
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

import numpy as np
from numpy.typing import NDArray

from .branches import CALL, CONDITIONAL, Branches
from .demangling import display_name, is_cold, printable, without_parameters, without_return_type
from .errors import InputError
from .facts import FunctionFacts, FunctionKind
from .image import Image, SymbolTable, open_image
from .unwind import ENTRY_ROW, PLT_ROW, Frames

MAX_MINI_DEBUG = 1 << 26
"""Unpacked size of .gnu_debugdata beyond which it is ignored."""
_NOTYPE, _FUNC, _IFUNC = 0, 2, 10


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    """Where one image's symbol names are."""

    image: Image
    table: SymbolTable
    exported: bool
    """True for .dynsym, whose names others can call."""

    def name(self, index: int) -> str:
        """Return the name of a symbol as it stands in the file."""
        offset = self.table.strings + int(self.table.records[index]["name"])
        return self.image.string(offset, self.table.strings_end).decode("utf-8", "backslashreplace")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FunctionTable:
    """The functions of a binary, sorted by file offset. Arrays have shape (functions,)."""

    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    kinds: NDArray[np.uint8]
    """Index into FunctionKind's members; by what the bytes say, names may know better."""
    parents: NDArray[np.int64]
    """Fragments: number of the function that they belong to; -1: not known."""
    framed: NDArray[np.int64]
    """Numbers of those that have call frame information of their own."""
    module: str
    _sources: tuple[_Names, ...]
    _source: NDArray[np.uint8]
    _index: NDArray[np.int64]
    _first: NDArray[np.int64]
    """Symbols of function i: _first[i] .. _first[i + 1] in _source and _index."""
    _known: dict[int, FunctionFacts] = field(default_factory=dict)

    def containing(self, offsets: Sequence[int]) -> NDArray[np.int64]:
        """Return the number of the function that holds each file offset, -1 for none."""
        wanted = np.asarray(offsets, dtype=np.int64)
        if not len(self.starts):
            return np.full(wanted.shape, -1, dtype=np.int64)
        found = np.searchsorted(self.starts, wanted, side="right") - 1
        inside = (found >= 0) & (wanted < (self.starts + self.sizes)[found])
        if len(self.framed) and not inside.all():  # behind a symbol inside a larger function
            before = np.searchsorted(self.starts[self.framed], wanted, side="right") - 1
            outer = self.framed[np.maximum(before, 0)]
            held = (self.starts[outer] <= wanted) & (wanted < self.starts[outer] + self.sizes[outer])
            return np.where(inside, found, np.where(held, outer, -1))
        return np.where(inside, found, -1)

    @property
    def has_local_names(self) -> bool:
        """True if not only exported functions are named."""
        return any(not each.exported for each in self._sources)

    def lookup(self, offsets: Sequence[int]) -> list[FunctionFacts | None]:
        """Return the function that holds each file offset, None where none does."""
        return [self.facts(number) if number >= 0 else None for number in self.containing(offsets).tolist()]

    def match(self, globs: Sequence[str]) -> list[FunctionFacts]:
        """Return the functions and ifuncs that one of the globs names, by file offset.

        A glob (fnmatch, case-sensitive) is tried on the display name and the aliases, with and without
        parameters, on the symbols, and on ``name (module)``.
        """
        found = []
        for number in range(len(self.starts)):
            facts = self.facts(number)
            if facts.kind in (FunctionKind.FUNCTION, FunctionKind.IFUNC) and any(
                fnmatchcase(name, glob) for name in self._callings(number, facts) for glob in globs
            ):
                found.append(facts)
        return found

    def facts(self, number: int) -> FunctionFacts:
        """Return all that is known of a function by its number."""
        known = self._known.get(number)
        if known is None:
            known = self._known[number] = self._facts(number)
        return known

    def _symbols(self, number: int) -> Iterator[tuple[int, str]]:
        """Yield (source, symbol) of a function."""
        for at in range(int(self._first[number]), int(self._first[number + 1])):
            source = int(self._source[at])
            name = self._sources[source].name(int(self._index[at]))
            if name:
                yield source, name

    def _facts(self, number: int) -> FunctionFacts:
        kind = tuple(FunctionKind)[int(self.kinds[number])]
        start = int(self.starts[number])
        parent = int(self.parents[number])
        ranked = sorted(
            (not self._sources[source].exported, shown.startswith("_"), len(shown), shown, symbol)
            for source, symbol in self._symbols(number)
            for shown in (display_name(symbol),)
        )
        if ranked:
            *_, name, symbol = ranked[0]
            if is_cold(symbol.split("@", 1)[0]) and kind == FunctionKind.FUNCTION:
                kind = FunctionKind.FRAGMENT
        else:
            name, symbol = f"{self.module}+0x{start:x}", ""
        aliases = dict.fromkeys(shown for *_, shown, _ in ranked if shown != name)
        if kind == FunctionKind.FRAGMENT and parent >= 0:
            whole = self.facts(parent)
            return replace(whole, offset=start, size=int(self.sizes[number]), kind=kind, parent=whole.offset)
        return FunctionFacts(
            offset=start,
            size=int(self.sizes[number]),
            name=name,
            module=self.module,
            kind=kind,
            mangled=printable(symbol),
            aliases=tuple(aliases),
        )

    def _callings(self, number: int, facts: FunctionFacts) -> Iterator[str]:
        for name in (facts.name, *facts.aliases):
            yield name
            yield f"{name} ({self.module})"
            if name.endswith((")", "const", "&", "]")):
                bare = without_parameters(name)
                yield bare
                yield without_return_type(bare)
        for _, symbol in self._symbols(number):
            yield symbol


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


def _sources(image: Image, debug: Image | None) -> Iterator[_Names]:
    mini = image.section(".gnu_debugdata")
    unpacked = _unpacked(image.content(mini)) if mini is not None else None
    places = ((image, ".dynsym"), (image, ".symtab"), (debug, ".symtab"), (unpacked, ".symtab"))
    for each, name in places:
        table = each.symbols(name) if each is not None else None
        if each is not None and table is not None:
            yield _Names(image=each, table=table, exported=name == ".dynsym")


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
    def of(cls, image: Image, sources: tuple[_Names, ...], frames: Frames) -> _Symbols:
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
    """Tell functions, PLT stubs and fragments apart; what has a name is a function."""
    code = {kind: number for number, kind in enumerate(FunctionKind)}
    kinds = np.zeros(len(starts), dtype=np.uint8)
    called = np.isin(starts, branches.target[branches.kind == CALL])
    jumped = np.isin(starts, branches.target[branches.kind == CONDITIONAL])
    # a function is entered with nothing pushed, not by a condition, and does not begin by leaving; but
    # hand-written ones share tails in such ways, and compilers align functions, not their cold parts
    left = (jumped | _begins_with_branch(image, starts)) & ~called & (starts % 16 != 0)
    cold = (entry != ENTRY_ROW) | left
    kinds[nameless & cold] = code[FunctionKind.FRAGMENT]

    stubs = nameless & ((entry & 7) == PLT_ROW)
    for section in image.sections:
        if section.name.startswith(".plt"):
            stubs |= nameless & (starts >= section.offset) & (starts < section.offset + section.size)
    kinds[stubs] = code[FunctionKind.PLT]
    return kinds


def _begins_with_branch(image: Image, starts: NDArray[np.int64]) -> NDArray[np.bool_]:
    data: NDArray[np.uint8] = image.view
    byte = data[starts]
    after = data[np.minimum(starts + 1, len(data) - 1)]
    near = np.isin(byte, (0xE8, 0xE9, 0xEB)) | ((byte & 0xF0) == 0x70)
    far: NDArray[np.bool_] = (byte == 0x0F) & ((after & 0xF0) == 0x80)
    return np.asarray(near | far, dtype=np.bool_)


def _parents(
    starts: NDArray[np.int64], sizes: NDArray[np.int64], kinds: NDArray[np.uint8], branches: Branches
) -> NDArray[np.int64]:
    """Return for each fragment the function that first jumps to it, -1 if none is seen to."""
    fragment = tuple(FunctionKind).index(FunctionKind.FRAGMENT)
    parents = np.full(len(starts), -1, dtype=np.int64)
    for number in np.flatnonzero(kinds == fragment).tolist():
        into = branches.into(int(starts[number]), int(starts[number]) + 1)
        source = np.sort(branches.source[into][branches.kind[into] != CALL])
        holder = np.searchsorted(starts, source, side="right") - 1
        good = (holder >= 0) & (source < (starts + sizes)[holder])
        holder = holder[good & (kinds[holder] != fragment)]
        if len(holder):
            parents[number] = holder[0]
    return parents
