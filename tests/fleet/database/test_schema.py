"""A database becomes a fleet once, and an older one becomes one of today with what it holds."""

from __future__ import annotations

import pytest

from specmine.fleet.database.connecting import FleetError, connected
from specmine.fleet.database.schema import Migration, check_version, initialize, migrations, version
from tests.support.postgres import Postgres


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
