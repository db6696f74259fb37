"""A store survives damage, other versions, other writers and sudden deaths, and says what is wrong."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from specmine.store import Store, StoreCorrupt, StoreError
from specmine.store.lock import LockTaken
from specmine.store.schema import VERSION
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
    with Store.open(path) as store:
        fill(store, [observation(second) for second in range(50)])
    data = damage(path)
    for read_only in (True, False):
        with pytest.raises(StoreCorrupt, match="damaged") as caught:
            Store.open(path, read_only=read_only)
        assert caught.value.exit_code == 2
    assert path.read_bytes() == data


def test_damaged_stores_are_set_aside_and_never_overwritten(tmp_path: Path) -> None:
    """Each damaged store keeps its bytes under the next free name, and one line is told."""
    path = tmp_path / "s.db"
    told: list[str] = []
    kept = []
    for _ in range(2):
        with Store.open(path, set_aside=told.append) as store:
            fill(store, [observation(second) for second in range(50)])
        kept.append(damage(path))
    with Store.open(path, set_aside=told.append) as store:
        assert store.load().observations == ()
    assert [Path(f"{path}.corrupt-{n}").read_bytes() for n in (1, 2)] == kept
    assert len(told) == 2
    assert all("\n" not in line and f"s.db.corrupt-{n}" in line for n, line in enumerate(told, 1))


def test_a_row_that_cannot_be_read_is_corruption(tmp_path: Path) -> None:
    """Bytes that SQLite takes but the store cannot read are reported as damage."""
    with Store.open(tmp_path / "s.db") as store:
        fill(store, [observation(1)])
    db = sqlite3.connect(tmp_path / "s.db")
    db.execute("UPDATE observations SET counts = x'00'")
    db.commit()
    db.close()
    with Store.open(tmp_path / "s.db") as store, pytest.raises(StoreCorrupt, match="cannot be read"):
        store.load()


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    """A store written by a later specmine is refused, also for reading, and not touched."""
    path = tmp_path / "s.db"
    Store.open(path, version=1).close()
    db = sqlite3.connect(path)
    db.execute(f"UPDATE meta SET value = '{VERSION + 1}'")
    db.commit()
    db.close()
    for read_only in (True, False):
        with pytest.raises(StoreError, match=rf"schema {VERSION + 1}.*upgrade specmine"):
            Store.open(path, read_only=read_only, set_aside=pytest.fail)


def test_an_older_schema_is_migrated_and_a_copy_kept(tmp_path: Path) -> None:
    """Migration leads forward step by step, keeps the data, and leaves a readable copy of the old store."""
    path = tmp_path / "s.db"
    with Store.open(path) as store:
        fill(store, [observation(1)])
    steps = {VERSION: "ALTER TABLE builds ADD COLUMN note TEXT;", VERSION + 1: "UPDATE builds SET note = 'x';"}
    with pytest.raises(StoreError, match=f"older schema {VERSION}"):
        Store.open(path, read_only=True, version=VERSION + 2, migrations=steps)
    with Store.open(path, version=VERSION + 2, migrations=steps) as store:
        assert len(store.load().observations) == 1
    with Store.open(Path(f"{path}.schema-{VERSION}"), read_only=True) as copy:
        assert len(copy.load().observations) == 1
    db = sqlite3.connect(path)
    assert db.execute("SELECT note FROM builds").fetchall() == [("x",)]
    assert db.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone() == (str(VERSION + 2),)
    db.close()


def test_a_failed_migration_changes_nothing(tmp_path: Path) -> None:
    """When a step fails the store stays at its schema."""
    path = tmp_path / "s.db"
    Store.open(path).close()
    with pytest.raises(StoreError):
        Store.open(path, version=VERSION + 2, migrations={VERSION: "CREATE TABLE more(x);", VERSION + 1: "nonsense;"})
    db = sqlite3.connect(path)
    assert db.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone() == (str(VERSION),)
    assert db.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'more'").fetchone() == (0,)
    db.close()


def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    """A foreign database is refused, not set aside."""
    path = tmp_path / "s.db"
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE theirs(x)")
    db.close()
    with pytest.raises(StoreError, match="another program"):
        Store.open(path, set_aside=pytest.fail)
    assert path.exists()


def test_a_second_writer_is_refused_and_a_reader_is_not(tmp_path: Path) -> None:
    """One process writes; others may read meanwhile."""
    path = tmp_path / "s.db"
    with Store.open(path) as store:
        fill(store, [observation(1)])
        with pytest.raises(LockTaken, match=f"in use by process {os.getpid()}") as caught:
            Store.open(path)
        assert caught.value.exit_code == 2
        with Store.open(path, read_only=True) as reader:
            assert len(reader.load().observations) == 1
    Store.open(path).close()


def test_a_missing_store_cannot_be_read(tmp_path: Path) -> None:
    """Reading makes no store."""
    with pytest.raises(StoreError, match="there is no store"):
        Store.open(tmp_path / "s.db", read_only=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["/proc/s.db", "/dev/null/s.db"])
def test_an_unwritable_place_is_one_line(place: str) -> None:
    """A store that cannot be made is an error of one line with exit code 2."""
    with pytest.raises(Exception, match=r"cannot open the lock") as caught:
        Store.open(place)
    assert getattr(caught.value, "exit_code", None) == 2
    assert "\n" not in str(caught.value)


WRITER = """
import sys
sys.path.insert(0, sys.argv[2])
from tests.support.stored import fill, observation
from specmine.store import Store
store = Store.open(sys.argv[1])
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
        told = [int(writer.stdout.readline()) for _ in range(4)][-1]
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        with Store.open(path, set_aside=pytest.fail) as store:
            found = len(store.load(newest=10**6).observations)
        assert found >= told and found % 5 == 0
