"""Three levels of time: rows of five minutes, hours of a lifetime, hours of the fleet; and how old ones go.

An hour is folded when it is over for a quarter of an hour. What comes later is folded into further rows of that hour.
One process folds at a time, after it has loaded, so which rows an hour has is known by the number of their load.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from specmine.fleet.codec import (
    decode_histograms,
    decode_paths,
    decode_split,
    encode_histograms,
    encode_paths,
    inflated,
    path_of,
)
from specmine.fleet.folding import FoldedRow
from specmine.model.call_path import CallPath
from specmine.model.observation import Kind, Observation
from specmine.model.pooling import pooled
from specmine.store.inside_codec import decode_inside

from .connecting import Connection
from .loading import ROW_COLUMNS, copy_rows, row_values

_LATE = timedelta(minutes=15)
"""An hour is folded so long after its end: hosts send each five minutes."""
_SELECTED = (
    "SELECT f.key AS function, l.key AS lifetime, l.build_id, o.function_id, o.lifetime_id, o.host_id, o.kind,"
    " o.start_ns, o.end_ns, o.ends_at, o.windows, o.calls, o.watched_ns, o.inner_calls, o.censored, o.bias_ns,"
    " o.uncertainty_ns, o.counts, o.split, o.paths, o.inside"
)
SELECT_ROWS = f"{_SELECTED} FROM {{table}} o JOIN function f USING (function_id) JOIN lifetime l USING (lifetime_id)"
"""Rows of a level, as ``row_of`` takes them; a table is to be filled in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetRetention:
    """How long each level stays, and how much all of it may take."""

    observations: timedelta = timedelta(hours=48)
    host_hours: timedelta = timedelta(days=14)
    fleet_hours: timedelta = timedelta(days=400)
    limit_bytes: int = 100 << 30


def row_of(row: Mapping[str, Any], paths: Mapping[int, CallPath]) -> FoldedRow:
    """Return a row of a level as a value."""
    (histogram,) = decode_histograms(row["counts"], 1)
    return FoldedRow(
        windows=row["windows"],
        observation=Observation(
            function=row["function"], lifetime=row["lifetime"], kind=Kind(row["kind"]), start_ns=row["start_ns"],
            end_ns=row["end_ns"], histogram=histogram, calls=row["calls"], watched_ns=row["watched_ns"],
            inner=row["inner_calls"], censored=row["censored"], bias_ns=row["bias_ns"],
            uncertainty_ns=row["uncertainty_ns"],
            split=None if row["split"] is None else decode_split(row["split"]),
            inside=() if row["inside"] is None else decode_inside(row["inside"]),
            paths=() if row["paths"] is None else decode_paths(row["paths"], paths),
        ),
    )  # fmt: skip


def all_paths(db: Connection) -> dict[int, CallPath]:
    """Return every call path of the fleet by its number."""
    return {row["path_id"]: path_of(inflated(row["frames"])) for row in db.execute("SELECT path_id, frames FROM path")}


def fold_hours(db: Connection, now: datetime, *, most: int = 48) -> int:
    """Fold the hours that are over and have rows that are not folded yet; return how many hours.

    Parameters
    ----------
    db : Connection
    now : datetime
        The database's clock.
    most : int
        Hours folded in one go.
    """
    hours = db.execute(
        "SELECT h.hour, h.folded_load FROM hour h WHERE h.hour <= %s AND EXISTS (SELECT 1 FROM observation o WHERE"
        " o.ends_at >= h.hour AND o.ends_at < h.hour + interval '1 hour' AND o.load_id > h.folded_load)"
        " ORDER BY h.hour LIMIT %s",
        (now - _LATE - timedelta(hours=1), most),
    ).fetchall()
    for each in hours:
        with db.transaction():
            _fold_hour(db, each["hour"], each["folded_load"])
    return len(hours)


def _fold_hour(db: Connection, hour: datetime, folded_load: int) -> None:
    end = hour + timedelta(hours=1)
    last = db.execute(
        "SELECT coalesce(max(load_id), 0) AS last FROM observation WHERE ends_at >= %s AND ends_at < %s", (hour, end)
    ).fetchone()["last"]  # type: ignore[index]
    paths = all_paths(db)
    numbers = {path: number for number, path in paths.items()}
    rows = db.execute(
        SELECT_ROWS.format(table="observation")
        + " WHERE o.ends_at >= %s AND o.ends_at < %s AND o.load_id > %s AND o.load_id <= %s"
        " ORDER BY o.function_id, o.lifetime_id, o.kind, o.end_ns",
        (hour, end, folded_load, last),
    )
    db.execute("SELECT ensure_partition('host_hour', %s)", (hour,))
    copy_rows(db, "host_hour", [_hour_row(group, last, paths, numbers) for group in _grouped(rows, _LIFETIME_KEY)])
    _fold_fleet_hour(db, hour, paths)
    db.execute("UPDATE hour SET folded_load = %s WHERE hour = %s", (last, hour))


