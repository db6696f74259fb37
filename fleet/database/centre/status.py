"""What a centre holds, and who works there: ``specmine fleet status``."""

from __future__ import annotations

from typing import Any

from specmine.fleet.database.connecting import Connection

from .turns import LOADS, PLANS


def status_of(db: Connection) -> dict[str, Any]:
    """Return ``specmine.fleet_status/1``: hosts, what waits, what is held."""
    row = db.execute(
        "SELECT (SELECT count(*) FROM specmine.inbox) AS waiting,"
        " (SELECT extract(epoch FROM now() - min(received_at))::float8 FROM specmine.inbox) AS oldest_waiting_seconds,"
        " (SELECT count(*) FROM specmine.function) AS functions, (SELECT count(*) FROM specmine.lifetime) AS lifetimes,"
        " (SELECT count(*) FROM specmine.refused) AS refused,"
        " pg_database_size(current_database()) AS bytes,"
        " EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = %s AND granted"
        " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) AS loader,"
        " EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = %s AND granted"
        " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) AS planner,"
        " (SELECT count(*) FROM specmine.model WHERE state <> 'none') AS stated,"
        " (SELECT count(*) FROM specmine.job) AS jobs",
        (LOADS, PLANS),
    ).fetchone()
    assert row is not None
    states = db.execute(
        "SELECT CASE WHEN state <> 'active' THEN state WHEN seen_at IS NULL THEN 'never seen'"
        " WHEN seen_at < now() - interval '15 minutes' THEN 'silent' ELSE 'active' END AS state, count(*) AS number"
        " FROM specmine.host GROUP BY 1 ORDER BY 1"
    )
    duties = db.execute("SELECT purpose, count(*) AS number FROM specmine.duty WHERE missed_until IS NULL"
                        " GROUP BY 1 ORDER BY 1")  # fmt: skip
    levels = db.execute("SELECT level, count(*) AS partitions, sum(bytes)::bigint AS bytes FROM specmine.partitions()"
                        " GROUP BY level ORDER BY level")  # fmt: skip
    return {
        "schema": "specmine.fleet_status/1",
        "hosts": {each["state"]: each["number"] for each in states},
        "loader": row["loader"],
        "inbox": {"pushes": row["waiting"], "oldest_seconds": row["oldest_waiting_seconds"]},
        "sharing": {
            "planner": row["planner"],
            "duties": {each["purpose"]: each["number"] for each in duties},
            "stated": row["stated"],
            "waiting_to_be_mined": row["jobs"],
        },
        "refused": row["refused"],
        "functions": row["functions"],
        "lifetimes": row["lifetimes"],
        "bytes": row["bytes"],
        "levels": {each["level"]: {"partitions": each["partitions"], "bytes": each["bytes"]} for each in levels},
    }
