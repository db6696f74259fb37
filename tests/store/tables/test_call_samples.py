"""The store keeps single durations of each lifetime: the largest sample, the longest order, the newest lifetimes."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from specmine.model.batch import CallSamples
from specmine.store import StoreCorrupt, Writes, open_store
from specmine.store.statements import deletion_of_old
from specmine.store.tables.call_samples import CALL_SAMPLES


def singles(calls: int, first: tuple[int, ...] = (), lifetime: str = "boot:7:300") -> CallSamples:
    """Return durations of one function; the sample tells how many calls it is of."""
    return CallSamples(function="ab+0x10", lifetime=lifetime, calls=calls, first=first, sample=(calls, 2**39))


def test_they_come_back_as_they_were_put(tmp_path: Path) -> None:
    """Order and sample, durations of minutes too."""
    put = [singles(300, (30, 10, 20)), singles(10, lifetime="boot:8:1")]
    with open_store(tmp_path / "s.db") as store:
        store.write(Writes(tuple(put)), 1)
        assert store.read(CallSamples) == tuple(put)


def test_a_sample_of_fewer_calls_replaces_nothing(tmp_path: Path) -> None:
    """After a restart of the daemon the sample begins anew: the larger one stays, and the longer order."""
    with open_store(tmp_path / "s.db") as store:
        for utc_ns, each in enumerate((singles(300, (1, 2, 3)), singles(100, (1,)), singles(400, (9,)))):
            store.write(Writes((each,)), utc_ns)
        (found,) = store.read(CallSamples)
    assert (found.calls, found.sample[0], found.first) == (400, 400, (1, 2, 3))


def test_the_newest_lifetimes_are_kept(tmp_path: Path) -> None:
    """Beyond a number the oldest go."""
    with open_store(tmp_path / "s.db") as store:
        for utc_ns in range(5):
            store.write(Writes((singles(10, lifetime=f"boot:{9 - utc_ns}:1"),)), utc_ns)
    db = sqlite3.connect(tmp_path / "s.db")
    db.execute(deletion_of_old(CALL_SAMPLES), {"most": 2})
    assert [row[0] for row in db.execute("SELECT lifetime FROM singles")] == ["boot:5:1", "boot:6:1"]
    db.close()


def test_merged_stores_have_the_lifetimes_of_all(tmp_path: Path) -> None:
    """What one store has and another has not comes along."""
    for name in ("a", "b"):
        with open_store(tmp_path / name) as store:
            store.write(Writes((singles(10, lifetime=f"{name}:7:1"), singles(10, lifetime="both:7:1"))), 1)
    with open_store(tmp_path / "a") as store:
        store.absorb(tmp_path / "b")
        assert [each.lifetime for each in store.read(CallSamples)] == ["a:7:1", "b:7:1", "both:7:1"]


def test_damaged_durations_are_an_error(tmp_path: Path) -> None:
    """Bytes that are none of ours are an error of the store, not a guess."""
    with open_store(tmp_path / "s.db") as store:
        store.write(Writes((singles(10),)), 1)
    db = sqlite3.connect(tmp_path / "s.db")
    db.execute("UPDATE singles SET kept = x'00ff'")
    db.commit()
    db.close()
    with open_store(tmp_path / "s.db", read_only=True) as store, pytest.raises(StoreCorrupt):
        store.read(CallSamples)
