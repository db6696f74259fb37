"""What a batch of pushes brings, as rows of the database: records, summaries, windows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from specmine.fleet.codec import encode_histograms, inflated
from specmine.fleet.received import ReceivedPush
from specmine.fleet.sums import path_lists
from specmine.fleet.varints import Places
from specmine.model.batch import Lifetime, boot_of
from specmine.store import Host, LifetimeSummary
from specmine.store.codec import decode_histogram

from .connecting import Connection
from .copying import byte_strings, copy_lines, lines_of, real_numbers, times, whole_numbers
from .numbering import Known, lifetime_ids

OLDEST = timedelta(days=14)
"""A host's row that says it is older counts as so old: what a host says must not make partitions at will."""
IMPORTED = "import"
"""What is written of a push that an operator imported, instead of its boot."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_IMPORTED_SINCE_US = 1_577_836_800_000_000  # 2020
_MICROSECOND = timedelta(microseconds=1)
_HOUR_US, _DAY_US = 3_600_000_000, 86_400_000_000
_FARTHEST_NS = 1 << 61


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What a batch brought."""

    pushes: int = 0
    refused: int = 0
    rows: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Arrival:
    """A push in the inbox."""

    host_id: int
    stream: Any
    seq: int
    received_at: datetime
    sent_boot: str
    sent_ns: int
    push: ReceivedPush
    paths: Places
    """The number of each of its call paths."""


