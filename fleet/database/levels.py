"""Three levels of time: rows of five minutes, hours of a lifetime, hours of the fleet; how they are read, and go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from specmine.fleet.codec import (
    decode_histograms,
    decode_path_numbers,
    decode_paths,
    decode_split,
    inflated,
    path_of,
)
from specmine.fleet.folding import FoldedRow
from specmine.model.call_path import CallPath
from specmine.model.observation import Kind, Observation
from specmine.store.inside_codec import decode_inside

from .connecting import Connection

_SELECTED = (
    "SELECT f.key AS function, l.key AS lifetime, l.build_id, o.function_id, o.lifetime_id, o.host_id, o.kind,"
    " o.start_ns, o.end_ns, o.ends_at, o.windows, o.calls, o.watched_ns, o.inner_calls, o.censored, o.bias_ns,"
    " o.uncertainty_ns, o.counts, o.split, o.paths, o.path_ids, o.inside"
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
    """Return a row of a level as a value, given the call paths by their numbers."""
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
            paths=() if row["paths"] is None
            else decode_paths(row["paths"], [paths[each] for each in decode_path_numbers(row["path_ids"])]),
        ),
    )  # fmt: skip


def paths_of(db: Connection, rows: Sequence[Mapping[str, Any]]) -> dict[int, CallPath]:
    """Return the call paths of some rows by their numbers."""
    wanted = {number for row in rows if row["path_ids"] is not None for number in decode_path_numbers(row["path_ids"])}
    found = db.execute("SELECT path_id, frames FROM path WHERE path_id = ANY(%s)", (sorted(wanted),))
    return {row["path_id"]: path_of(inflated(row["frames"])) for row in found}


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
