"""The kernel's call paths by their ids: each is told once, kept as long as it is used, and their number is bounded.

The kernel tells a path when it meets it first and notes that in ``seen_paths``. When many have been told, both sides
forget at once: the kernel tells again what it meets again, and what was asked for here since the last time is kept,
for calls that were open meanwhile.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from specmine.probes.kernel.structs import PATH

_HEAD = struct.Struct("<QQIIHHI")
assert PATH.fields is not None and PATH.fields["address"][1] == _HEAD.size


@dataclass(frozen=True, slots=True)
class RawPath:
    """A path as the kernel told it."""

    parent: int
    """Id of the path that goes on from here, 0: none."""
    tgid: int
    layout: int
    outcome: int
    addresses: tuple[int, ...]
    """Innermost first."""


class Paths:
    """Paths by id, in two generations."""

    def __init__(self, limit: int) -> None:
        """Hold none; ``limit`` is the number told after which ``full`` is true."""
        self._limit = limit
        self._young: dict[int, bytes] = {}
        self._old: dict[int, bytes] = {}
        self._told = 0

    def __len__(self) -> int:
        """Return how many are held."""
        return len(self._young) + len(self._old)

    def learn(self, records: Iterable[bytes]) -> list[RawPath]:
        """Take in records of the kernel's ring buffer; return what they say."""
        fresh = []
        for record in records:
            id, _, _, _, count, _, _ = _HEAD.unpack_from(record)
            self._young[id] = kept = record[: _HEAD.size + 8 * count]
            self._told += 1
            fresh.append(_parsed(kept))
        return fresh

    def get(self, id: int) -> RawPath | None:
        """Return a path, None if it was never told or is forgotten."""
        record = self._young.get(id)
        if record is None:
            record = self._old.pop(id, None)
            if record is None:
                return None
            self._young[id] = record
        return _parsed(record)

    def forget(self, layouts: Collection[int]) -> None:
        """Forget the paths through layouts whose numbers others get."""
        self._young = {id: kept for id, kept in self._young.items() if _HEAD.unpack_from(kept)[3] not in layouts}
        self._old = {id: kept for id, kept in self._old.items() if _HEAD.unpack_from(kept)[3] not in layouts}

    @property
    def full(self) -> bool:
        """True if the kernel should forget what it has told, and then ``turn`` be called."""
        return self._told >= self._limit

    def fill(self) -> None:
        """Have the kernel tell all paths again."""
        self._told = self._limit

    def turn(self) -> None:
        """Forget what was not asked for since the last turn."""
        self._old, self._young, self._told = self._young, {}, 0


def _parsed(record: bytes) -> RawPath:
    _, parent, tgid, layout, count, outcome, _ = _HEAD.unpack_from(record)
    return RawPath(parent, tgid, layout, outcome, struct.unpack_from(f"<{count}Q", record, _HEAD.size))