def store_arrivals(db: Connection, arrivals: Sequence[Arrival], known: Known) -> int:
    """Write what pushes bring; return their number of rows."""
    load_id = db.execute("SELECT nextval('load_number') AS id").fetchone()["id"]  # type: ignore[index]
    functions = known.function_ids(db, {key for each in arrivals for key in each.push.functions})
    lifetimes = lifetime_ids(db, _lifetimes(arrivals))
    _put_held(db, arrivals)
    _put_summaries(db, arrivals, functions, lifetimes)
    offsets = _offsets(db, arrivals)
    lines: list[str] = []
    orders: list[Places] = []
    for each in arrivals:
        if len(each.push.table):
            ends_us = _ends_us(each, offsets)
            function_ids = np.array([functions[key] for key in each.push.functions])[each.push.table.function]
            of_lifetime = np.array([lifetimes[key] for key in each.push.lifetimes])[each.push.table.lifetime]
            lines += _lines(each, load_id, function_ids, of_lifetime, ends_us)
            orders.append(np.array([function_ids, of_lifetime, each.push.table.whole["end_ns"], ends_us]))
    if lines:
        function_ids, of_lifetime, ends_ns, ends_us = np.concatenate(orders, axis=1)
        for day in np.unique(ends_us // _DAY_US).tolist():
            db.execute("SELECT ensure_partition('observation', %s)", (_EPOCH + timedelta(days=day),))
        # a function's rows together: that is how they are read
        order = np.lexsort((ends_ns, of_lifetime, function_ids)).tolist()
        copy_lines(db, "observation", [lines[at] for at in order])
        db.execute(
            "INSERT INTO hour(hour) SELECT unnest(%s::timestamptz[]) ON CONFLICT DO NOTHING",
            ([_EPOCH + timedelta(hours=hour) for hour in np.unique(ends_us // _HOUR_US).tolist()],),
        )
    versions = {each.host_id: each.push.version for each in arrivals}
    db.execute(
        "UPDATE host h SET version = v.version FROM unnest(%s::int[], %s::text[]) AS v(host_id, version)"
        " WHERE h.host_id = v.host_id AND h.version <> v.version",
        (list(versions), list(versions.values())),
    )
    return len(lines)


def document(data: bytes) -> Any:
    """Return the JSON of a record."""
    return json.loads(inflated(bytes(data)))


def _lines(each: Arrival, load_id: int, functions: Places, lifetimes: Places, ends_us: Places) -> list[str]:
    table = each.push.table
    number = len(table)
    columns = {
        "function_id": whole_numbers(functions),
        "lifetime_id": whole_numbers(lifetimes),
        "host_id": [str(each.host_id)] * number,
        "kind": table.kind,
        "start_ns": whole_numbers(table.whole["start_ns"]),
        "end_ns": whole_numbers(table.whole["end_ns"]),
        "ends_at": times(ends_us),
        "load_id": [str(load_id)] * number,
        "windows": whole_numbers(table.windows),
        "calls": whole_numbers(table.whole["calls"]),
        "timed": whole_numbers(table.timed),
        "watched_ns": whole_numbers(table.whole["watched_ns"]),
        "inner_calls": whole_numbers(table.whole["inner"]),
        "censored": whole_numbers(table.whole["censored"]),
        "bias_ns": real_numbers(table.real["bias_ns"]),
        "uncertainty_ns": real_numbers(table.real["uncertainty_ns"]),
        **{name: byte_strings(blobs) for name, blobs in table.blobs.items()},
        "path_ids": byte_strings(these or None for these in path_lists(table.path_number, each.paths[table.path])),
    }
    return lines_of(columns)


def _ends_us(each: Arrival, offsets: Mapping[str, int]) -> Places:
    """Return when rows ended, by the database's clock, us: their age is what the host can know."""
    received = (each.received_at - _EPOCH) // _MICROSECOND
    boots = [boot_of(key) for key in each.push.lifetimes]
    of_boot = np.array([each.sent_boot == f"boot {boot}" for boot in boots])[each.push.table.lifetime]
    offset = np.array([max(-_FARTHEST_NS, min(offsets.get(boot, 0), _FARTHEST_NS)) for boot in boots], np.int64)
    end = each.push.table.whole["end_ns"]
    by_age = received - (each.sent_ns - end) // 1000
    by_clock = (end + offset[each.push.table.lifetime]) // 1000
    ends = np.where(of_boot & (end <= each.sent_ns), by_age, by_clock)
    oldest = _IMPORTED_SINCE_US if each.sent_boot == IMPORTED else received - OLDEST // _MICROSECOND
    return np.maximum(oldest, np.minimum(ends, received))


def _offsets(db: Connection, arrivals: Sequence[Arrival]) -> dict[str, int]:
    """Return the offset to UTC of each boot that has one."""
    boots = sorted({boot_of(key) for each in arrivals for key in each.push.lifetimes})
    found = db.execute("SELECT document FROM held WHERE what = 'Host' AND key = ANY(%s)", (boots,))
    hosts = [Host(**document(row["document"])) for row in found]
    return {each.boot_id: each.utc_offset_ns for each in hosts}


def _lifetimes(arrivals: Sequence[Arrival]) -> dict[str, tuple[int, str]]:
    known: dict[str, tuple[int, str]] = {}
    for each in arrivals:
        for key in each.push.lifetimes:
            known.setdefault(key, (each.host_id, ""))
        for record in each.push.records:
            if isinstance(record, Lifetime):
                known[record.id] = (each.host_id, record.build_id.replace("\0", ""))
    return known


def _put_held(db: Connection, arrivals: Sequence[Arrival]) -> None:
    newest = {(each.host_id, *held.key): held.data for each in arrivals for held in each.push.held}
    if not newest:
        return
    with db.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO held(host_id, what, key, document) VALUES (%s, %s, %s, %s) ON CONFLICT (host_id, what, key)"
            " DO UPDATE SET document = excluded.document, updated_at = now()",
            [(*key, data) for key, data in sorted(newest.items())],
        )


def _put_summaries(
    db: Connection, arrivals: Sequence[Arrival], functions: Mapping[str, int], lifetimes: Mapping[str, int]
) -> None:
    newest: dict[tuple[int, int, str], LifetimeSummary] = {}
    for each in arrivals:
        for summary in each.push.summaries:
            newest[functions[summary.function], lifetimes[summary.lifetime], summary.kind.value] = summary
    if not newest:
        return
    with db.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO summary(function_id, lifetime_id, kind, start_utc_ns, end_utc_ns, calls, watched_ns, bias_ns,"
            " early, later) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
            " ON CONFLICT (function_id, lifetime_id, kind) DO UPDATE SET start_utc_ns = excluded.start_utc_ns,"
            " end_utc_ns = excluded.end_utc_ns,"
            " calls = excluded.calls, watched_ns = excluded.watched_ns, bias_ns = excluded.bias_ns,"
            " early = excluded.early, later = excluded.later",
            [
                (
                    *key, each.start_utc_ns, each.end_utc_ns, each.calls, each.watched_ns, each.bias_ns,
                    encode_histograms((decode_histogram(each.packed_early),)),
                    encode_histograms((decode_histogram(each.packed_later),)),
                )
                for key, each in sorted(newest.items())
            ],
        )  # fmt: skip
