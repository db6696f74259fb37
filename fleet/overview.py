"""A fleet as one document: ``specmine.fleet_overview/1``, what the page of a fleet shows."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from specmine.analysis.violations import violations_in
from specmine.analysis.wording.violations import is_open

from .place import fleet_place, need_psycopg

SCHEMA = "specmine.fleet_overview/1"
NEWEST = timedelta(days=1)
"""Levels are of so long."""
MOST_HOSTS = 50
"""Whose violations are read; of more those that spoke of one last."""


def overview_of(url: str) -> dict[str, Any]:
    """Return what is known of a fleet now: its status, its hosts, levels over hosts, open violations of each host.

    Raises
    ------
    FleetError
        If the fleet does not answer, or the user may not read it.
    HostError
        If psycopg is missing.
    """
    need_psycopg()
    from .database.centre.levels_document import levels_document  # noqa: PLC0415
    from .database.centre.status import status_of  # noqa: PLC0415
    from .database.connecting import connected, told  # noqa: PLC0415
    from .database.hosts import hosts  # noqa: PLC0415
    from .database.schema import check_version  # noqa: PLC0415

    with told(url), connected(url, autocommit=True) as db:
        check_version(db)
        status, there = status_of(db), hosts(db)
        levels = levels_document(db, NEWEST)
        row = db.execute("SELECT now() AS now").fetchone()
        rows = db.execute(
            "SELECT h.name FROM held r JOIN host h USING (host_id) WHERE r.what = 'StoredViolation'"
            " GROUP BY h.name ORDER BY max(r.updated_at) DESC LIMIT %s",
            (MOST_HOSTS,),
        ).fetchall()
    assert row is not None
    violations = [
        {"host": each["name"], **entry}
        for each in rows
        for entry in violations_in(fleet_place(url, (), each["name"], None))["violations"]
        if is_open(entry)
    ]
    return {
        "schema": SCHEMA,
        "at": row["now"].isoformat(),
        "status": status,
        "hosts": [
            {
                "host": each.name, "state": each.state, "labels": dict(each.labels), "version": each.version,
                "seen_at": each.seen_at.isoformat() if each.seen_at is not None else None,
            }
            for each in there
        ],
        "levels": levels,
        "violations": violations,
    }  # fmt: skip
