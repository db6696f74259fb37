"""Hours of a lifetime and of the fleet, folded from rows of five minutes.

An hour is folded when it is over for a quarter of an hour. What comes later is folded into further rows of that hour.
One process folds at a time, and no load is under way when an hour is begun, so which rows it has is known by the number
of their load. A fold holds some thousand rows at once, however many hosts there are; between them pushes are loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from specmine.fleet.codec import encode_histograms, encode_path_numbers, encode_paths, encode_split
from specmine.fleet.sums import RowBytes, summed
from specmine.model.call_path import CallPath, Frame
from specmine.model.pooling import pooled
from specmine.store.inside_codec import encode_inside

from .connecting import Connection
from .copying import ROW_COLUMNS, byte_strings, copy_lines, lines_of, real_numbers, times, whole_numbers
from .levels import row_of

_LATE = timedelta(minutes=15)
"""An hour is folded so long after its end: hosts send each five minutes."""
_AT_ONCE = 4000
_ROWS = (
    "SELECT o.function_id, o.lifetime_id, o.host_id, o.kind, l.build_id, o.start_ns, o.end_ns, o.windows, o.calls,"
    " o.timed, o.watched_ns, o.inner_calls, o.censored, o.bias_ns, o.uncertainty_ns, o.counts, o.split, o.paths,"
    " o.path_ids, o.inside, (extract(epoch FROM o.ends_at) * 1000000)::bigint AS ends_us"
    " FROM {table} o JOIN lifetime l USING (lifetime_id) JOIN host h ON h.host_id = o.host_id"
    " WHERE o.ends_at >= %(hour)s AND o.ends_at < %(end)s AND {condition} ORDER BY {order}, o.end_ns, o.start_ns"
)
_LIFETIME_KEY = ("function_id", "lifetime_id", "kind")
_FLEET_KEY = ("function_id", "build_id", "kind")
_FLEET_COLUMNS = (
    "function_id", "build_id", "kind", "hour", "hosts", "lifetimes", "calls", "timed", "watched_ns", "bias_ns",
    "uncertainty_ns", "counts", "paths", "path_ids",
)  # fmt: skip
_SUMS = ("windows", "calls", "timed", "watched_ns", "inner_calls", "censored")
_Row = Mapping[str, Any]


def fold_hours(db: Connection, now: datetime, *, most: int = 48, between: Callable[[], None] = lambda: None) -> int:
    """Fold the hours that are over and have rows that are not folded yet; return how many hours.

    Parameters
    ----------
    db : Connection
    now : datetime
        The database's clock.
    most : int
        Hours folded in one go.
    between : callable
        Called after each few thousand rows. It may write over another connection, and must not wait for this one.
    """
    hours = db.execute(
        "SELECT h.hour, h.folded_load FROM hour h WHERE h.hour <= %s AND EXISTS (SELECT 1 FROM observation o WHERE"
        " o.ends_at >= h.hour AND o.ends_at < h.hour + interval '1 hour' AND o.load_id > h.folded_load)"
        " ORDER BY h.hour LIMIT %s",
        (now - _LATE - timedelta(hours=1), most),
    ).fetchall()
    for each in hours:
        with db.transaction():
            _fold_hour(db, each["hour"], each["folded_load"], between)
    return len(hours)


def _fold_hour(db: Connection, hour: datetime, folded_load: int, between: Callable[[], None]) -> None:
    end = hour + timedelta(hours=1)
    span = {"hour": hour, "end": end, "folded": folded_load}
    last = db.execute(
        "SELECT coalesce(max(load_id), 0) AS last FROM observation WHERE ends_at >= %(hour)s AND ends_at < %(end)s",
        span,
    ).fetchone()["last"]  # type: ignore[index]
    db.execute("SELECT ensure_partition('host_hour', %s)", (hour,))
    new = "o.load_id > %(folded)s AND o.load_id <= %(last)s"
    for groups in _groups(db, "observation", new, _LIFETIME_KEY, {**span, "last": last}):
        copy_lines(db, "host_hour", _hour_lines(groups, last))
        between()
    db.execute("DELETE FROM fleet_hour WHERE hour = %s", (hour,))
    for groups in _groups(db, "host_hour", "h.state = 'active'", _FLEET_KEY, span):
        copy_lines(db, "fleet_hour", _fleet_lines(groups, hour), _FLEET_COLUMNS)
        between()
    db.execute("UPDATE hour SET folded_load = %s WHERE hour = %s", (last, hour))


def _groups(
    db: Connection, table: str, condition: str, key: Sequence[str], values: Mapping[str, Any]
) -> Iterator[list[list[_Row]]]:
    """Yield groups of rows that have the same key, some thousand rows at a time."""
    order = ", ".join(f"l.{name}" if name == "build_id" else f"o.{name}" for name in key)
    with db.cursor("rows", binary=True) as cursor:
        cursor.itersize = _AT_ONCE
        cursor.execute(_ROWS.format(table=table, condition=condition, order=order), values)
        groups: list[list[_Row]] = []
        number, last = 0, None
        for row in cursor:
            this = tuple(row[name] for name in key)
            if this != last:
                if number >= _AT_ONCE:
                    yield groups
                    groups, number = [], 0
                groups.append([])
                last = this
            groups[-1].append(row)
            number += 1
    if groups:
        yield groups


def _hour_lines(groups: Sequence[Sequence[_Row]], load_id: int) -> list[str]:
    rows = [row for group in groups for row in group]
    first = [group[0] for group in groups]
    sums = _sums(groups, rows)
    starts = _starts(groups)
    whole = [_summed(group) if _needs_all(group) else each for group, each in zip(groups, sums, strict=True)]
    parts = [(None, None) if isinstance(each, RowBytes) else each[1:] for each in whole]
    columns = {
        **_columns(rows, groups),
        **{name: whole_numbers([row[name] for row in first]) for name in ("function_id", "lifetime_id", "host_id")},
        "kind": [row["kind"] for row in first],
        "start_ns": whole_numbers(np.minimum.reduceat(_array(rows, "start_ns"), starts)),
        "end_ns": whole_numbers(np.maximum.reduceat(_array(rows, "end_ns"), starts)),
        "ends_at": times(np.maximum.reduceat(_array(rows, "ends_us"), starts)),
        "load_id": [str(load_id)] * len(groups),
        "split": byte_strings(split for split, _ in parts),
        "inside": byte_strings(inside for _, inside in parts),
        **_byte_columns([each if isinstance(each, RowBytes) else each[0] for each in whole]),
    }
    return lines_of(columns, ROW_COLUMNS)


def _fleet_lines(groups: Sequence[Sequence[_Row]], hour: datetime) -> list[str]:
    rows = [row for group in groups for row in group]
    first = [group[0] for group in groups]
    columns = {
        **_columns(rows, groups),
        "function_id": whole_numbers([row["function_id"] for row in first]),
        "build_id": [_text(row["build_id"]) for row in first],
        "kind": [row["kind"] for row in first],
        "hour": [hour.isoformat()] * len(groups),
        "hosts": whole_numbers([len({row["host_id"] for row in group}) for group in groups]),
        "lifetimes": whole_numbers([len({row["lifetime_id"] for row in group}) for group in groups]),
        **_byte_columns(_sums(groups, rows)),
    }
    return lines_of(columns, _FLEET_COLUMNS)


def _sums(groups: Sequence[Sequence[_Row]], rows: Sequence[_Row]) -> list[RowBytes]:
    group = np.repeat(np.arange(len(groups)), [len(each) for each in groups])
    return summed(
        [RowBytes(counts=row["counts"], paths=row["paths"], path_ids=row["path_ids"]) for row in rows],
        group,
        len(groups),
    )


def _needs_all(group: Sequence[_Row]) -> bool:
    """Whether rows have more than histograms."""
    return any(row["split"] is not None or row["inside"] is not None for row in group)


def _summed(group: Sequence[_Row]) -> tuple[RowBytes, bytes | None, bytes | None]:
    """Return the sum of rows that have a split of time, or what happened inside their calls: value by value."""
    paths = _StandIns()
    values = [row_of({**row, "function": "-", "lifetime": "-"}, paths).observation for row in group]
    seen = pooled(values) if len(values) > 1 else values[0]
    whole = RowBytes(
        counts=encode_histograms((seen.histogram,)),
        paths=encode_paths(seen.paths) if seen.paths else None,
        path_ids=encode_path_numbers([int(one.path.frames[0].name) for one in seen.paths]) if seen.paths else None,
    )
    return (
        whole,
        None if seen.split is None else encode_split(seen.split),
        encode_inside(seen.inside) if seen.inside else None,
    )


class _StandIns(dict[int, CallPath]):
    """A path for each number that has its number as name: adding up asks for no more."""

    def __missing__(self, number: int) -> CallPath:
        self[number] = CallPath((Frame(f"{number:012}", ""),))
        return self[number]


def _columns(rows: Sequence[_Row], groups: Sequence[Sequence[_Row]]) -> dict[str, Sequence[str]]:
    """Return the columns of both levels that are numbers."""
    starts = _starts(groups)
    sums = {name: np.add.reduceat(_array(rows, name), starts) for name in _SUMS}
    bias, timed = np.array([row["bias_ns"] for row in rows]), _array(rows, "timed")
    first = np.array([group[0]["bias_ns"] for group in groups])
    weighted = np.add.reduceat(bias * timed, starts) / np.maximum(1, sums["timed"])
    uncertainty = np.maximum.reduceat(np.array([row["uncertainty_ns"] for row in rows]), starts)
    return {
        **{name: whole_numbers(values) for name, values in sums.items()},
        "bias_ns": real_numbers(np.where(sums["timed"] > 0, weighted, first)),
        "uncertainty_ns": real_numbers(uncertainty),
    }


def _byte_columns(values: Sequence[RowBytes]) -> dict[str, Sequence[str]]:
    return {
        "counts": byte_strings(each.counts for each in values),
        "paths": byte_strings(each.paths for each in values),
        "path_ids": byte_strings(each.path_ids for each in values),
    }


def _array(rows: Sequence[_Row], name: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([row[name] for row in rows], np.int64)


def _starts(groups: Sequence[Sequence[_Row]]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    sizes = np.array([len(each) for each in groups], np.int64)
    return np.cumsum(sizes) - sizes


def _text(value: str) -> str:
    """Return text as COPY reads it."""
    return value.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
