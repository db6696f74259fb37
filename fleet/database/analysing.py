"""The analyst: claims functions, mines what many hosts sent of each, writes what is stated. Any number of processes.

A claim is a lease. One that is killed leaves its functions to the others; what it wrote is one transaction.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import Any

from specmine.daemon.sharing.document import statement_text
from specmine.fleet.codec import deflated
from specmine.mining.fleet.panel import drawn
from specmine.mining.fleet.pooled_statement import MOST_ROWS, PooledStatement, pooled_statement
from specmine.mining.settings import MiningSettings
from specmine.model.function import Function
from specmine.model.json_codec import decode
from specmine.model.observation import Observation

from .connecting import Connection
from .levels import SELECT_ROWS, paths_of, row_of
from .storing import document

LEASE = "10 minutes"
MOST_ATTEMPTS = 5
"""Failures after which a function is claimed only when nothing else is."""
ROWS_OF_A_HOST = 5
LARGEST_STATEMENT = 1 << 20
"""Bytes of a statement: hosts take no larger ones."""
_NEWEST = (
    f"SELECT * FROM (SELECT r.*, row_number() OVER (PARTITION BY r.host_id, r.kind ORDER BY r.ends_at DESC) AS place"
    f" FROM ({SELECT_ROWS.format(table='observation')} WHERE o.function_id = %s AND o.host_id = ANY(%s)) AS r) AS n"
    " WHERE place <= %s"
)


def claim(db: Connection, most: int = 1) -> list[int]:
    """Return functions that nobody else mines now, and let nobody else take them for a while."""
    rows = db.execute(
        # as a subquery of the update it could run once for each job, and lease one more each time
        "WITH c AS MATERIALIZED (SELECT function_id FROM job"
        " WHERE (leased_until IS NULL OR leased_until < now()) AND ready_at <= now()"
        " ORDER BY priority DESC, function_id LIMIT %s FOR UPDATE SKIP LOCKED)"
        f" UPDATE job j SET leased_until = now() + interval '{LEASE}', worker = %s FROM c"
        " WHERE j.function_id = c.function_id RETURNING j.function_id",
        (most, _worker()),
    ).fetchall()
    return [row["function_id"] for row in rows]


def analyse(db: Connection, settings: MiningSettings | None = None) -> bool:
    """Mine one function that waits; return False if none does."""
    claimed = claim(db)
    if not claimed:
        return False
    (number,) = claimed
    try:
        with db.transaction():
            found, function = mined(db, number, settings or MiningSettings())
            _write(db, number, found, function)
            db.execute("DELETE FROM job WHERE function_id = %s AND worker = %s", (number, _worker()))
    except (ValueError, ArithmeticError, LookupError):  # what hosts sent must not stop the others' functions
        db.execute(
            "UPDATE job SET leased_until = NULL, attempts = attempts + 1,"
            " ready_at = now() + interval '1 minute' * (1 << least(attempts, 10)),"
            " priority = CASE WHEN attempts + 1 >= %s THEN 0 ELSE priority END WHERE function_id = %s",
            (MOST_ATTEMPTS, number),
        )
    return True


def mined(db: Connection, number: int, settings: MiningSettings) -> tuple[PooledStatement, Function | None]:
    """Return what the hosts that are not in quarantine say together of a function."""
    hosts = db.execute(
        "SELECT h.host_id, h.name FROM host h JOIN sighting s USING (host_id)"
        " WHERE s.function_id = %s AND h.state = 'active' AND s.timed > 0",
        (number,),
    ).fetchall()
    names = {row["host_id"]: row["name"] for row in hosts}
    chosen = set(drawn(names.values(), 2 * MOST_ROWS))
    ids = [each for each, name in names.items() if name in chosen]
    rows = db.execute(_NEWEST, (number, ids, ROWS_OF_A_HOST), binary=True).fetchall()
    function = _function(db, number)
    paths = paths_of(db, rows)
    of_hosts: dict[str, list[Observation]] = {}
    for row in sorted(rows, key=lambda each: (each["ends_at"], each["lifetime_id"]), reverse=True):
        of_hosts.setdefault(names[row["host_id"]], []).append(row_of(row, paths).observation)
    key = rows[0]["function"] if rows else ""
    modules = (function.module,) if function is not None and function.in_program else ()
    build = function.build_id if function is not None else ""
    return pooled_statement(key, build, of_hosts, modules, settings), function


def _function(db: Connection, number: int) -> Function | None:
    """Return how most hosts describe a function."""
    row = db.execute(
        "SELECT h.document FROM held h JOIN function f ON f.key = h.key WHERE h.what = 'Function'"
        " AND f.function_id = %s GROUP BY h.document ORDER BY count(*) DESC, h.document LIMIT 1",
        (number,),
    ).fetchone()
    return None if row is None else decode(Function, document(row["document"]))


def _write(db: Connection, number: int, found: PooledStatement, function: Function | None) -> None:
    text = None
    if found.statement is not None and function is not None:
        text = statement_text(found.statement).encode("ascii")
    if text is not None and len(text) > LARGEST_STATEMENT:
        text = None
    came_to = found.state if found.state != "stated" or text is not None else "unstable"
    values: Mapping[str, Any] = {
        "function": number, "state": "stated" if text is not None else "none", "found": came_to,
        "hosts": found.hosts, "left": list(found.left_out),
        "calls": found.statement.calls if found.statement is not None else 0,
        "document": deflated(text) if text is not None else None,
    }  # fmt: skip
    # what was stated before stays until something else can be stated: hosts have it, and check it
    db.execute(
        "INSERT INTO model AS m(function_id, state, found, hosts, calls, left_out, document) VALUES (%(function)s,"
        " %(state)s, %(found)s, %(hosts)s, %(calls)s, %(left)s, %(document)s) ON CONFLICT (function_id) DO UPDATE SET"
        " made_at = now(), state = CASE WHEN excluded.state = 'none' THEN m.state ELSE excluded.state END,"
        " found = excluded.found, hosts = excluded.hosts, calls = excluded.calls, left_out = excluded.left_out,"
        " document = coalesce(excluded.document, m.document),"
        " number = CASE WHEN excluded.document IS NULL THEN m.number ELSE nextval('model_number') END",
        values,
    )


def _worker() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"
