"""The functions of a binary: which one holds a place, and what it is called.

A function may be known by its range alone; then it is called ``module+0xoff``. Names are made when they are
asked for: a database server has 35,000.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase

import numpy as np
from numpy.typing import NDArray

from specmine.model.errors import InputError
from specmine.probes.elf.demangle import (
    LONGEST,
    display_name,
    is_cold,
    printable,
    without_parameters,
    without_return_type,
)
from specmine.probes.elf.facts import FunctionFacts, FunctionKind

from .image import Image, SymbolTable

MOST_MATCHES = 100_000
"""Functions of one binary that globs may name; a watch over more of them would never end."""
_WITH_PARAMETERS = (")", "const", "&", "]")
"""How names end that may have parameters, which a glob need not name."""


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
        may_be_named = _name_test(globs, self.module)
        for number in range(len(self.starts)):
            if not self._may_match(number, may_be_named):
                continue
            facts = self.facts(number)
            if facts.kind in (FunctionKind.FUNCTION, FunctionKind.IFUNC) and any(
                fnmatchcase(name, glob) for name in self._callings(number, facts) for glob in globs
            ):
                found.append(facts)
                if len(found) > MOST_MATCHES:
                    raise InputError(f"more than {MOST_MATCHES:,} functions have such names", remedy="name fewer")
        return found

    def _may_match(self, number: int, may_be_named: Callable[[str], bool]) -> bool:
        """Tell, for a fraction of what its names cost, whether a function may be called by one of the globs."""
        named = False
        for _, symbol in self._symbols(number):
            named = True
            # mangled names begin with an underscore; what does not print is escaped later, what is long is cut
            if symbol[0] == "_" or may_be_named(symbol) or len(symbol) > LONGEST or not symbol.isprintable():
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
            if name.endswith(_WITH_PARAMETERS):
                bare = without_parameters(name)
                yield bare
                yield without_return_type(bare)
        for _, symbol in self._symbols(number):
            yield symbol


def _name_test(globs: Sequence[str], module: str) -> Callable[[str], bool]:
    """Return what tells of a symbol that is not mangled whether a name made of it matches a glob.

    The names made of it are the symbol itself, with and without what follows a dot or an ``@``, and both with the
    module. None is longer, so a glob that none of them fits has to fit none at all.
    """
    pattern = re.compile("|".join(f"(?:{fnmatch.translate(glob)})" for glob in globs) or r"(?!)").match
    suffix = f" ({module})"

    def may_be_named(symbol: str) -> bool:
        whole = display_name(symbol) if "." in symbol or "@" in symbol else symbol
        return bool(
            pattern(whole)
            or pattern(whole + suffix)
            or (whole is not symbol and pattern(symbol))
            or whole.endswith(_WITH_PARAMETERS)
        )

    return may_be_named
