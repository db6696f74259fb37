"""The numbers of functions, call paths and lifetimes in the database: found, or given when they are new.

What has a number is looked for before it is inserted: an insertion that finds its row takes a number from the sequence
all the same, and those are bounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from specmine.fleet.codec import deflated, frames_bytes, path_hash
from specmine.fleet.row_tables import PathTable
from specmine.fleet.varints import Places
from specmine.model.call_path import CallPath

from .connecting import Connection

_MOST_KNOWN = 1_000_000


@dataclass(slots=True)
class Known:
    """Numbers that one connection has read: of what is never deleted."""

    functions: dict[str, int] = field(default_factory=dict)
    _frames: dict[tuple[str, str], int] = field(default_factory=dict)
    _paths: dict[bytes, int] = field(default_factory=dict)

    def forget(self) -> None:
        """Know nothing: a transaction was undone, and its numbers with it."""
        self.functions.clear()
        self._frames.clear()
        self._paths.clear()

    def function_ids(self, db: Connection, keys: Iterable[str]) -> Mapping[str, int]:
        """Return the numbers of functions, given their keys; maybe of more."""
        new = sorted(set(keys) - self.functions.keys())
        if new:
            there = "SELECT function_id, key FROM function WHERE key = ANY(%s)"
            found = {row["key"]: row["function_id"] for row in db.execute(there, (new,))}
            missing = [each for each in new if each not in found]
            if missing:
                db.execute("INSERT INTO function(key) SELECT unnest(%s::text[]) ON CONFLICT DO NOTHING", (missing,))
                found |= {row["key"]: row["function_id"] for row in db.execute(there, (missing,))}
            if len(self.functions) > _MOST_KNOWN:
                self.forget()
            self.functions |= found
        return self.functions

    def path_ids(self, db: Connection, table: PathTable) -> Places:
        """Return the number of each call path of a push."""
        if len(self._paths) > _MOST_KNOWN or len(self._frames) > _MOST_KNOWN:
            self._frames.clear()
            self._paths.clear()
        places = list(map(self._frames.get, table.frames))
        if None in places:
            places = [self._frames.setdefault(each, len(self._frames)) for each in table.frames]
        numbers = np.array(places, np.int32)
        data = numbers[table.places].tobytes() if len(table.places) else b""
        ends = (4 * np.cumsum(table.sizes)).tolist()
        keys = [
            (b"+" if complete else b"-") + data[start:end]
            for complete, start, end in zip(table.complete.tolist(), [0, *ends], ends, strict=False)
        ]
        found = list(map(self._paths.get, keys))
        if None in found:
            new = {key: at for at, (key, each) in enumerate(zip(keys, found, strict=True)) if each is None}
            self._paths |= _put_paths(db, dict(zip(new, table.paths(new.values()), strict=True)))
            found = list(map(self._paths.get, keys))
        return np.array(found, np.int64)


def _put_paths(db: Connection, paths: Mapping[bytes, CallPath]) -> dict[bytes, int]:
    """Write the paths that are new; return the number of each."""
    hashes = {key: path_hash(path) for key, path in paths.items()}
    there = _path_ids(db, hashes.values())
    new = {hashes[key]: path for key, path in paths.items() if hashes[key] not in there}
    if new:
        with db.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO path(hash, complete, frames) VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
                [(one, path.complete, deflated(frames_bytes(path))) for one, path in new.items()],
            )
        there |= _path_ids(db, new)
    return {key: there[one] for key, one in hashes.items()}


def _path_ids(db: Connection, hashes: Iterable[int]) -> dict[int, int]:
    rows = db.execute("SELECT hash, path_id FROM path WHERE hash = ANY(%s)", (list(hashes),))
    return {row["hash"]: row["path_id"] for row in rows}


def lifetime_ids(db: Connection, wanted: Mapping[str, tuple[int, str]]) -> dict[str, int]:
    """Return the number of each lifetime, given its host and its build, which is empty where it is not known yet."""
    there = _lifetimes(db, wanted)
    told = {key: build for key, (_, build) in wanted.items() if build and key in there and not there[key]["build_id"]}
    if told:
        db.execute(
            "UPDATE lifetime l SET build_id = t.build_id FROM unnest(%s::text[], %s::text[]) AS t(key, build_id)"
            " WHERE l.key = t.key",
            (list(told), list(told.values())),
        )
    new = sorted(key for key in wanted if key not in there)
    if new:
        db.execute(
            "INSERT INTO lifetime(host_id, key, build_id) SELECT * FROM unnest(%s::int[], %s::text[], %s::text[])"
            " ON CONFLICT DO NOTHING",
            ([wanted[key][0] for key in new], new, [wanted[key][1] for key in new]),
        )
        there |= _lifetimes(db, new)
    return {key: row["lifetime_id"] for key, row in there.items()}


def _lifetimes(db: Connection, keys: Iterable[str]) -> dict[str, dict[str, Any]]:
    rows = db.execute("SELECT lifetime_id, key, build_id FROM lifetime WHERE key = ANY(%s)", (list(keys),))
    return {row["key"]: row for row in rows}
