"""From the inbox to the tables: pushes are taken apart, checked and copied, a batch in one transaction.

What cannot be read, or speaks of another host, goes to ``refused`` in the same transaction. A loader that is killed
leaves the inbox as it was.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Any

import psycopg

from specmine.fleet.codec import (
    deflated,
    encode_histograms,
    encode_paths,
    encode_split,
    frames_bytes,
    inflated,
    path_hash,
)
from specmine.fleet.folding import FoldedRow
from specmine.fleet.push import BadPush, Push, boots_of, decode_push, key_of
from specmine.model.batch import Lifetime, boot_of
from specmine.model.call_path import CallPath
from specmine.model.json_codec import encode
from specmine.store import Host, LifetimeSummary
from specmine.store.codec import decode_histogram
from specmine.store.inside_codec import encode_inside

from .connecting import Connection

AT_ONCE = 50
"""Pushes in one transaction."""
OLDEST = timedelta(days=14)
"""A host's row that says it is older counts as so old: what a host says must not make partitions at will."""
QUARANTINE_AFTER = 5
"""Refused pushes of a host in an hour."""
ROW_COLUMNS = (
    "function_id", "lifetime_id", "host_id", "kind", "start_ns", "end_ns", "ends_at", "load_id", "windows", "calls",
    "timed", "watched_ns", "inner_calls", "censored", "bias_ns", "uncertainty_ns", "counts", "split", "paths",
    "inside",
)  # fmt: skip
_OF_CONTENT = (psycopg.DataError, psycopg.IntegrityError, psycopg.NotSupportedError, ValueError, ArithmeticError)
"""Errors that a push can cause by what it says."""
IMPORTED = "import"
"""What is written of a push that an operator imported, instead of its boot."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_IMPORTED_SINCE = 1_577_836_800_000_000  # 2020, us


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What a batch brought."""

    pushes: int = 0
    refused: int = 0
    rows: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Arrival:
    """A push in the inbox."""

    host_id: int
    stream: Any
    seq: int
    received_at: datetime
    sent_boot: str
    sent_ns: int
    push: Push


def load(db: Connection) -> Loaded:
    """Load the oldest pushes of the inbox; nothing is lost or there twice if this is killed.

    A push that the database itself does not take is refused, so it stops nobody.
    """
    try:
        return load_batch(db, AT_ONCE)
    except _OF_CONTENT:
        try:
            return load_batch(db, 1)
        except _OF_CONTENT as error:
            return _refuse_first(db, f"the database refuses it: {error}")


def load_batch(db: Connection, most: int) -> Loaded:
    """Load the oldest pushes of the inbox, at most so many, or none of them."""
    with db.transaction():
        rows = db.execute(
            "SELECT host_id, stream, seq, received_at, sent_boot, sent_ns, payload FROM inbox"
            " ORDER BY received_at, host_id, stream, seq LIMIT %s FOR UPDATE SKIP LOCKED",
            (most,),
        ).fetchall()
        if not rows:
            return Loaded()
        readable, refused = [], 0
        for row in rows:
            try:
                push = decode_push(row.pop("payload"))
                _claim_boots(db, row["host_id"], push)
                readable.append(_Arrival(**row, push=push))
            except BadPush as error:
                _refuse(db, row, str(error))
                refused += 1
        number = _store(db, readable) if readable else 0
        with db.cursor() as cursor:
            cursor.executemany(
                "DELETE FROM inbox WHERE host_id = %s AND stream = %s AND seq = %s",
                [(row["host_id"], row["stream"], row["seq"]) for row in rows],
            )
        return Loaded(pushes=len(rows), refused=refused, rows=number)


def copy_rows(db: Connection, table: str, rows: Iterable[Sequence[Any]]) -> None:
    """Copy rows of ``ROW_COLUMNS`` into a table."""
    with db.cursor() as cursor, cursor.copy(f"COPY {table}({', '.join(ROW_COLUMNS)}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)


def row_values(row: FoldedRow, numbers: Mapping[CallPath, int]) -> tuple[Any, ...]:
    """Return the values of a row from ``windows`` on, given the numbers of call paths."""
    seen = row.observation
    return (
        row.windows, seen.calls, seen.timed, seen.watched_ns, seen.inner, seen.censored, seen.bias_ns,
        seen.uncertainty_ns, encode_histograms((seen.histogram,)),
        None if seen.split is None else encode_split(seen.split),
        encode_paths(seen.paths, numbers) if seen.paths else None,
        encode_inside(seen.inside) if seen.inside else None,
    )  # fmt: skip


def _claim_boots(db: Connection, host_id: int, push: Push) -> None:
    """Let the boots that a push speaks of be the host's; BadPush if one is another's."""
    boots = sorted(boots_of(push))
    if any(len(each) > 64 for each in boots):
        raise BadPush("a boot id is too long")
    if boots:
        with db.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO boot(boot_id, host_id) VALUES (%s, %s) ON CONFLICT DO NOTHING",
                [(each, host_id) for each in boots],
            )
        other = db.execute(
            "SELECT boot_id FROM boot WHERE boot_id = ANY(%s) AND host_id <> %s LIMIT 1", (boots, host_id)
        ).fetchone()
        if other is not None:
            raise BadPush(f"boot {other['boot_id']} is another host's")


