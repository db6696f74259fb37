"""What the spread of a function consists of, down its timed callees: one tree for terminal, page and picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from specmine.analysis.documents import Entry

from .inside import SpreadRow, spread_rows

DEEPEST = 4
"""Levels of the tree."""
NOTABLE = 0.02
"""Parts that account for less of the spread are left out, but for the largest."""

Key = tuple[str, str]
"""Name and module of a function."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """One part of the spread of the function above it."""

    row: SpreadRow
    lasts: tuple[bool, ...]
    """For each level down to this one: whether it is the last part there."""

    @property
    def depth(self) -> int:
        """Level, 1 for parts of the function itself."""
        return len(self.lasts)


def branches(entry: Entry, entries: Sequence[Entry]) -> list[Branch]:
    """Return the parts of the spread of a function, each with those below it; [] where it is not known.

    Parameters
    ----------
    entry : mapping
        The function.
    entries : sequence
        All functions: what is known of the callees.
    """
    return list(_below(entry, {_key(each): each for each in entries}, (), frozenset()))


def signed(part: float) -> str:
    """Write a share that may be negative: a part that is shorter in long calls."""
    return f"{part:.0%}".replace("%", " %").replace("-0 %", "0 %")


def _key(entry: Entry) -> Key:
    return str(entry.get("function")), str(entry.get("module"))


def _below(
    entry: Entry, by_key: Mapping[Key, Entry], lasts: tuple[bool, ...], above: frozenset[Key]
) -> Iterator[Branch]:
    found = spread_rows(entry)
    shown = [row for row in found if abs(row.variance) >= NOTABLE or (row.excess or 0.0) >= NOTABLE] or found[:1]
    above |= {_key(entry)}
    for at, row in enumerate(shown):
        here = (*lasts, at == len(shown) - 1)
        yield Branch(row=row, lasts=here)
        below = by_key.get(row.key) if row.key is not None and row.key not in above else None
        if below is not None and len(here) < DEEPEST:
            yield from _below(below, by_key, here, above)
