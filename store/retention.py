"""How the store stays small: old observations merge ten to one, and the oldest go when it is full."""

from __future__ import annotations

import contextlib
import sqlite3
from collections import defaultdict
from dataclasses import dataclass

from specmine.model.pooling import pooled

from .tables import observation_of, put_observations

MERGED_TO_ONE = 10
_FULL = 0.9  # of the limit: the write-ahead log needs room beside the file
_MOST_VERDICTS = 100_000
_MOST_LIFETIMES = 10_000
_MOST_STATES = 5_000
_MOST_FUNCTIONS = 50_000
_AT_ONCE = 2000  # rows merged in one transaction, so that no transaction is long


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """What is kept for how long."""

    limit_bytes: int = 512 << 20
    merge_after_ns: int = 3_600 * 10**9
    merge_again_after_ns: int = 86_400 * 10**9


def merge_old(db: sqlite3.Connection, retention: Retention, now_utc_ns: int) -> int:
    """Merge what is old enough, one bounded portion a call; return how many rows were merged away."""
    gone = 0
    for merges, age_ns in enumerate((retention.merge_after_ns, retention.merge_again_after_ns)):
        gone += _merge_level(db, merges, now_utc_ns - age_ns)
    return gone


def _merge_level(db: sqlite3.Connection, merges: int, before_utc_ns: int) -> int:
    rows = db.execute(
        "SELECT id, function, lifetime, kind FROM observations INDEXED BY observations_by_age"
        " WHERE merges = ? AND end_utc_ns < ? ORDER BY end_utc_ns, id",
        (merges, before_utc_ns),
    )
    groups: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    portions: list[list[int]] = []
    for number, function, lifetime, kind in rows:
        group = groups[function, lifetime, kind]
        group.append(number)
        if len(group) == MERGED_TO_ONE:
            portions.append(groups.pop((function, lifetime, kind)))
            if len(portions) * MERGED_TO_ONE >= _AT_ONCE:
                break
    for portion in portions:
        _merge_rows(db, portion, merges)
    return len(portions) * (MERGED_TO_ONE - 1)


def _merge_rows(db: sqlite3.Connection, ids: list[int], merges: int) -> None:
    marks = ", ".join("?" * len(ids))
    query = f"SELECT * FROM observations WHERE id IN ({marks}) ORDER BY end_utc_ns, id"
    found = db.execute(query, ids).fetchall()
    whole = []
    for row in found:
        with contextlib.suppress(ValueError):  # a damaged row is lost, its neighbours need not be
            whole.append(observation_of(row))
    if whole:
        put_observations(db, [pooled(whole)], merges=merges + 1)
    db.execute(f"DELETE FROM observations WHERE id IN ({marks})", ids)


def used_bytes(db: sqlite3.Connection) -> int:
    """Return the bytes of the pages in use."""
    pages, free, size = (_pragma(db, name) for name in ("page_count", "freelist_count", "page_size"))
    return (pages - free) * size


def drop_oldest(db: sqlite3.Connection, retention: Retention) -> int:
    """Delete the oldest observations until the store fits its limit; return how many went."""
    gone = 0
    while used_bytes(db) > retention.limit_bytes * _FULL:
        count = db.execute("SELECT count(*) FROM observations").fetchone()[0]
        if count == 0:
            break
        deleted = db.execute(
            "DELETE FROM observations WHERE id IN (SELECT id FROM observations ORDER BY end_utc_ns, id LIMIT ?)",
            (max(1, count // 20),),
        )
        gone += deleted.rowcount
    db.execute("DELETE FROM verdicts WHERE id <= (SELECT max(id) FROM verdicts) - ?", (_MOST_VERDICTS,))
    db.execute(
        "DELETE FROM lifetimes WHERE id NOT IN (SELECT lifetime FROM observations)"
        " AND id NOT IN (SELECT lifetime FROM summaries)"
        " AND id NOT IN (SELECT id FROM lifetimes ORDER BY start_ns DESC LIMIT ?)",
        (_MOST_LIFETIMES,),
    )
    db.execute(
        "DELETE FROM states WHERE function NOT IN (SELECT function FROM states ORDER BY updated_utc_ns DESC LIMIT ?)",
        (_MOST_STATES,),
    )
    if db.execute("SELECT count(*) FROM functions").fetchone()[0] > _MOST_FUNCTIONS:
        db.execute(
            "DELETE FROM functions WHERE key NOT IN (SELECT function FROM states)"
            " AND key NOT IN (SELECT function FROM observations)"
            " AND key NOT IN (SELECT function FROM summaries)"
        )
    return gone


def _pragma(db: sqlite3.Connection, name: str) -> int:
    return int(db.execute(f"PRAGMA {name}").fetchone()[0])