def _refuse(db: Connection, row: Mapping[str, Any], why: str) -> None:
    db.execute(
        "INSERT INTO refused(host_id, stream, seq, why) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING",
        (row["host_id"], row["stream"], row["seq"], why.replace("\0", "")),
    )
    db.execute(
        "UPDATE host SET refused = CASE WHEN hour = date_trunc('hour', now()) THEN refused ELSE 0 END + 1,"
        " state = CASE WHEN hour = date_trunc('hour', now()) AND refused + 1 >= %s THEN 'quarantined' ELSE state END"
        " WHERE host_id = %s",
        (QUARANTINE_AFTER, row["host_id"]),
    )


def _refuse_first(db: Connection, why: str) -> Loaded:
    with db.transaction():
        row = db.execute(
            "SELECT host_id, stream, seq FROM inbox ORDER BY received_at, host_id, stream, seq LIMIT 1 FOR UPDATE"
        ).fetchone()
        if row is None:
            return Loaded()
        _refuse(db, row, " ".join(why.split())[:300])
        db.execute("DELETE FROM inbox WHERE host_id = %(host_id)s AND stream = %(stream)s AND seq = %(seq)s", row)
    return Loaded(pushes=1, refused=1)


def _store(db: Connection, arrivals: Sequence[_Arrival]) -> int:
    load_id = db.execute("SELECT nextval('load_number') AS id").fetchone()["id"]  # type: ignore[index]
    functions = {row.observation.function for each in arrivals for row in each.push.rows}
    functions |= {summary.function for each in arrivals for summary in each.push.summaries}
    function_ids = _ids(db, "function", "function_id", functions)
    lifetime_ids = _lifetimes(db, arrivals)
    numbers = _put_paths(db, [one.path for each in arrivals for row in each.push.rows for one in row.observation.paths])
    _put_held(db, arrivals)
    _put_summaries(db, arrivals, function_ids, lifetime_ids)
    offsets = _offsets(db, arrivals)
    rows: list[tuple[Any, ...]] = [
        (
            function_ids[seen.function], lifetime_ids[seen.lifetime], each.host_id, seen.kind.value,
            seen.start_ns, seen.end_ns, _ends_at(each, seen.lifetime, seen.end_ns, offsets), load_id,
            *row_values(row, numbers),
        )
        for each in arrivals for row in each.push.rows for seen in (row.observation,)
    ]  # fmt: skip
    if rows:
        _ensure_partitions(db, "observation", [row[6] for row in rows])
        copy_rows(db, "observation", sorted(rows, key=itemgetter(slice(0, 7))))
        db.execute(
            "INSERT INTO hour(hour) SELECT DISTINCT date_trunc('hour', at) FROM unnest(%s::timestamptz[]) AS at"
            " ON CONFLICT DO NOTHING",
            (sorted({row[6] for row in rows}),),
        )
    versions = {each.host_id: each.push.version for each in arrivals}
    for host_id, version in versions.items():
        db.execute("UPDATE host SET version = %s WHERE host_id = %s AND version <> %s", (version, host_id, version))
    return len(rows)


def _ensure_partitions(db: Connection, level: str, times: Iterable[datetime]) -> None:
    for day in sorted({each.date() for each in times}):
        db.execute("SELECT ensure_partition(%s, %s)", (level, datetime(day.year, day.month, day.day, tzinfo=UTC)))


def _ends_at(each: _Arrival, lifetime: str, end_ns: int, offsets: Mapping[str, int]) -> datetime:
    """Return when a row ended, by the database's clock: its age is what the host can know."""
    received = (each.received_at - _EPOCH) // timedelta(microseconds=1)
    boot, of_file = boot_of(lifetime), each.sent_boot == IMPORTED
    if each.sent_boot == f"boot {boot}" and end_ns <= each.sent_ns:
        ends = received - (each.sent_ns - end_ns) // 1000
    else:
        ends = (end_ns + offsets.get(boot, 0)) // 1000
    oldest = _IMPORTED_SINCE if of_file else received - OLDEST // timedelta(microseconds=1)
    return _EPOCH + timedelta(microseconds=max(oldest, min(ends, received)))


