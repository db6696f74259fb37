"""What a host may do with its certificate: push, of itself, and nothing else."""

from __future__ import annotations

import hashlib
import uuid
from pathlib import Path

import psycopg
import pytest

from specmine.fleet.database.connecting import Connection, FleetError, connected
from specmine.fleet.database.hosts import forget, set_state
from specmine.fleet.database.pushing import HostConnection, PushRefused, Reply
from tests.support.fleets import EnrolledHost, enrolled
from tests.support.postgres import Postgres

_STREAM = str(uuid.UUID(int=1))


@pytest.fixture
def host(postgres: Postgres, url: str, folder: Path) -> EnrolledHost:
    """Return a host with its certificate."""
    return enrolled(postgres, url, folder, "h1", role="web")


def _push(connection: HostConnection, number: int, content: bytes = b"x") -> Reply:
    return connection.push(_STREAM, number, content, "boot", 1)


def test_numbers_go_without_gaps(host: EnrolledHost) -> None:
    """First, the same again, another content, a gap, the next, an old one."""
    with host.connection() as connection:
        assert _push(connection, 1) == Reply(accepted=1, conflict=False)
        assert _push(connection, 1) == Reply(accepted=1, conflict=False)
        assert _push(connection, 1, b"y") == Reply(accepted=1, conflict=True)
        assert _push(connection, 3) == Reply(accepted=1, conflict=False)
        assert _push(connection, 2) == Reply(accepted=2, conflict=False)
        assert _push(connection, 1) == Reply(accepted=2, conflict=True)


def test_too_much_is_refused(host: EnrolledHost, db: Connection) -> None:
    """A quota of bytes an hour, a size of one push, a number of streams a day."""
    db.execute("UPDATE specmine.host SET quota_bytes = 1000")
    with host.connection() as connection:
        _push(connection, 1, bytes(900))
        with pytest.raises(PushRefused, match="1000 bytes"):
            _push(connection, 2, bytes(900))
        db.execute("UPDATE specmine.host SET hour = hour - interval '1 hour', quota_bytes = 10000000")
        assert _push(connection, 2, bytes(900)).accepted == 2
        with pytest.raises(FleetError):
            _push(connection, 3, bytes((1 << 20) + 1))
        for number in range(2, 9):
            connection.push(str(uuid.UUID(int=number)), 1, b"x", "boot", 1)
        with pytest.raises(PushRefused, match="streams"):
            connection.push(str(uuid.UUID(int=99)), 1, b"x", "boot", 1)


def test_a_host_in_quarantine_and_one_forgotten_cannot_send(host: EnrolledHost, db: Connection) -> None:
    """The certificate of a forgotten host opens nothing."""
    set_state(db, "h1", "quarantined")
    with host.connection() as connection, pytest.raises(PushRefused, match="not enrolled"):
        _push(connection, 1)
    forget(db, "h1")
    with pytest.raises(FleetError):
        host.connection()


