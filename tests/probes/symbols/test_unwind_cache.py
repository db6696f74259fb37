"""Unwind rows are kept in bounded room: in the kernel's arrays, by use, and on disk, where damage only costs time."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from specmine.probes.elf.facts import RowTable
from specmine.probes.symbols.unwind_cache import RowCache, packed, unpacked
from specmine.probes.symbols.unwind_space import REST_NS, Space

KEY = "ab" * 32


def rows(count: int) -> RowTable:
    """Return a table of so many rows."""
    pc = np.arange(count, dtype=np.uint32) * 8
    return RowTable(pc=pc, info=pc + 1, pages=np.zeros(3, dtype=np.uint32))


def test_what_was_put_comes_back(tmp_path: Path) -> None:
    """A table survives the disk, also for another reader of the folder; an unknown or odd key finds nothing."""
    RowCache(tmp_path).put(KEY, rows(100))
    found = RowCache(tmp_path).get(KEY)
    assert found is not None
    assert np.array_equal(found.pc, rows(100).pc)
    assert np.array_equal(found.info, rows(100).info)
    assert np.array_equal(found.pages, rows(100).pages)
    for key in ("cd" * 32, "../" + KEY, ""):
        assert RowCache(tmp_path).get(key) is None
    assert RowCache(None).get(KEY) is None


@given(st.integers(0, 1 << 30), st.integers(1, 255))
def test_a_changed_byte_is_noticed(place: int, change: int) -> None:
    """No single wrong byte, wherever it is, gives rows."""
    data = bytearray(packed(rows(20)))
    data[place % len(data)] ^= change
    assert unpacked(bytes(data)) is None


@given(st.integers(0, 1 << 30))
def test_a_cut_file_is_noticed(length: int) -> None:
    """A file cut short, by a full disk or a crash, gives nothing."""
    data = packed(rows(20))
    assert unpacked(data[: length % len(data)]) is None


def test_a_damaged_file_is_removed(tmp_path: Path) -> None:
    """The rows are made again and kept again."""
    cache = RowCache(tmp_path)
    cache.put(KEY, rows(10))
    (file,) = tmp_path.iterdir()
    file.write_bytes(b"nonsense")
    assert cache.get(KEY) is None
    assert list(tmp_path.iterdir()) == []
    cache.put(KEY, rows(10))
    assert cache.get(KEY) is not None


def test_the_disk_is_bounded_by_use(tmp_path: Path) -> None:
    """The files used the longest ago go first; what was just read stays."""
    size = len(packed(rows(1000)))
    cache = RowCache(tmp_path, limit_bytes=5 * size)
    keys = [f"{i:064x}" for i in range(9)]
    for at, key in enumerate(keys[:5]):
        cache.put(key, rows(1000))
        os.utime(next(p for p in tmp_path.iterdir() if p.name.endswith(key)), (at, at))
    assert cache.get(keys[0]) is not None
    cache.put(keys[5], rows(1000))
    assert cache.get(keys[0]) is not None
    assert cache.get(keys[1]) is None
    for key in keys[6:]:
        cache.put(key, rows(1000))
    assert sum(p.stat().st_size for p in tmp_path.iterdir()) <= 5 * size


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    """Without a disk the rows are made each time."""
    (tmp_path / "file").write_text("")
    cache = RowCache(tmp_path / "file" / "below")
    cache.put(KEY, rows(10))
    assert cache.get(KEY) is None


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 40), st.integers(0, REST_NS)), max_size=60))
def test_stretches_never_overlap_and_rest(steps: list[tuple[bool, int, int]]) -> None:
    """No entry is in two hands, none is used again before it has rested, and none is lost."""
    space, taken, rested = Space(100), dict[int, int](), dict[int, int]()
    now = 0
    for take, number, pause in steps:
        now += pause
        if take:
            start = space.take(number, now)
            if start is not None:
                entries = range(start, start + number)
                assert entries.stop <= 100
                assert all(rested.get(entry, 0) <= now for entry in entries)
                assert not any(entry in range(s, s + n) for s, n in taken.items() for entry in entries)
                taken[start] = number
        elif taken:
            start = sorted(taken)[number % len(taken)]
            space.give_back(start, taken[start], now)
            rested |= dict.fromkeys(range(start, start + taken.pop(start)), now + REST_NS)
        assert space.used == sum(taken.values())
    for start, length in taken.items():
        space.give_back(start, length, now)
    assert space.take(100, now + REST_NS) == 0
