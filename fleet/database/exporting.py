"""The levels of a fleet as Parquet files: names, times and medians as plain columns, for other tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from specmine.fleet.codec import decode_histograms
from specmine.model.errors import HostError, InputError
from specmine.model.function import Function
from specmine.model.histogram import Histogram
from specmine.model.json_codec import decode

from .connecting import Connection
from .storing import document

LEVELS = ("observation", "host_hour", "fleet_hour")
_AT_ONCE = 10_000
_OF_HOSTS = (
    "SELECT f.key, h.name AS host, l.key AS lifetime, l.build_id, o.kind, o.ends_at AS at, o.windows, o.calls, o.timed,"
    " o.watched_ns, o.bias_ns, o.counts FROM {level} o JOIN function f USING (function_id)"
    " JOIN lifetime l USING (lifetime_id) JOIN host h ON h.host_id = o.host_id"
    " WHERE %(since)s::interval IS NULL OR o.ends_at >= now() - %(since)s::interval ORDER BY f.key, o.ends_at, l.key"
)
_OF_FLEET = (
    "SELECT f.key, o.build_id, o.kind, o.hour AS at, o.hosts, o.lifetimes, o.calls, o.timed, o.watched_ns, o.bias_ns,"
    " o.counts FROM fleet_hour o JOIN function f USING (function_id)"
    " WHERE %(since)s::interval IS NULL OR o.hour >= now() - %(since)s::interval ORDER BY f.key, o.hour, o.build_id"
)


def rows_of(db: Connection, level: str, since: timedelta | None) -> Iterator[dict[str, Any]]:
    """Yield the rows of a level: names, quantiles in seconds less the probes' cost, histograms as two lists."""
    names = _names(db)
    query = _OF_FLEET if level == "fleet_hour" else _OF_HOSTS.format(level=level)
    with db.transaction(), db.cursor("rows") as cursor:
        cursor.itersize = _AT_ONCE
        cursor.execute(query, {"since": since})
        for row in cursor:
            yield _plain(row, names)


def export_parquet(db: Connection, folder: Path, since: timedelta | None) -> dict[str, int]:
    """Write ``observation.parquet``, ``host_hour.parquet`` and ``fleet_hour.parquet``; return their numbers of rows.

    Raises
    ------
    HostError
        If pyarrow is missing.
    InputError
        If the folder cannot be written.
    """
    try:
        import pyarrow  # noqa: PLC0415
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError as error:
        raise HostError(
            "Parquet needs the package pyarrow", remedy="install it with: pip install 'specmine[parquet]'"
        ) from error
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return {level: _written(pyarrow, folder / f"{level}.parquet", rows_of(db, level, since)) for level in LEVELS}
    except OSError as error:
        raise InputError(f"cannot write {folder}: {error.strerror or error}") from error


def _written(pyarrow: Any, path: Path, rows: Iterator[Mapping[str, Any]]) -> int:
    number, writer, batch = 0, None, []
    for row in rows:
        batch.append(row)
        number += 1
        if len(batch) == _AT_ONCE:
            writer = _put(pyarrow, path, writer, batch)
            batch = []
    if batch:
        writer = _put(pyarrow, path, writer, batch)
    if writer is not None:
        writer.close()
    return number


def _put(pyarrow: Any, path: Path, writer: Any, batch: list[Mapping[str, Any]]) -> Any:
    table = pyarrow.Table.from_pylist(batch)
    if writer is None:
        writer = pyarrow.parquet.ParquetWriter(path, table.schema)
    writer.write_table(table.cast(writer.schema))
    return writer


def _names(db: Connection) -> dict[str, tuple[str, str]]:
    rows = db.execute("SELECT DISTINCT ON (key) key, document FROM held WHERE what = 'Function' ORDER BY key, host_id")
    functions: list[Function] = [decode(Function, document(row["document"])) for row in rows]
    return {each.key: (each.name, each.module) for each in functions}


def _plain(row: Mapping[str, Any], names: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    (histogram,) = decode_histograms(row["counts"], 1)
    function, module = names.get(row["key"], ("", ""))
    kept = {name: value for name, value in row.items() if name not in ("counts", "key", "bias_ns", "watched_ns")}
    return {
        "function": function, "module": module, "key": row["key"], **kept,
        "watched_seconds": row["watched_ns"] * 1e-9,
        **_quantiles(histogram, row["bias_ns"]),
        "buckets": histogram.buckets.tolist(), "counts": histogram.counts.tolist(),
    }  # fmt: skip


def _quantiles(histogram: Histogram, bias_ns: float) -> dict[str, float | None]:
    levels = {"p50_seconds": 0.5, "p90_seconds": 0.9, "p99_seconds": 0.99}
    if not histogram.total:
        return dict.fromkeys(levels)
    found = histogram.quantiles(tuple(levels.values()))
    return {name: max(0.0, ns - bias_ns) * 1e-9 for name, ns in zip(levels, found, strict=True)}
