"""The schema of a fleet: the roles of the cluster, and migrations by number, each applied once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import psycopg

from .connecting import Connection, FleetError, connected, told

OWNER, HOST, LOAD, READ, MINE = (
    "specmine_owner", "specmine_host", "specmine_load", "specmine_read", "specmine_mine",
)  # fmt: skip
_ROLES = f"""
DO $$
DECLARE name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['{OWNER}', '{HOST}', '{LOAD}', '{READ}', '{MINE}'] LOOP
        BEGIN
            EXECUTE format('CREATE ROLE %I NOLOGIN', name);
        EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
        END;
    END LOOP;
    GRANT pg_signal_backend, pg_read_all_stats TO {OWNER};
END $$
"""
_PUBLIC = (
    *(f"pg_{verb}advisory_{scope}lock{end}"
      for verb in ("", "try_") for scope in ("", "xact_") for end in ("", "_shared")),
    "lo_creat", "lo_create", "lo_from_bytea", "lo_put", "lowrite",
    "pg_sleep", "pg_sleep_for", "pg_sleep_until", "pg_notify", "pg_logical_emit_message",
)  # fmt: skip
"""Functions that PostgreSQL lets everybody call, and that fill disks or hold locks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """One step of the schema."""

    number: int
    name: str
    sql: str


def migrations() -> tuple[Migration, ...]:
    """Return the steps that this version knows, in their order."""
    folder = resources.files(__package__).joinpath("migrations")
    files = sorted((each for each in folder.iterdir() if each.name.endswith(".sql")), key=lambda each: each.name)
    return tuple(
        Migration(number=int(each.name[:4]), name=each.name[5:-4], sql=each.read_text(encoding="utf-8"))
        for each in files
    )


def initialize(
    url: str, *, steps: tuple[Migration, ...] | None = None, tell: Callable[[str], None] = lambda _: None
) -> int:
    """Make a database a fleet, or bring an older one to this version; return the version. Raises FleetError.

    Parameters
    ----------
    url : str
        Of a database of its own, as a superuser.
    steps : tuple, optional
        Instead of the migrations of this version.
    tell : callable
        Gets a line for each step.
    """
    steps = migrations() if steps is None else steps
    with told(url), connected(url, autocommit=True) as db:
        db.execute(_ROLES)
        with db.transaction():
            name = psycopg.sql.Identifier(db.info.dbname)
            db.execute(psycopg.sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(name))
            db.execute("REVOKE ALL ON SCHEMA public FROM PUBLIC")
            db.execute(psycopg.sql.SQL("GRANT CREATE ON DATABASE {} TO {}").format(name, psycopg.sql.Identifier(OWNER)))
            db.execute(
                psycopg.sql.SQL("GRANT CONNECT ON DATABASE {} TO {}, {}, {}, {}").format(
                    name, *map(psycopg.sql.Identifier, (HOST, LOAD, READ, MINE))
                )
            )
            _close_public_functions(db)
            found = version(db)
            newest = max(each.number for each in steps)
            if found > newest:
                raise FleetError(
                    f"this fleet has schema {found}, this specmine knows {newest}", remedy="upgrade specmine"
                )
            for each in steps:
                if each.number > found:
                    db.execute(psycopg.sql.SQL("SET LOCAL ROLE {}").format(psycopg.sql.Identifier(OWNER)))
                    db.execute(each.sql)
                    db.execute(
                        "INSERT INTO specmine.meta(key, value) VALUES ('schema', %s)"
                        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                        (str(each.number),),
                    )
                    db.execute("RESET ROLE")
                    tell(f"schema {each.number}: {each.name}")
    return newest


def version(db: Connection) -> int:
    """Return the version of the schema, 0 if there is none."""
    row = db.execute("SELECT to_regclass('specmine.meta') IS NOT NULL AS there").fetchone()
    if row is None or not row["there"]:
        return 0
    row = db.execute("SELECT value FROM specmine.meta WHERE key = 'schema'").fetchone()
    return int(row["value"]) if row is not None else 0


def check_version(db: Connection) -> None:
    """Raise FleetError if the database is of another version than this program."""
    found, known = version(db), migrations()[-1].number
    if found == 0:
        raise FleetError("this database holds no fleet", remedy="make it with: specmine fleet init --database URL")
    if found > known:
        raise FleetError(_newer(found, known), remedy="upgrade specmine")
    if found < known:
        raise FleetError(f"this fleet has the older schema {found}", remedy="run: specmine fleet init --database URL")


def _close_public_functions(db: Connection) -> None:
    """Take from everybody what fills disks or holds locks; hosts are logins, and logins are part of PUBLIC."""
    rows = db.execute(
        "SELECT oid::regprocedure::text AS name FROM pg_proc"
        " WHERE pronamespace = 'pg_catalog'::regnamespace AND proname = ANY(%s)",
        (list(_PUBLIC),),
    ).fetchall()
    for row in rows:
        db.execute(f"REVOKE EXECUTE ON FUNCTION {row['name']} FROM PUBLIC")
        if "try_advisory_lock(bigint)" in row["name"]:  # loader and planner take turns by it
            db.execute(f"GRANT EXECUTE ON FUNCTION {row['name']} TO {LOAD}, {MINE}")


def access_rules(database: str, authority: Path) -> Mapping[str, str]:
    """Return what the files of PostgreSQL's configuration must have, by file.

    Parameters
    ----------
    database : str
    authority : path
        Certificate of the authority.
    """
    return {
        "pg_hba.conf": f"hostssl {database} +{HOST} all cert\nhost    {database} +{HOST} all reject",
        "postgresql.conf": f"ssl = on\nssl_ca_file = '{authority}'\nssl_crl_file = '{authority.with_suffix('.crl')}'",
    }


def _newer(found: int, known: int) -> str:
    return f"this fleet has schema {found}, this specmine knows {known}"
