"""What was known of a host when, and when experiments loaded it: so each observation has its environment.

The vector of a boot is a row when it changes; an observation's is the newest row of its boot that is not younger than
its end, or the boot's first if it was made before anything was known.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_MOST_VECTORS, _MOST_MARKS = 2_000, 20_000

TABLES = """
CREATE TABLE environments(
    boot_id TEXT NOT NULL, since_utc_ns INTEGER NOT NULL, document TEXT NOT NULL, PRIMARY KEY(boot_id, since_utc_ns)
) WITHOUT ROWID;
-- when an experiment loaded CPUs, CLOCK_MONOTONIC of its boot: calls meanwhile are not as usual
CREATE TABLE marks(
    boot_id TEXT NOT NULL, start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, name TEXT NOT NULL, cpus TEXT NOT NULL,
    PRIMARY KEY(boot_id, start_ns, name)
) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vector:
    """What was known of a host from a time on."""

    boot_id: str
    since_utc_ns: int
    document: Mapping[str, Any]
    """A ``specmine.environment/1``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """A window of time in which an experiment loaded CPUs."""

    boot_id: str
    start_ns: int
    """CLOCK_MONOTONIC of its boot."""
    end_ns: int
    name: str
    cpus: tuple[int, ...] = ()


def put_vectors(db: sqlite3.Connection, vectors: Iterable[Vector]) -> None:
    """Append vectors; one that repeats the last of its boot is left out."""
    for each in vectors:
        text = json.dumps(each.document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        last = db.execute(
            "SELECT document FROM environments WHERE boot_id = ? ORDER BY since_utc_ns DESC LIMIT 1", (each.boot_id,)
        ).fetchone()
        if last is None or last[0] != text:
            db.execute("INSERT OR REPLACE INTO environments VALUES(?, ?, ?)", (each.boot_id, each.since_utc_ns, text))


def put_marks(db: sqlite3.Connection, marks: Iterable[Marked]) -> None:
    """Insert or replace windows."""
    rows = ((each.boot_id, each.start_ns, each.end_ns, each.name, json.dumps(list(each.cpus))) for each in marks)
    db.executemany("INSERT OR REPLACE INTO marks VALUES(?, ?, ?, ?, ?)", rows)


def load_vectors(db: sqlite3.Connection) -> tuple[Vector, ...]:
    """Return all vectors, oldest first in each boot."""
    rows = db.execute("SELECT boot_id, since_utc_ns, document FROM environments ORDER BY boot_id, since_utc_ns")
    return tuple(Vector(boot_id=boot, since_utc_ns=since, document=json.loads(text)) for boot, since, text in rows)


def load_marks(db: sqlite3.Connection) -> tuple[Marked, ...]:
    """Return all windows, oldest first in each boot."""
    rows = db.execute("SELECT boot_id, start_ns, end_ns, name, cpus FROM marks ORDER BY boot_id, start_ns, name")
    return tuple(
        Marked(boot_id=boot, start_ns=start, end_ns=end, name=name, cpus=tuple(json.loads(cpus)))
        for boot, start, end, name, cpus in rows
    )


def drop_oldest_surveys(db: sqlite3.Connection) -> None:
    """Delete the oldest of what there is too much of."""
    for table, order, most in (("environments", "since_utc_ns", _MOST_VECTORS), ("marks", "start_ns", _MOST_MARKS)):
        if db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] > most:
            bound = f"SELECT {order} FROM {table} ORDER BY {order} DESC LIMIT 1 OFFSET ?"
            db.execute(f"DELETE FROM {table} WHERE {order} < ({bound})", (most,))


def vector_at(vectors: Iterable[Vector], boot_id: str, utc_ns: int) -> Mapping[str, Any] | None:
    """Return what was known of a boot's host at a time, None if nothing ever was."""
    own = sorted((each for each in vectors if each.boot_id == boot_id), key=lambda each: each.since_utc_ns)
    before = [each for each in own if each.since_utc_ns <= utc_ns]
    chosen = before[-1] if before else own[0] if own else None
    return chosen.document if chosen else None


def marks_during(marks: Iterable[Marked], boot_id: str, start_ns: int, end_ns: int) -> tuple[str, ...]:
    """Return the experiments that ran during a window of a boot, by name."""
    hit = {each.name for each in marks if each.boot_id == boot_id and each.start_ns < end_ns and each.end_ns > start_ns}
    return tuple(sorted(hit))
