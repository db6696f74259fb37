"""A store survives damage, other versions, other writers and sudden deaths, and says what is wrong."""

from __future__ import annotations

import os
import signal
import sqlite3
import struct
import subprocess
import sys
import tracemalloc
import zlib
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from specmine.model.observation import Observation
from specmine.store import StoreCorrupt, StoreError, open_store
from specmine.store.lock import LockTaken
from specmine.store.schema import SCHEMA, Migration, Schema
from specmine.store.table import Column
from specmine.store.tables.documents import Document
from specmine.store.writes import Writes
from tests.support.paths import ROOT
from tests.support.stored import fill, observation


def damage(path: Path) -> bytes:
    """Overwrite the middle of a store with letters and return what it holds then."""
    data = bytearray(path.read_bytes())
    data[100 : len(data) - 100] = b"x" * (len(data) - 200)
    path.write_bytes(data)
    return bytes(data)


def test_a_damaged_store_is_an_error(tmp_path: Path) -> None:
    """Without leave to set it aside a damaged store is refused with exit code 2 and left as it is."""
    path = tmp_path / "s.db"
    with open_store(path) as store:
        fill(store, [observation(second) for second in range(50)])
    data = damage(path)
    for read_only in (True, False):
        with pytest.raises(StoreCorrupt, match="damaged") as caught:
            open_store(path, read_only=read_only)
        assert caught.value.exit_code == 2
    assert path.read_bytes() == data


def test_damaged_names_are_damage(tmp_path: Path) -> None:
    """SQLite quotes a damaged statement in its message, which is no text then."""
    path = tmp_path / "s.db"
    open_store(path).close()
    data = path.read_bytes()
    path.write_bytes(data.replace(b"CREATE TABLE functions", b"CREATE TABLE \xfa\xfb\xfctions"))
    for read_only in (True, False):
        with pytest.raises(StoreCorrupt, match="damaged") as caught:
            open_store(path, read_only=read_only)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("table", ["functions", "meta"])
def test_a_view_in_place_of_a_table_is_refused(table: str, tmp_path: Path) -> None:
    """A view without end would keep a reader busy for ever."""
    path = tmp_path / "s.db"
    open_store(path).close()
    db = sqlite3.connect(path)
    db.execute(f"DROP TABLE {table}")
    endless = "WITH RECURSIVE n(key) AS (SELECT 1 UNION ALL SELECT key + 1 FROM n) SELECT key, key AS value FROM n"
    db.execute(f"CREATE VIEW {table} AS {endless}")
    db.close()
    for read_only in (True, False):
        with pytest.raises(StoreCorrupt, match=f"'{table}' is neither a table nor an index"):
            open_store(path, read_only=read_only)


def test_damaged_stores_are_set_aside_and_never_overwritten(tmp_path: Path) -> None:
    """Each damaged store keeps its bytes under the next free name, and one line is reported."""
    path = tmp_path / "s.db"
    reported: list[str] = []
    damaged = []
    for _ in range(2):
        with open_store(path, set_aside=reported.append) as store:
            fill(store, [observation(second) for second in range(50)])
        damaged.append(damage(path))
    with open_store(path, set_aside=reported.append) as store:
        assert store.load().observations == ()
    assert [Path(f"{path}.corrupt-{n}").read_bytes() for n in (1, 2)] == damaged
    assert len(reported) == 2
    assert all("\n" not in line and f"s.db.corrupt-{n}" in line for n, line in enumerate(reported, 1))


def test_a_row_that_cannot_be_read_is_corruption(tmp_path: Path) -> None:
    """Bytes that SQLite takes but the store cannot read are reported as damage."""
    with open_store(tmp_path / "s.db") as store:
        fill(store, [observation(1)])
    db = sqlite3.connect(tmp_path / "s.db")
    db.execute("UPDATE observations SET counts = x'00'")
    db.commit()
    db.close()
    with open_store(tmp_path / "s.db") as store, pytest.raises(StoreCorrupt, match="cannot be read"):
        store.load()


@pytest.mark.parametrize("document", ["17", "[[[]]]", '"text"', "null", "{"])
def test_a_document_that_is_no_object_is_corruption(document: str, tmp_path: Path) -> None:
    """All that read a document expect an object; another JSON value is damage, found in one place."""
    with open_store(tmp_path / "s.db") as store:
        store.write(Writes((Document(name="specification", document={"functions": []}),)), 1)
    with closing(sqlite3.connect(tmp_path / "s.db")) as db, db:
        db.execute("UPDATE documents SET document = ?", (document,))
    with open_store(tmp_path / "s.db") as store, pytest.raises(StoreCorrupt, match="cannot be read"):
        store.document("specification")


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    """A store written by a later specmine is refused, also for reading, and not touched."""
    path = tmp_path / "s.db"
    open_store(path).close()
    db = sqlite3.connect(path)
    db.execute(f"UPDATE meta SET value = '{SCHEMA.version + 1}'")
    db.commit()
    db.close()
    for read_only in (True, False):
        with pytest.raises(StoreError, match=rf"schema {SCHEMA.version + 1}.*upgrade specmine"):
            open_store(path, read_only=read_only, set_aside=pytest.fail)


