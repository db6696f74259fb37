"""How the store stays small: old observations merge ten to one, and the oldest go when it is full."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from specmine.model.batch import boot_of
from specmine.model.pooling import pooled

from .statements import deletion_of_old, insertion, names_of
from .table import Database, Table, WriteContext
from .tables.observations import OBSERVATIONS

MERGED_TO_ONE = 10
_FULL = 0.9  # of the limit: the write-ahead log needs room next to the file
_MOST_FUNCTIONS = 50_000
_CLOCKS_DIFFER_NS = 3_600 * 10**9  # a store may hold windows of other hosts
_AT_ONCE = 2000  # rows merged in one transaction, so that no transaction is long


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How much is stored for how long."""

    limit_bytes: int = 512 << 20
    merge_after_ns: int = 3_600 * 10**9
    merge_again_after_ns: int = 86_400 * 10**9


def merge_old(db: Database, retention: Retention, now_utc_ns: int) -> int:
    """Merge what is old enough, one bounded portion a call; return how many rows were merged away."""
    gone = 0
    for merges, age_ns in enumerate((retention.merge_after_ns, retention.merge_again_after_ns)):
        gone += _merge_level(db, merges, now_utc_ns - age_ns)
    return gone


def _merge_level(db: Database, merges: int, before_utc_ns: int) -> int:
    rows = db.execute(
        "SELECT id, function, lifetime, kind FROM observations"
        " WHERE merges = :merges AND end_utc_ns < :before ORDER BY end_utc_ns, id",
        {"merges": merges, "before": before_utc_ns},
    )
    groups: dict[tuple[str, str, str], list[int]] = defaultdict(list)
    portions: list[list[int]] = []
    for row in rows:
        key = row["function"], row["lifetime"], row["kind"]
        groups[key].append(row["id"])
        if len(groups[key]) == MERGED_TO_ONE:
            portions.append(groups.pop(key))
            if len(portions) * MERGED_TO_ONE >= _AT_ONCE:
                break
    for portion in portions:
        _merge_rows(db, portion, merges)
    return len(portions) * (MERGED_TO_ONE - 1)


def _merge_rows(db: Database, ids: list[int], merges: int) -> None:
    chosen = ", ".join(map(str, ids))
    rows = db.execute(
        f"SELECT {names_of(OBSERVATIONS)} FROM observations WHERE id IN ({chosen}) ORDER BY end_utc_ns, id"
    )
    windows, ends = [], {}
    for row in rows:
        with contextlib.suppress(ValueError):  # a damaged row is lost, its neighbours need not be
            windows.append(OBSERVATIONS.record_of(row))
            ends[boot_of(row["lifetime"])] = row["end_utc_ns"] - row["end_ns"]
    if windows:
        row = OBSERVATIONS.row(pooled(windows), WriteContext(utc_ns=0, offsets=ends))
        db.execute(insertion(OBSERVATIONS), row | {"merges": merges + 1})
    db.execute(f"DELETE FROM observations WHERE id IN ({chosen})")


def delete_oldest(
    db: Database, tables: Sequence[Table[Any]], retention: Retention, used_bytes: Callable[[], int], now_utc_ns: int
) -> int:
    """Delete the oldest rows until the store fits its limits; return how many observations were deleted.

    Windows of the future go first: they were dated by a clock that was wrong, and would outlast all that come.
    """
    gone, future_ns = 0, now_utc_ns + _CLOCKS_DIFFER_NS
    while used_bytes() > retention.limit_bytes * _FULL:
        count = _number(db, "observations")
        if count == 0:
            break
        deleted = db.execute(
            "DELETE FROM observations WHERE id IN"
            " (SELECT id FROM observations ORDER BY end_utc_ns <= :future, end_utc_ns, id LIMIT :most)",
            {"most": max(1, count // 20), "future": future_ns},
        )
        gone += deleted.rowcount
    for table in tables:
        if table.most is not None:
            db.execute(deletion_of_old(table), {"most": table.most})
    if _number(db, "functions") > _MOST_FUNCTIONS:
        db.execute(
            "DELETE FROM functions WHERE key NOT IN (SELECT function FROM states)"
            " AND key NOT IN (SELECT function FROM observations)"
            " AND key NOT IN (SELECT function FROM summaries)"
            " AND key NOT IN (SELECT function FROM violations)"
        )
    return gone


def _number(db: Database, table: str) -> int:
    return int(db.execute(f"SELECT count(*) AS number FROM {table}").fetchone()["number"])