def _offsets(db: Connection, arrivals: Sequence[_Arrival]) -> dict[str, int]:
    """Return the offset to UTC of each boot that has one."""
    boots = sorted({boot_of(row.observation.lifetime) for each in arrivals for row in each.push.rows})
    found = db.execute("SELECT document FROM held WHERE what = 'Host' AND key = ANY(%s)", (boots,))
    hosts = [Host(**document(row["document"])) for row in found]
    return {each.boot_id: each.utc_offset_ns for each in hosts}


def document(data: bytes) -> Any:
    """Return the JSON of a record."""
    return json.loads(inflated(bytes(data)))


def _ids(db: Connection, table: str, column: str, keys: Iterable[str]) -> dict[str, int]:
    wanted = sorted(keys)
    db.execute(
        f"INSERT INTO {table}(key) SELECT unnest(%s::text[]) ON CONFLICT DO NOTHING",
        (wanted,),
    )
    rows = db.execute(f"SELECT {column} AS id, key FROM {table} WHERE key = ANY(%s)", (wanted,))
    return {row["key"]: row["id"] for row in rows}


def _lifetimes(db: Connection, arrivals: Sequence[_Arrival]) -> dict[str, int]:
    known: dict[str, tuple[int, str]] = {}
    for each in arrivals:
        for key in {row.observation.lifetime for row in each.push.rows}:
            known.setdefault(key, (each.host_id, ""))
        for summary in each.push.summaries:
            known.setdefault(summary.lifetime, (each.host_id, ""))
        for record in each.push.records:
            if isinstance(record, Lifetime):
                known[record.id] = (each.host_id, record.build_id.replace("\0", ""))
    with db.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO lifetime(host_id, key, build_id) VALUES (%s, %s, %s) ON CONFLICT (key) DO UPDATE"
            " SET build_id = excluded.build_id WHERE lifetime.build_id = '' AND excluded.build_id <> ''",
            [(host_id, key, build) for key, (host_id, build) in sorted(known.items())],
        )
    rows = db.execute("SELECT lifetime_id, key FROM lifetime WHERE key = ANY(%s)", (sorted(known),))
    return {row["key"]: row["lifetime_id"] for row in rows}


def _put_paths(db: Connection, paths: Iterable[CallPath]) -> dict[CallPath, int]:
    """Write the paths that are new; return the number of each."""
    hashes = {each: path_hash(each) for each in dict.fromkeys(paths)}
    wanted = list(hashes.values())
    there = {
        row["hash"]: row["path_id"]
        for row in db.execute("SELECT hash, path_id FROM path WHERE hash = ANY(%s)", (wanted,))
    }
    new = [(one, path.complete, deflated(frames_bytes(path))) for path, one in hashes.items() if one not in there]
    if new:
        with db.cursor() as cursor:
            cursor.executemany("INSERT INTO path(hash, complete, frames) VALUES (%s, %s, %s)", sorted(new))
        rows = db.execute("SELECT hash, path_id FROM path WHERE hash = ANY(%s)", ([each[0] for each in new],))
        there |= {row["hash"]: row["path_id"] for row in rows}
    return {path: there[one] for path, one in hashes.items()}


def _put_held(db: Connection, arrivals: Sequence[_Arrival]) -> None:
    newest: dict[tuple[int, str, str], bytes] = {}
    for each in arrivals:
        for record in each.push.records:
            text = json.dumps(encode(record), ensure_ascii=True, separators=(",", ":"))
            newest[each.host_id, *key_of(record)] = deflated(text.encode("ascii"))
    with db.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO held(host_id, what, key, document) VALUES (%s, %s, %s, %s) ON CONFLICT (host_id, what, key)"
            " DO UPDATE SET document = excluded.document, updated_at = now()",
            [(*key, data) for key, data in sorted(newest.items())],
        )


def _put_summaries(
    db: Connection, arrivals: Sequence[_Arrival], functions: Mapping[str, int], lifetimes: Mapping[str, int]
) -> None:
    newest: dict[tuple[int, int, str], LifetimeSummary] = {}
    for each in arrivals:
        for summary in each.push.summaries:
            newest[functions[summary.function], lifetimes[summary.lifetime], summary.kind.value] = summary
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