_LIFETIME_KEY = ("function_id", "lifetime_id", "kind")
_FLEET_KEY = ("function_id", "build_id", "kind")


def _grouped(rows: Iterable[dict[str, Any]], key: Sequence[str]) -> list[list[dict[str, Any]]]:
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in key), []).append(row)
    return list(groups.values())


def _joined(group: Sequence[Mapping[str, Any]], paths: Mapping[int, CallPath]) -> FoldedRow:
    values = [row_of(row, paths) for row in group]
    return FoldedRow(
        observation=pooled([each.observation for each in values]) if len(values) > 1 else values[0].observation,
        windows=sum(each.windows for each in values),
    )


def _hour_row(
    group: Sequence[Mapping[str, Any]], load_id: int, paths: Mapping[int, CallPath], numbers: Mapping[CallPath, int]
) -> tuple[Any, ...]:
    row, first = _joined(group, paths), group[0]
    seen = row.observation
    values = (
        first["function_id"], first["lifetime_id"], first["host_id"], first["kind"], seen.start_ns, seen.end_ns,
        max(each["ends_at"] for each in group), load_id, *row_values(row, numbers),
    )  # fmt: skip
    assert len(values) == len(ROW_COLUMNS)
    return values


def _fold_fleet_hour(db: Connection, hour: datetime, paths: Mapping[int, CallPath]) -> None:
    """Make the hour of the fleet anew, of hosts that are not quarantined."""
    numbers = {path: number for number, path in paths.items()}
    rows = db.execute(
        SELECT_ROWS.format(table="host_hour")
        + " JOIN host ON host.host_id = o.host_id WHERE o.ends_at >= %s AND o.ends_at < %s AND host.state = 'active'"
        " ORDER BY o.function_id, o.lifetime_id, o.kind, o.end_ns",
        (hour, hour + timedelta(hours=1)),
    )
    values = []
    for group in _grouped(rows, _FLEET_KEY):
        seen = _joined(group, paths).observation
        hosts, lifetimes = {each["host_id"] for each in group}, {each["lifetime_id"] for each in group}
        values.append((
            *(group[0][name] for name in _FLEET_KEY), hour, len(hosts), len(lifetimes), seen.calls, seen.timed,
            seen.watched_ns, seen.bias_ns, seen.uncertainty_ns, encode_histograms((seen.histogram,)),
            encode_paths(seen.paths, numbers) if seen.paths else None,
        ))  # fmt: skip
    db.execute("DELETE FROM fleet_hour WHERE hour = %s", (hour,))
    with db.cursor() as cursor:
        cursor.executemany(f"INSERT INTO fleet_hour VALUES ({', '.join(['%s'] * 13)})", values)


def drop_old(db: Connection, retention: FleetRetention, now: datetime) -> list[str]:
    """Drop what is too old, then the oldest of what does not fit, finest level first; return the partitions."""
    for table, column, age in (
        ("fleet_hour", "hour", retention.fleet_hours),
        ("hour", "hour", retention.host_hours),
        ("refused", "at", retention.host_hours),
    ):
        db.execute(f"DELETE FROM {table} WHERE {column} < %s", (now - age,))
    dropped = []
    there = db.execute("SELECT * FROM partitions()").fetchall()
    for level, age, days in (("observation", retention.observations, 1), ("host_hour", retention.host_hours, 7)):
        for each in [each for each in there if each["level"] == level]:
            if _begin(each["name"]) + timedelta(days=days) <= now.replace(tzinfo=None) - age:
                dropped.append(each)
    left = [each for each in there if each not in dropped]
    size = sum(each["bytes"] for each in left)
    # the newest partition of a level stays: rows still go there
    for level in ("observation", "host_hour"):
        for each in [each for each in left if each["level"] == level][:-1]:
            if size > retention.limit_bytes:
                dropped.append(each)
                size -= each["bytes"]
    for each in dropped:
        db.execute("SELECT drop_partition(%s)", (each["name"],))
    return [each["name"] for each in dropped]


def _begin(partition: str) -> datetime:
    return datetime.strptime(partition.rpartition("_")[2], "%Y%m%d")
