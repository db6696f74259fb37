"""A database becomes a fleet once, and an older one becomes one of today with what it holds."""

from __future__ import annotations

import subprocess
from pathlib import Path

import psycopg
import pytest

from specmine.fleet.database.connecting import FleetError, connected
from specmine.fleet.database.hosts import hosts
from specmine.fleet.database.schema import Migration, check_version, initialize, migrations, version
from specmine.fleet.forwarding.main import forward
from specmine.model.observation import Observation
from tests.support.fleets import EnrolledHost, digest, enrolled, load_all, place
from tests.support.postgres import Postgres, binaries, running


def test_init_again_changes_nothing(url: str) -> None:
    """It may be called as often as one likes."""
    steps: list[str] = []
    assert initialize(url, tell=steps.append) == migrations()[-1].number
    assert steps == []


def test_an_older_fleet_is_migrated_with_its_rows(url: str) -> None:
    """Each step once, as the owner; then the old program says that it is too old."""
    with connected(url, autocommit=True) as db:
        db.execute("INSERT INTO specmine.function(key) VALUES ('ab+0x10')")
        steps = (
            *migrations(),
            Migration(number=99, name="colour", sql="ALTER TABLE specmine.function ADD colour text"),
        )
        done: list[str] = []
        assert initialize(url, steps=steps, tell=done.append) == 99
        assert done == ["schema 99: colour"]
        row = db.execute("SELECT key, colour FROM specmine.function").fetchone()
        assert row == {"key": "ab+0x10", "colour": None}
        with pytest.raises(FleetError, match="upgrade specmine"):
            check_version(db)
        with pytest.raises(FleetError, match="upgrade specmine"):
            initialize(url)


def test_a_step_that_fails_leaves_the_fleet_as_it_was(url: str) -> None:
    """All steps or none."""
    bad = Migration(number=99, name="bad", sql="CREATE TABLE specmine.half(a int); SELECT 1 / 0")
    with pytest.raises(FleetError, match="division"):
        initialize(url, steps=(*migrations(), bad))
    with connected(url, autocommit=True) as db:
        assert version(db) == migrations()[-1].number
        row = db.execute("SELECT to_regclass('specmine.half') AS half").fetchone()
        assert row == {"half": None}


def test_another_database_is_no_fleet(postgres: Postgres) -> None:
    """One line says what to do."""
    with connected(postgres.url(), autocommit=True) as db, pytest.raises(FleetError, match="fleet init"):
        check_version(db)


def _held(url: str) -> dict[str, str]:
    with place(url).opened() as store:
        return digest(store.read(Observation))


def _restored(postgres: Postgres, url: str, second: Postgres, folder: Path) -> str:
    """Follow the steps of docs/fleet-operation.md."""
    at = binaries()
    assert at is not None
    where = [
        ["--host", str(each.folder), "--port", str(each.port), "--username", "postgres"] for each in (postgres, second)
    ]
    name = url.partition("@/")[2].partition("?")[0]
    with (folder / "roles.sql").open("wb") as file:
        subprocess.run([at / "pg_dumpall", "--roles-only", *where[0]], check=True, stdout=file)
    subprocess.run([at / "pg_dump", "--format=custom", f"--file={folder}/fleet.dump", *where[0], name], check=True)
    subprocess.run([at / "psql", "--quiet", f"--file={folder}/roles.sql", *where[1], "postgres"], check=True,
                   capture_output=True)  # fmt: skip
    subprocess.run([at / "createdb", *where[1], "fleet"], check=True)
    subprocess.run([at / "pg_restore", "--dbname=fleet", *where[1], folder / "fleet.dump"], check=True)
    initialize(second.url("fleet"))
    return second.url("fleet")


def test_a_backup_is_restored_on_another_server(postgres: Postgres, url: str, tmp_path: Path) -> None:
    """It holds the same, takes what comes, and refuses what the first refused."""
    host = enrolled(postgres, url, tmp_path, "h1", role="web")
    host.observe(range(100, 400, 30))
    forward(host.config)
    load_all(url)
    with running(postgres.folder.parent / "second") as second:
        restored = _restored(postgres, url, second, tmp_path)
        assert _held(restored) == _held(url) != {}
        with connected(restored, autocommit=True) as db, connected(url, autocommit=True) as old:
            assert hosts(db) == hosts(old)
            row = db.execute("SELECT count(*) AS n FROM specmine.stream").fetchone()
            assert row == {"n": 1}, "it knows which push comes next"
            db.execute('SET SESSION AUTHORIZATION "specmine:h1"')
            for attempt in (
                "SELECT * FROM specmine.host",
                "SELECT lo_from_bytea(0, 'x')",
                "CREATE TABLE public.x(a int)",
            ):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    db.execute(attempt)
        assert load_all(restored).refused == 0


def test_what_hosts_sent_to_an_older_fleet_is_loaded_after_the_upgrade(postgres: Postgres, tmp_path: Path) -> None:
    """Hosts of this version push to a fleet one step older; then it is upgraded, and all of it is there."""
    url = postgres.url(postgres.new_database("template1"))
    initialize(url, steps=migrations()[:-1])
    host: EnrolledHost = enrolled(postgres, url, tmp_path, "h1")
    host.observe(range(100, 400, 30))
    forward(host.config)
    with pytest.raises(FleetError, match="fleet init"):
        load_all(url)
    initialize(url)
    assert load_all(url).refused == 0
    seen = _held(url)
    host.observe(range(400, 700, 30))
    forward(host.config)
    load_all(url)
    assert len(_held(url)) == len(seen) == 1 and _held(url) != seen