_ATTEMPTS = {
    "read hosts": "SELECT * FROM specmine.host",
    "read the inbox": "SELECT * FROM specmine.inbox",
    "read rows": "SELECT * FROM specmine.observation",
    "read what others hold": "SELECT * FROM specmine.held",
    "read boots": "SELECT * FROM specmine.boot",
    "write the inbox": "INSERT INTO specmine.inbox VALUES (1, gen_random_uuid(), 1, now(), '', 0, 'x')",
    "write a host": "UPDATE specmine.host SET quota_bytes = 1",
    "delete": "DELETE FROM specmine.stream",
    "truncate": "TRUNCATE specmine.inbox",
    "push past the checks": "SELECT specmine.accept(NULL::specmine.host, gen_random_uuid(), 1, '', '', '', 0)",
    "import": "SELECT * FROM specmine.import_push(1, gen_random_uuid(), 1, '', '')",
    "make partitions": "SELECT specmine.ensure_partition('observation', now())",
    "drop partitions": "SELECT specmine.drop_partition('x')",
    "end sessions": "SELECT specmine.end_long_sessions('0s')",
    "read duties": "SELECT * FROM specmine.duty",
    "read what others are told": "SELECT * FROM specmine.assignment",
    "read statements": "SELECT * FROM specmine.model",
    "write statements": "UPDATE specmine.model SET document = NULL",
    "plan": "INSERT INTO specmine.assignment(host_id, document) VALUES (1, '')",
    "take jobs": "DELETE FROM specmine.job",
    "boast": "UPDATE specmine.sighting SET timed = 1",
    "become an analyst": "SET ROLE specmine_mine",
    "look into partitions": "SELECT * FROM specmine_data.observation_20260101",
    "become the owner": "SET ROLE specmine_owner",
    "become the loader": "SET ROLE specmine_load",
    "become another host": 'SET ROLE "specmine:h2"',
    "become another session": "SET SESSION AUTHORIZATION postgres",
    "make a table": "CREATE TABLE specmine.mine(a int)",
    "make a public table": "CREATE TABLE public.mine(a int)",
    "make a temporary table": "CREATE TEMP TABLE mine(a int)",
    "make a function": "CREATE FUNCTION public.f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "make a role": "CREATE ROLE friend LOGIN",
    "raise its limit": 'ALTER ROLE "specmine:h1" CONNECTION LIMIT 100',
    "read a file": "SELECT pg_read_file('/etc/passwd')",
    "write a file": "COPY (SELECT 1) TO '/tmp/specmine-attack'",
    "run a program": "COPY (SELECT 1) TO PROGRAM 'id'",
    "fill the disk": "SELECT lo_from_bytea(0, 'x')",
    "hold a lock": "SELECT pg_advisory_lock(1)",
    "take the loader's turn": "SELECT pg_try_advisory_lock(1936748910::bigint)",
    "sleep": "SELECT pg_sleep(1)",
    "notify": "SELECT pg_notify('x', 'y')",
    "end the server's processes": "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'postgres'",
    "read settings": "SELECT * FROM pg_hba_file_rules",
    "plan a benchmark": "INSERT INTO specmine.bench_plan(name, document, plan) VALUES ('x', '{}', '{}')",
    "change what is run": "UPDATE specmine.bench_plan SET document = '{}'",
    "read results of others": "SELECT * FROM specmine.bench_run",
    "claim as another": "SELECT specmine.bench_for(NULL::specmine.host, 'b')",
    "read passwords": "SELECT * FROM pg_authid",
}


def test_a_stolen_certificate_can_do_nothing_else(
    host: EnrolledHost, postgres: Postgres, url: str, folder: Path, db: Connection
) -> None:
    """Each attempt is refused by the database itself."""
    enrolled(postgres, url, folder, "h2")
    assert host.config.fleet.connect is not None
    parameters = host.credentials.parameters
    allowed = []
    with connected(host.config.fleet.connect, autocommit=True, user=host.role, **parameters) as connection:
        for name, attempt in _ATTEMPTS.items():
            try:
                connection.execute(attempt)
            except psycopg.Error:
                continue
            allowed.append(name)
    assert allowed == []
    assert len(_ATTEMPTS) >= 25


def test_a_certificate_is_good_for_its_name_alone(
    host: EnrolledHost, postgres: Postgres, url: str, folder: Path
) -> None:
    """Not for another host, not for the administrator, not without TLS, not one signed by anybody else."""
    other = enrolled(postgres, url, folder, "h2")
    assert host.config.fleet.connect is not None
    for role in (other.role, "postgres", "specmine_load"):
        with pytest.raises(FleetError):
            HostConnection(host.config.fleet.connect, role, host.credentials)
    with pytest.raises(FleetError):
        connected(host.config.fleet.connect, user=host.role, sslmode="disable")


def test_a_session_that_stays_too_long_is_ended(host: EnrolledHost, db: Connection) -> None:
    """Whatever the host set its own timeouts to."""
    with host.connection() as connection:
        _push(connection, 1)
        row = db.execute("SET ROLE specmine_load; SELECT specmine.end_long_sessions('0s') AS ended")
        assert row.nextset()
        assert row.fetchone() == {"ended": 1}
        with pytest.raises(FleetError):
            _push(connection, 2)


def test_the_digest_is_checked(host: EnrolledHost) -> None:
    """A push that was damaged on its way is not taken."""
    assert host.config.fleet.connect is not None
    with (
        connected(
            host.config.fleet.connect, autocommit=True, user=host.role, **host.credentials.parameters
        ) as connection,
        pytest.raises(psycopg.Error, match="damaged"),
    ):
        connection.execute(
            "SELECT * FROM specmine.push(%s::uuid, 1, %s, %s, 'b', 1)", (_STREAM, b"x", hashlib.sha256(b"y").digest())
        )
