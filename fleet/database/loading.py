"""From the inbox to the tables: pushes are taken apart, checked and copied, a batch in one transaction.

What cannot be read, or speaks of another host, goes to ``refused`` in the same transaction. A loader that is killed
leaves the inbox as it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg

from specmine.fleet.checked_values import BadPush
from specmine.fleet.received import boots_of, decode_push
from specmine.fleet.varints import has_twice

from .connecting import Connection
from .numbering import Known
from .storing import Arrival, Loaded, store_arrivals

AT_ONCE = 50
"""Pushes in one transaction."""
QUARANTINE_AFTER = 5
"""Refused pushes of a host in an hour."""
_OF_CONTENT = (psycopg.DataError, psycopg.IntegrityError, psycopg.NotSupportedError, ValueError, ArithmeticError)
"""Errors that a push can cause by what it says."""


def load(db: Connection, known: Known | None = None) -> Loaded:
    """Load the oldest pushes of the inbox; nothing is lost or there twice if this is killed.

    A push that the database itself does not take is refused, so it stops nobody.

    Parameters
    ----------
    db : Connection
    known : Known, optional
        Numbers that earlier calls read over the same connection.
    """
    known = known or Known()
    try:
        return load_batch(db, AT_ONCE, known)
    except _OF_CONTENT:
        try:
            return load_batch(db, 1, known)
        except _OF_CONTENT as error:
            return _refuse_first(db, f"the database refuses it: {error}")


def load_batch(db: Connection, most: int, known: Known) -> Loaded:
    """Load the oldest pushes of the inbox, at most so many, or none of them."""
    try:
        with db.transaction():
            rows = db.execute(
                "SELECT host_id, stream, seq, received_at, sent_boot, sent_ns, payload FROM inbox"
                " ORDER BY received_at, host_id, stream, seq LIMIT %s FOR UPDATE SKIP LOCKED",
                (most,),
                binary=True,
            ).fetchall()
            if not rows:
                return Loaded()
            arrivals, refused = _readable(db, rows, known)
            for row, why in refused:
                _refuse(db, row, why)
            number = store_arrivals(db, arrivals, known) if arrivals else 0
            db.execute(
                "DELETE FROM inbox i USING unnest(%s::int[], %s::uuid[], %s::bigint[]) AS d(host_id, stream, seq)"
                " WHERE (i.host_id, i.stream, i.seq) = (d.host_id, d.stream, d.seq)",
                tuple([row[name] for row in rows] for name in ("host_id", "stream", "seq")),
            )
            return Loaded(pushes=len(rows), refused=len(refused), rows=number)
    except BaseException:
        known.forget()
        raise


def _readable(
    db: Connection, rows: Sequence[Mapping[str, Any]], known: Known
) -> tuple[list[Arrival], list[tuple[Mapping[str, Any], str]]]:
    """Return the pushes that can be taken, and the others with the reason."""
    decoded, refused = [], []
    for row in rows:
        try:
            push = decode_push(row["payload"])
            boots = boots_of(push)
            if any(len(each) > 64 for each in boots):
                raise BadPush("a boot id is too long")
            decoded.append((row, push, boots))
        except BadPush as error:
            refused.append((row, str(error)))
    owners = _claimed(db, [(row["host_id"], boots) for row, _, boots in decoded])
    arrivals = []
    for row, push, boots in decoded:
        try:
            for boot in sorted(boots):
                if owners[boot] != row["host_id"]:
                    raise BadPush(f"boot {boot} is another host's")
            paths = known.path_ids(db, push.paths)
            if has_twice(paths):
                raise BadPush("a call path is there twice")
            values = {name: value for name, value in row.items() if name != "payload"}
            arrivals.append(Arrival(**values, push=push, paths=paths))
        except BadPush as error:
            refused.append((row, str(error)))
    return arrivals, refused


def _claimed(db: Connection, claims: Sequence[tuple[int, set[str]]]) -> dict[str, int]:
    """Let each boot be the host's that speaks of it first; return whose each is."""
    first: dict[str, int] = {}
    for host_id, boots in claims:
        for boot in boots:
            first.setdefault(boot, host_id)
    db.execute(
        "INSERT INTO boot(boot_id, host_id) SELECT * FROM unnest(%s::text[], %s::int[]) ON CONFLICT DO NOTHING",
        (list(first), list(first.values())),
    )
    rows = db.execute("SELECT boot_id, host_id FROM boot WHERE boot_id = ANY(%s)", (list(first),))
    return {row["boot_id"]: row["host_id"] for row in rows}


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
