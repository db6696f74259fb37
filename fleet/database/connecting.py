"""Connections to the database of a fleet, and what its errors mean for people."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import conninfo
from psycopg.rows import dict_row

from specmine.model.errors import HostError, InputError

Connection = psycopg.Connection[dict[str, Any]]
LockNotAvailable = psycopg.errors.LockNotAvailable
CONNECT_S = 10
LOCK_WAIT = "30s"
"""So long a statement waits for a lock."""
_SETTINGS = f"SET timezone = 'UTC'; SET search_path = specmine, pg_temp; SET lock_timeout = '{LOCK_WAIT}'"


class FleetError(InputError):
    """The fleet cannot be asked now, or not by this user."""


def connected(url: str, *, role: str | None = None, autocommit: bool = False, **parameters: str) -> Connection:
    """Return a connection, in UTC.

    Parameters
    ----------
    url : str
        As libpq takes it: ``postgresql://...`` or ``host=... dbname=...``.
    role : str, optional
        Whose rights to use: those of a role that the user of the URL is a member of.
    autocommit : bool
        Each statement is a transaction of its own.
    parameters : dict
        Further parameters of the connection.

    Raises
    ------
    FleetError
        If there is none.
    """
    with told(url):
        whole = conninfo.make_conninfo(url, connect_timeout=CONNECT_S, **parameters)
        db = psycopg.connect(whole, autocommit=True, row_factory=dict_row, prepare_threshold=None)
        try:
            db.execute(_SETTINGS)
            if role is not None:
                db.execute(psycopg.sql.SQL("SET ROLE {}").format(psycopg.sql.Identifier(role)))
        except BaseException:
            db.close()
            raise
        db.autocommit = autocommit
    return db


@contextmanager
def told(url: str) -> Iterator[None]:
    """Turn errors of the database into one line for people."""
    try:
        yield
    except psycopg.errors.UndefinedTable as error:
        raise FleetError(
            f"{shown(url)} holds no fleet ({_line(error)})", remedy="make it with: specmine fleet init --database URL"
        ) from error
    except psycopg.errors.InsufficientPrivilege as error:
        raise HostError(
            f"this user may not do that in {shown(url)} ({_line(error)})",
            remedy="connect as the database's administrator, or as a member of specmine_load or specmine_read",
        ) from error
    except psycopg.Error as error:
        raise FleetError(
            f"the fleet {shown(url)} does not answer: {_line(error)}", remedy="is it up, and named right?"
        ) from error


def shown(url: str) -> str:
    """Return a URL without its password."""
    try:
        known = conninfo.conninfo_to_dict(url)
    except psycopg.Error:
        return "(not a URL of PostgreSQL)"
    where = ":".join(str(known[key]) for key in ("host", "port") if known.get(key))
    return f"postgresql://{where}/{known.get('dbname', '')}"


def database_name(url: str) -> str:
    """Return the name of the database of a URL."""
    return str(conninfo.conninfo_to_dict(url).get("dbname", ""))


def address_of(url: str) -> str:
    """Return what hosts connect to: host, port and database of a URL, nothing of its user."""
    known = conninfo.conninfo_to_dict(url)
    kept = {key: known[key] for key in ("host", "port", "dbname") if known.get(key)}
    if str(kept.get("host", "")).startswith("/") or "host" not in kept:
        kept["host"] = socket.getfqdn()  # hosts do not come over a local socket
    return conninfo.make_conninfo("", **kept)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
