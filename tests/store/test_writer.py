"""The writer groups what it is given, and a failing store neither stops it nor floods the log."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from specmine.model.batch import Lifetime
from specmine.model.function import Function
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation
from specmine.store import (
    Document,
    FunctionRecord,
    Host,
    Retention,
    StoreError,
    StoreWriter,
    Writes,
    open_store,
    writer,
)
from specmine.store.sqlite import SqliteStore
from tests.support.patience import patient

FUNCTION = Function(build_id="ab", offset=16, name="z", module="app")
HOST = Host(boot_id="boot", hostname="here", utc_offset_ns=time.time_ns())


def observation(second: int = 1) -> Observation:
    """Return a small observation."""
    return Observation(
        function=FUNCTION.key,
        lifetime="boot:1:1",
        kind=Kind.TIME,
        start_ns=second,
        end_ns=second + 1,
        histogram=Histogram.from_durations([100, 200]),
        calls=2,
        watched_ns=1,
    )


def until(true: Callable[[], bool]) -> None:
    """Wait, for a while, until something is true."""
    deadline = time.monotonic() + patient(60)
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@contextmanager
def writing(path: Path, reported: list[str], **more: Any) -> Iterator[StoreWriter]:
    """Run a fast writer on a store."""
    store = open_store(path)
    fast = StoreWriter(store, retention=Retention(), utc_ns=time.time_ns, report=reported.append, every_s=0.01, **more)
    try:
        yield fast
    finally:
        fast.stop()


def observations_in(path: Path) -> int:
    """Return how many observations a store holds."""
    with open_store(path, read_only=True) as store:
        return len(store.load(newest=10**6).observations)


def test_stop_writes_what_waits(tmp_path: Path) -> None:
    """All that was put before the stop is in the store after it."""
    reported: list[str] = []
    store = open_store(tmp_path / "s.db")
    slow = StoreWriter(store, retention=Retention(), utc_ns=time.time_ns, report=reported.append, every_s=3600)
    slow.put(HOST, FUNCTION)
    for second in range(100):
        slow.put(observation(second))
    assert slow.stop()
    assert observations_in(tmp_path / "s.db") == 100
    assert (slow.counts.written, slow.counts.failures, reported) == (100, 0, [])


def test_stop_during_a_write_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was put while the thread wrote is written too if the stop comes before that write ends."""
    real, begun, go_on = SqliteStore.write, threading.Event(), threading.Event()

    def write(store: SqliteStore, writes: Writes, utc_ns: int) -> None:
        begun.set()
        go_on.wait(5)
        real(store, writes, utc_ns)

    monkeypatch.setattr(SqliteStore, "write", write)
    store = open_store(tmp_path / "s.db")
    fast = StoreWriter(store, retention=Retention(), utc_ns=time.time_ns, report=pytest.fail, every_s=0.01)
    fast.put(observation(1))
    assert begun.wait(5)
    fast.put(observation(2))
    fast.put(Document(name="specification", document={"functions": []}))
    threading.Timer(0.1, go_on.set).start()
    assert fast.stop()
    with open_store(tmp_path / "s.db", read_only=True) as reader:
        assert len(reader.load().observations) == 2
        assert reader.document("specification") == {"functions": []}


def test_a_failing_store_is_told_once_and_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the disk is full things wait; one line at the start, one at the end, nothing lost."""
    monkeypatch.setattr(writer, "_RETRY_S", 0.01)
    real, full = SqliteStore.write, True

    def write(store: SqliteStore, writes: Writes, utc_ns: int) -> None:
        if full:
            raise StoreError("the store cannot be written (database or disk is full)")
        real(store, writes, utc_ns)

    monkeypatch.setattr(SqliteStore, "write", write)
    reported: list[str] = []
    with writing(tmp_path / "s.db", reported) as fast:
        fast.put(observation())
        until(lambda: fast.counts.failures >= 3)
        assert len(reported) == 1 and "disk is full" in reported[0]
        full = False
        until(lambda: fast.counts.written == 1)
        until(lambda: len(reported) == 2)
    assert reported[1] == "the store works again"
    assert observations_in(tmp_path / "s.db") == 1


def test_what_waits_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While nothing can be written the oldest observations go, counted."""
    monkeypatch.setattr(writer, "_RETRY_S", 0.01)
    monkeypatch.setattr(writer, "_MOST_WAITING", 10)

    def write(*_: Any) -> None:
        raise StoreError("the store cannot be written (attempt to write a readonly database)")

    monkeypatch.setattr(SqliteStore, "write", write)
    with writing(tmp_path / "s.db", []) as fast:
        fast.put(*[observation(second) for second in range(25)])
        until(lambda: fast.counts.failures >= 2)
        assert fast.counts.dropped == 15