def later(apply: str) -> Schema:
    """Return a schema two versions later: a column of builds, and a statement that changes rows."""
    note = Column("note", since=SCHEMA.version + 1, default="?", computed=lambda *_: "new")
    tables = tuple(replace(t, columns=(*t.columns, note)) if t.name == "builds" else t for t in SCHEMA.tables)
    more = Migration(name="notes", version=SCHEMA.version + 2, apply=lambda db: (db.execute(apply), None)[1])
    return replace(SCHEMA, tables=tables, migrations=(*SCHEMA.migrations, more))


def test_an_older_schema_is_migrated_and_a_copy_kept(tmp_path: Path) -> None:
    """Migration leads forward step by step, keeps the data, and leaves a readable copy of the old store."""
    path = tmp_path / "s.db"
    with open_store(path) as store:
        fill(store, [observation(1)])
    schema = later("UPDATE builds SET note = note || 'x'")
    assert [each.name for each in schema.pending(SCHEMA.version)] == ["notes"]
    with pytest.raises(StoreError, match=f"older schema {SCHEMA.version}"):
        open_store(path, read_only=True, schema=schema)
    with open_store(path, schema=schema) as store:
        assert len(store.load().observations) == 1
    with open_store(Path(f"{path}.schema-{SCHEMA.version}"), read_only=True) as copy:
        assert len(copy.load().observations) == 1
    db = sqlite3.connect(path)
    assert db.execute("SELECT note FROM builds").fetchall() == [("?x",)]
    assert db.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone() == (str(SCHEMA.version + 2),)
    db.close()


def test_a_failed_migration_changes_nothing(tmp_path: Path) -> None:
    """When a step fails the store stays at its schema."""
    path = tmp_path / "s.db"
    open_store(path).close()
    with pytest.raises(StoreError):
        open_store(path, schema=later("nonsense"))
    db = sqlite3.connect(path)
    assert db.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone() == (str(SCHEMA.version),)
    assert "note" not in [row[1] for row in db.execute("PRAGMA table_info(builds)")]
    db.close()


def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    """A foreign database is refused, not set aside."""
    path = tmp_path / "s.db"
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE theirs(x)")
    db.close()
    with pytest.raises(StoreError, match="another program"):
        open_store(path, set_aside=pytest.fail)
    assert path.exists()


def test_a_second_writer_is_refused_and_a_reader_is_not(tmp_path: Path) -> None:
    """One process writes; others may read meanwhile."""
    path = tmp_path / "s.db"
    with open_store(path) as store:
        fill(store, [observation(1)])
        with pytest.raises(LockTaken, match=f"in use by process {os.getpid()}") as caught:
            open_store(path)
        assert caught.value.exit_code == 2
        with open_store(path, read_only=True) as reader:
            assert len(reader.load().observations) == 1
    open_store(path).close()


def test_a_missing_store_cannot_be_read(tmp_path: Path) -> None:
    """Reading makes no store."""
    with pytest.raises(StoreError, match="there is no store"):
        open_store(tmp_path / "s.db", read_only=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["/proc/s.db", "/dev/null/s.db"])
def test_an_unwritable_place_is_one_line(place: str) -> None:
    """A store that cannot be made is an error of one line with exit code 2."""
    with pytest.raises(Exception, match=r"cannot open the lock") as caught:
        open_store(place)
    assert getattr(caught.value, "exit_code", None) == 2
    assert "\n" not in str(caught.value)


WRITER = """
import sys
sys.path.insert(0, sys.argv[2])
from tests.support.stored import fill, observation
from specmine.store import open_store
store = open_store(sys.argv[1])
second = 0
while True:
    fill(store, [observation(second + n) for n in range(5)])
    second += 5
    print(second, flush=True)
"""


def test_a_killed_writer_loses_nothing_it_committed(tmp_path: Path) -> None:
    """After SIGKILL in the middle of writing the store opens, whole, with every committed transaction."""
    path = tmp_path / "s.db"
    for _ in range(3):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), str(ROOT)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert writer.stdout is not None
        reported = [int(writer.stdout.readline()) for _ in range(4)][-1]
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        with open_store(path, set_aside=pytest.fail) as store:
            found = len(store.load(newest=10**6).observations)
        assert found >= reported and found % 5 == 0


@pytest.mark.parametrize(
    "blob",
    [
        zlib.compress(b"\0" * (64 << 20)),
        b"\0" * (8 << 20),
        zlib.compress(struct.pack("<I", 2) + struct.pack("<2H", 5, 5) + struct.pack("<2Q", 1, 1)),
        zlib.compress(struct.pack("<I", 1) + struct.pack("<H", 5) + struct.pack("<Q", 0)),
        "text",
    ],
    ids=["a bomb", "zeros", "a bucket twice", "no calls", "of another type"],
)
def test_a_crafted_blob_is_damage_and_takes_no_memory(tmp_path: Path, blob: object) -> None:
    """What no histogram can be is refused before it is unfolded."""
    path = tmp_path / "s.db"
    with open_store(path) as store:
        fill(store, [observation(1)])
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE observations SET counts = ?", (blob,))
    tracemalloc.start()
    try:
        with open_store(path, read_only=True) as store, pytest.raises(StoreCorrupt):
            store.read(Observation)
        assert tracemalloc.get_traced_memory()[1] < 24 << 20
    finally:
        tracemalloc.stop()
