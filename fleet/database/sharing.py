"""Who observes what, and what is stated of each function, as people and other programs read it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from specmine.daemon.sharing.document import BadOrders, read_statement
from specmine.fleet.codec import inflated
from specmine.model.function import Function
from specmine.model.json_codec import decode
from specmine.model.violation import ViolationState
from specmine.store import StoredViolation

from .connecting import Connection
from .storing import document

_NAMED = (
    "(SELECT h.document FROM specmine.held h WHERE h.what = 'Function' AND h.key = f.key"
    " ORDER BY h.host_id LIMIT 1) AS named"
)

MOST_CHANGES = 64
"""Violations of a host that are looked at: more than a host with a fault of its own has."""
LATELY = "1 hour"
"""A violation that no host spoke of for so long makes nobody look."""


def hosts_with_changes(db: Connection, ids: Iterable[int]) -> dict[str, set[int]]:
    """Return the hosts on which a violation of a function is open, by its key."""
    rows = db.execute(
        "SELECT host_id, document FROM (SELECT host_id, document, row_number() OVER (PARTITION BY host_id"
        " ORDER BY updated_at DESC, key) AS place FROM specmine.held WHERE what = 'StoredViolation'"
        f" AND host_id = ANY(%s) AND updated_at > now() - interval '{LATELY}') AS r WHERE place <= {MOST_CHANGES}",
        (list(ids),),
    ).fetchall()
    found: dict[str, set[int]] = {}
    for row in rows:
        if (key := _open_of(bytes(row["document"]))) is not None:
            found.setdefault(key, set()).add(row["host_id"])
    return found


@lru_cache(maxsize=10_000)
def _open_of(data: bytes) -> str | None:
    """Return the function whose open violation a record is; None if it is closed."""
    record: StoredViolation = decode(StoredViolation, json.loads(inflated(data)))
    return record.function if record.state is ViolationState.OPEN else None


def duty_entries(db: Connection, host: str | None = None) -> list[dict[str, Any]]:
    """Return what hosts are asked for: ``specmine.fleet_duties/1``."""
    rows = db.execute(
        f"SELECT o.name AS host, f.key, {_NAMED}, d.purpose, d.since, d.missed_until IS NOT NULL AS missed"
        " FROM specmine.duty d JOIN specmine.host o USING (host_id) JOIN specmine.function f USING (function_id)"
        " WHERE %s::text IS NULL OR o.name = %s ORDER BY o.name, d.purpose, f.key",
        (host, host),
    ).fetchall()
    return [
        {
            "host": row["host"], **_names(row), "purpose": row["purpose"], "since": row["since"].isoformat(),
            "missed": row["missed"],
        }
        for row in rows
    ]  # fmt: skip


def statement_entries(db: Connection) -> list[dict[str, Any]]:
    """Return what was mined from many hosts: ``specmine.fleet_statements/1``."""
    rows = db.execute(
        f"SELECT f.key, {_NAMED}, m.state, m.found, m.hosts, m.calls, m.left_out, m.made_at, m.document"
        " FROM specmine.model m JOIN specmine.function f USING (function_id) ORDER BY f.key"
    ).fetchall()
    return [
        {
            **_names(row), "state": row["state"], "found": row["found"], "hosts": row["hosts"], "calls": row["calls"],
            "left_out": row["left_out"], "made_at": row["made_at"].isoformat(), **_stated(row["document"]),
        }
        for row in rows
    ]  # fmt: skip


def _names(row: dict[str, Any]) -> dict[str, Any]:
    if row["named"] is None:
        return {"function": row["key"], "module": None, "key": row["key"]}
    function: Function = decode(Function, document(row["named"]))
    return {"function": function.name, "module": function.module, "key": row["key"]}


def _stated(data: bytes | None) -> dict[str, Any]:
    nothing: dict[str, Any] = {"build_id": None, "classes": None, "borders_seconds": [], "expressions": []}
    try:
        statement = read_statement(inflated(bytes(data))) if data is not None else None
    except (BadOrders, ValueError):
        return nothing
    if statement is None:
        return nothing
    result = statement.result
    return {
        "build_id": statement.build_id,
        "classes": len(statement.learned.borders) + 1,
        "borders_seconds": [
            (each.duration_ns - statement.learned.bias_ns) * 1e-9 for each in statement.learned.borders
        ],
        "expressions": [each.expression for each in result.behaviours] if result is not None else [],
    }
