"""Hosts come and go: a login role for each, and what the centre knows of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from psycopg import sql
from psycopg.types.json import Jsonb

from specmine.model.errors import InputError

from .connecting import Connection, FleetError
from .schema import HOST

_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,52}[a-z0-9])?", re.IGNORECASE)
_CONNECTIONS = 2
ROLE_PREFIX = "specmine:"


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetHost:
    """A host of the fleet."""

    host_id: int
    role: str
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    state: str
    """active or quarantined."""
    bytes: int
    """Received in ``hour``."""
    refused: int
    """Pushes that could not be read, in that hour."""
    enrolled_at: datetime
    seen_at: datetime | None
    version: str


def role_of(name: str) -> str:
    """Return the login role of a host; InputError if it cannot be the name of one."""
    if not _NAME.fullmatch(name):
        raise InputError(f"{name!r} is no name of a host", remedy="use letters, digits, dots and hyphens, at most 54")
    return f"{ROLE_PREFIX}{name}"


def labels_of(texts: tuple[str, ...]) -> dict[str, str]:
    """Return labels written as KEY=VALUE; InputError for anything else."""
    labels = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise InputError(f"{text!r} is no label", remedy="write KEY=VALUE")
        labels[key] = value
    return labels


def enroll(db: Connection, name: str, labels: Mapping[str, str]) -> str:
    """Make a host and its role, or give those that exist new labels; return the role."""
    role = role_of(name)
    with db.transaction():
        there = db.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchone()
        if there is None:
            db.execute(
                sql.SQL("CREATE ROLE {} LOGIN CONNECTION LIMIT {} IN ROLE {}").format(
                    sql.Identifier(role), sql.Literal(_CONNECTIONS), sql.Identifier(HOST)
                )
            )
        db.execute(
            "INSERT INTO specmine.host(role, name, labels) VALUES (%s, %s, %s)"
            " ON CONFLICT (role) DO UPDATE SET labels = host.labels || excluded.labels, state = 'active'",
            (role, name, Jsonb(dict(labels))),
        )
    return role


def hosts(db: Connection, labels: Mapping[str, str] | None = None, name: str | None = None) -> list[FleetHost]:
    """Return the hosts that have all of some labels, by name."""
    rows = db.execute(
        "SELECT host_id, role, name, labels, state, enrolled_at, seen_at, version,"
        " CASE WHEN hour = date_trunc('hour', now()) THEN bytes ELSE 0 END AS bytes,"
        " CASE WHEN hour = date_trunc('hour', now()) THEN refused ELSE 0 END AS refused"
        " FROM specmine.host WHERE labels @> %s AND (%s::text IS NULL OR name = %s) ORDER BY name",
        (Jsonb(dict(labels or {})), name, name),
    )
    return [FleetHost(**row) for row in rows]


def host_named(db: Connection, name: str) -> FleetHost:
    """Return a host; FleetError if there is none of this name."""
    found = hosts(db, name=name)
    if not found:
        raise FleetError(f"the fleet has no host {name!r}", remedy="see: specmine fleet hosts")
    return found[0]


def set_state(db: Connection, name: str, state: str) -> None:
    """Let a host send, or not."""
    db.execute("UPDATE specmine.host SET state = %s WHERE host_id = %s", (state, host_named(db, name).host_id))


def end_sessions(db: Connection, role: str) -> None:
    """Let the server read its certificates and its list of revoked ones anew, and end what a role has open."""
    db.execute("SELECT pg_reload_conf()")
    db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", (role,))


def forget(db: Connection, name: str) -> None:
    """Remove a host with all that it sent; its certificate opens nothing from then on."""
    host = host_named(db, name)
    with db.transaction():
        db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", (host.role,))
        for table in ("inbox", "observation", "host_hour"):
            db.execute(
                sql.SQL("DELETE FROM {} WHERE host_id = %s").format(sql.Identifier("specmine", table)), (host.host_id,)
            )
        db.execute("DELETE FROM specmine.host WHERE host_id = %s", (host.host_id,))
        db.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(host.role)))