def test_a_store_damaged_while_running_is_set_aside(tmp_path: Path) -> None:
    """The damaged file is kept, a new one begins, and what later rows refer to is in it."""
    path = tmp_path / "s.db"
    reported: list[str] = []
    with writing(path, reported) as fast:
        fast.put(HOST, FUNCTION)
        fast.put(*[observation(second) for second in range(2000)])
        until(lambda: fast.counts.written == 2000)
        with sqlite3.connect(path) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.close()
        with path.open("r+b") as file:
            file.seek(100)
            file.write(b"x" * (path.stat().st_size - 100))
        fast.put(observation(3000))
        until(lambda: fast.counts.written == 2001)
    assert len(reported) == 1 and "corrupt-1" in reported[0]
    assert Path(f"{path}.corrupt-1").exists()
    with open_store(path, read_only=True) as store:
        contents = store.load()
    assert (contents.hosts, contents.functions) == ((HOST,), (FUNCTION,))
    assert [each.start_ns for each in contents.observations] == [3000]


def test_what_no_store_takes_does_not_block_the_rest(tmp_path: Path) -> None:
    """A value that cannot be written is dropped with a line, and later ones are written."""
    reported: list[str] = []
    with writing(tmp_path / "s.db", reported) as fast:
        fast.put(FunctionRecord(function="f", state={"value": float("nan")}))
        until(lambda: len(reported) == 1)
        fast.put(observation())
        until(lambda: fast.counts.written == 1)
    assert observations_in(tmp_path / "s.db") == 1


def test_what_no_store_takes_is_lost_alone(tmp_path: Path) -> None:
    """The records that were written together with it, before and after it, are all written."""
    reported: list[str] = []
    with writing(tmp_path / "s.db", reported) as fast:
        bad = FunctionRecord(function="f", state={"value": float("nan")})
        fast.put(*map(observation, range(50)), bad, HOST, FUNCTION, *map(observation, range(50, 100)))
        until(lambda: fast.counts.written == 100)
        assert (fast.counts.failures, fast.counts.dropped) == (1, 1)
    assert len(reported) == 1 and "is dropped" in reported[0]
    with open_store(tmp_path / "s.db", read_only=True) as store:
        contents, written = store.load(), store.read(Observation)
    assert sorted(each.start_ns for each in written) == list(range(100))
    assert (contents.hosts, contents.functions) == ((HOST,), (FUNCTION,))


def test_lives_that_ended_long_ago_are_not_remembered(tmp_path: Path) -> None:
    """For a new store after a damaged one: those that run and those that ended lately are enough."""
    reported: list[str] = []

    def life(number: int, processes: int) -> Lifetime:
        return Lifetime(
            id=f"boot:{number}:1", pid=number, executable="/app", build_id="ab", start_ns=number, processes=processes
        )

    with writing(tmp_path / "s.db", reported) as fast:
        fast.put(HOST, FUNCTION, *(life(number, number % 500 == 0) for number in range(2_000)))
        until(lambda: bool(fast._referred))
        lives = fast._referred.of(Lifetime)
        assert [each.pid for each in lives if each.processes] == [0, 500, 1_000, 1_500]
        assert [each.pid for each in lives if not each.processes] == list(range(1_936, 2_000))
        assert fast._referred.of(Host, Function) == (HOST, FUNCTION)
    assert not reported
    with open_store(tmp_path / "s.db", read_only=True) as store:
        assert len(store.load().lifetimes) == 2_000


def test_nothing_to_write_wakes_nobody(tmp_path: Path) -> None:
    """The thread sleeps until something is put, which is then written as soon as otherwise."""
    looks: list[int] = []

    def utc_ns() -> int:
        looks.append(1)
        return time.time_ns()

    store = open_store(tmp_path / "s.db")
    fast = StoreWriter(store, retention=Retention(), utc_ns=utc_ns, report=pytest.fail, every_s=0.01)
    fast.put(HOST, FUNCTION)
    until(lambda: len(looks) > 1)
    looks.clear()
    time.sleep(0.3)
    assert looks == []
    fast.put(observation(1))
    until(lambda: fast.counts.written == 1)
    assert fast.stop()
