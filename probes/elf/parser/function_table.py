"""The functions of a binary: which one holds a place, and what it is called.

A function may be known by its range alone; then it is called ``module+0xoff``. Names are made when they are
asked for: a database server has 35,000.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

import numpy as np
from numpy.typing import NDArray

from specmine.probes.elf.demangle import display_name, is_cold, printable, without_parameters, without_return_type
from specmine.probes.elf.facts import FunctionFacts, FunctionKind

from .image import Image, SymbolTable

_WORD = re.compile(r"[A-Za-z0-9_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
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
    _sources: tuple[Names, ...]
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
        needles = [_literal(glob) for glob in globs]
        for number in range(len(self.starts)):
            if all(needles) and not self._may_match(number, needles):
                continue
            facts = self.facts(number)
            if facts.kind in (FunctionKind.FUNCTION, FunctionKind.IFUNC) and any(
                fnmatchcase(name, glob) for name in self._callings(number, facts) for glob in globs
            ):
                found.append(facts)
        return found

    def _may_match(self, number: int, needles: Sequence[str]) -> bool:
        """Tell, for a fraction of what its names cost, whether a function may be called by one of these words."""
        named = False
        for _, symbol in self._symbols(number):
            named = True
            if symbol.startswith("_") or any(needle in symbol for needle in needles):  # mangled names begin so
                return True
            if not symbol.isprintable():  # escaped later
                return True
        return not named

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


def _literal(glob: str) -> str:
    """Return the longest word that stands in every name that the glob matches, '' if none does for certain."""
    if "[" in glob:
        return ""
    return max(_WORD.findall(glob.partition(" (")[0].partition("(")[0]), key=len, default="")
