"""What waits is numbered without gaps, and is there once."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from specmine.store import StoreError
from specmine.store.outbox import Outbox, OutboxCorrupt


def test_what_waits_goes_in_order_until_it_is_acknowledged(tmp_path: Path) -> None:
    """Numbers go on after a new start; an acknowledgement forgets all up to it."""
    with Outbox(tmp_path / "o.db") as outbox:
        stream = outbox.stream
        outbox.put([b"a", b"b"], source={"mark": 3})
        first = outbox.first()
        assert first is not None
        assert (first.number, first.payload) == (1, b"a")
        outbox.acknowledge(1)
    with Outbox(tmp_path / "o.db") as outbox:
        outbox.put([b"c"], source={"mark": 4}, sent={("Host", "x"): b"1"}, watermarks={("f", "l", "time"): 9})
        assert (outbox.stream, outbox.source, outbox.waiting[0]) == (stream, {"mark": 4}, 2)
        assert outbox.sent() == {("Host", "x"): b"1"}
        assert outbox.watermarks() == {("f", "l", "time"): 9}
        outbox.acknowledge(2)
        last = outbox.first()
        assert last is not None
        assert (last.number, last.payload) == (3, b"c")


def test_a_new_stream_begins_at_one(tmp_path: Path) -> None:
    """What waits keeps its order under new numbers."""
    with Outbox(tmp_path / "o.db") as outbox:
        outbox.put([b"a", b"b", b"c"], source={})
        outbox.acknowledge(1)
        before = outbox.stream
        outbox.begin_stream()
        first = outbox.first()
        assert first is not None
        assert (first.number, first.payload, outbox.stream != before) == (1, b"b", True)
        outbox.put([b"d"], source={})
        outbox.acknowledge(2)
        first = outbox.first()
        assert first is not None
        assert (first.number, first.payload) == (3, b"d")


def test_too_much_gives_up_the_oldest_but_what_was_sent(tmp_path: Path) -> None:
    """The numbers stay, and what may have arrived keeps its content."""
    with Outbox(tmp_path / "o.db") as outbox:
        outbox.put([bytes([number]) * 100 for number in range(5)], source={})
        outbox.first()
        assert outbox.bound(320, b"lost") == 2
        assert outbox.lost == 2
        payloads = []
        while (each := outbox.first()) is not None:
            payloads.append(each.payload)
            outbox.acknowledge(each.number)
        assert payloads == [b"\0" * 100, b"lost", b"lost", b"\3" * 100, b"\4" * 100]


def test_a_file_that_is_none_is_one_line(tmp_path: Path) -> None:
    """Not a traceback."""
    (tmp_path / "o.db").write_bytes(b"no database" * 100)
    with pytest.raises(OutboxCorrupt, match="is damaged"):
        Outbox(tmp_path / "o.db")


def test_a_full_disk_is_told_as_such_and_loses_nothing(tmp_path: Path) -> None:
    """SQLite may have rolled back by itself; what waited still does, and more fits once there is room."""
    with Outbox(tmp_path / "o.db") as outbox:
        outbox.put([b"a"], source={"mark": 1})
        pages = outbox._db.execute("PRAGMA page_count").fetchone()[0]
        outbox._db.execute(f"PRAGMA max_page_count = {pages + 4}")
        with pytest.raises(StoreError, match="full"):
            outbox.put([b"b" * 1_000_000], source={"mark": 2})
        assert (outbox.waiting[0], outbox.source) == (1, {"mark": 1})
        outbox._db.execute("PRAGMA max_page_count = 100000")
        outbox.put([b"c"], source={"mark": 3})
        assert (outbox.waiting[0], outbox.source) == (2, {"mark": 3})


def test_damage_is_told_and_set_aside(tmp_path: Path) -> None:
    """Wherever the damage is, it is one error of its own kind; what takes its place knows that it does."""
    path, chance, found = tmp_path / "o.db", random.Random(1), 0
    descriptors = len(os.listdir("/proc/self/fd"))
    for _ in range(60):
        for part in tmp_path.iterdir():
            part.unlink()
        with Outbox(path) as outbox:
            outbox.put(
                [b"x" * 5_000] * 8, source={"mark": 3}, sent={("Host", "x"): b"1"}, watermarks={("f", "l", "t"): 9}
            )
            assert not outbox.replaces
        data = bytearray(path.read_bytes())
        for _ in range(30):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        path.write_bytes(data)
        try:
            with Outbox(path) as outbox:
                outbox.sent(), outbox.watermarks(), outbox.source, outbox.waiting, outbox.lost
                while (waits := outbox.first()) is not None:
                    outbox.acknowledge(waits.number)
                outbox.put([b"y"], source={})
        except OutboxCorrupt:
            found += 1
            made, where = Outbox.begun_anew(path)
            with made:
                assert made.replaces and made.waiting == (0, 0)
                made.forget_replaced()
                assert not made.replaces
            assert f"{path}.corrupt-1" in where and Path(f"{path}.corrupt-1").exists()
    assert found >= 10  # some bits are in payloads, of which SQLite knows nothing
    assert len(os.listdir("/proc/self/fd")) == descriptors
