"""Durations of single calls per function and lifetime: the first in their order, and a fair sample."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from specmine.model.batch import CallSamples

from .codec import decode_durations, encode_durations

_MOST = 20_000
"""Functions and lifetimes kept, about 1 kB each; the oldest go first."""


def put_singles(db: sqlite3.Connection, singles: Iterable[CallSamples], utc_ns: int) -> None:
    """Replace what is kept of these functions and lifetimes, unless that stands for more calls."""
    db.executemany(
        "INSERT INTO singles VALUES(?, ?, ?, ?, ?, ?) ON CONFLICT(function, lifetime) DO UPDATE SET"
        " calls = excluded.calls, updated_utc_ns = excluded.updated_utc_ns, kept = excluded.kept,"
        " first = CASE WHEN length(excluded.first) >= length(first) THEN excluded.first ELSE first END"
        " WHERE excluded.calls >= calls",
        [
            (one.function, one.lifetime, one.calls, utc_ns, encode_durations(one.first), encode_durations(one.sample))
            for one in singles
        ],
    )


def load_singles(db: sqlite3.Connection) -> tuple[CallSamples, ...]:
    """Return all, in the order of functions and lifetimes; ValueError if one is damaged."""
    return tuple(
        CallSamples(function=function, lifetime=lifetime, calls=calls, first=decode_durations(first),
                sample=decode_durations(kept))
        for function, lifetime, calls, first, kept in db.execute(
            "SELECT function, lifetime, calls, first, kept FROM singles ORDER BY function, lifetime"
        )
    )  # fmt: skip


def drop_oldest_singles(db: sqlite3.Connection, most: int = _MOST) -> None:
    """Delete the oldest of what there is too much of."""
    if db.execute("SELECT count(*) FROM singles").fetchone()[0] > most:
        db.execute(
            "DELETE FROM singles WHERE (function, lifetime) IN"
            " (SELECT function, lifetime FROM singles ORDER BY updated_utc_ns DESC, function, lifetime"
            " LIMIT -1 OFFSET ?)",
            (most,),
        )
