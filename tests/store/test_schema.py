"""A store of any earlier version is read, with all that it held, and becomes a store of today."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from specmine.model.batch import CallSamples
from specmine.store import (
    Build,
    EnvironmentVector,
    ExperimentWindow,
    FunctionProfile,
    LifetimeSummary,
    Verdict,
    open_store,
)
from specmine.store.schema import SCHEMA
from tests.support.old_stores import write_old_store
from tests.support.stored import FUNCTION, HOST, LIFETIME, fill, observation

NOT_STORED = {"lifetimes": {"chosen"}}
"""Of a lifetime, which choice of the present configuration it fits."""


def columns(path: Path) -> dict[str, set[tuple[str, str, int, int]]]:
    """Return name, type, whether null is forbidden, and place in the key, of each table's columns."""
    db = sqlite3.connect(path)
    tables = [row[0] for row in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    found = {name: {(c[1], c[2], c[3], c[5]) for c in db.execute(f"PRAGMA table_info({name})")} for name in tables}
    db.close()
    return found


@pytest.mark.parametrize("version", range(1, 8))
def test_an_older_store_is_read_and_written(tmp_path: Path, version: int) -> None:
    """What it held is there, what it lacked is empty, and it takes all that a new store takes."""
    path = tmp_path / "s.db"
    write_old_store(path, version)
    window = observation(1)
    with open_store(path) as store:
        contents = store.load()
        assert (contents.hosts, contents.lifetimes, contents.functions) == ((HOST,), (LIFETIME,), (FUNCTION,))
        assert contents.builds == (Build(build_id="ab", executable="/bin/app", label="v1"),)
        assert (contents.states, contents.documents) == ({FUNCTION.key: {"state": "single"}}, {"specification": {}})
        (old,) = contents.observations
        assert old.uncertainty_ns == (window.uncertainty_ns if version >= 7 else 0.12 * window.bias_ns)
        assert (old.timed, old.split is not None) == (window.timed, version >= 6)
        assert len(store.read(Verdict, function="f")) == 1
        later = {LifetimeSummary: 2, FunctionProfile: 3, EnvironmentVector: 4, ExperimentWindow: 4, CallSamples: 5}
        assert [len(store.read(each)) for each in later] == [int(version >= since) for since in later.values()]
        fill(store, [observation(2)])
        assert len(store.load().observations) == 2
        assert LIFETIME.id in {each.lifetime for each in store.read(LifetimeSummary)}
    assert Path(f"{path}.schema-{version}").is_file()
    open_store(path, read_only=True).close()


def test_a_migrated_store_has_the_tables_of_a_new_one(tmp_path: Path) -> None:
    """Types, keys and what may be null are the same."""
    write_old_store(tmp_path / "old.db", 1)
    for name in ("old.db", "new.db"):
        open_store(tmp_path / name).close()
    assert columns(tmp_path / "old.db") == columns(tmp_path / "new.db")


def test_every_field_of_a_record_has_a_column() -> None:
    """A field without a column would be lost at the next restart."""
    for table in SCHEMA.tables:
        stored = {column.field or column.name for column in table.columns if column.computed is None}
        assert set(table.record.__dataclass_fields__) - NOT_STORED.get(table.name, set()) == stored, table.name
