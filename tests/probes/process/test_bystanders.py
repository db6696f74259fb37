"""Which files unwatched processes execute, as far as was seen."""

from __future__ import annotations

import time
import tracemalloc

import pytest

from specmine.probes.process import bystanders as subject
from specmine.probes.process import proc
from specmine.probes.process.bystanders import Bystanders
from specmine.probes.process.mappings import FileId
from specmine.probes.process.proc import Process

SECOND = 1_000_000_000


def test_what_is_shared_follows_each_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is shared from the look at the process that executes it until that is chosen, or looked at again."""
    maps: dict[int, frozenset[FileId]] = {1: frozenset({(8, 1)}), 2: frozenset({(8, 1), (8, 2)})}
    monkeypatch.setattr(subject, "executed_files", lambda pid: maps[pid])
    seen = Bystanders()

    def shared() -> list[bool]:
        return [seen.share((8, inode)) for inode in (1, 2, 3)]

    assert shared() == [False, False, False]
    seen.look_at(1)
    assert shared() == [True, False, False]
    seen.look_at(2)
    assert shared() == [True, True, False]
    seen.chosen(2)
    assert shared() == [True, False, False]
    maps[1] = frozenset({(8, 3)})
    seen.look_at(1)
    assert shared() == [False, False, True]
    seen.chosen(1)
    seen.hit((8, 2))
    assert shared() == [False, True, False], "a hit is not forgotten"


def test_processes_are_looked_at_when_somebody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most programs have ended by then; without a question a thousand are looked at together."""
    looks = list[int]()

    def executed(pid: int) -> frozenset[FileId]:
        looks.append(pid)
        return frozenset({(8, pid)})

    monkeypatch.setattr(subject, "executed_files", executed)
    seen = Bystanders()
    for pid in (5, 6, 7, 6):
        seen.look_at(pid)
    seen.chosen(7)
    assert looks == []
    assert [seen.share((8, inode)) for inode in (5, 6, 7)] == [True, True, False]
    assert looks == [5, 6], "once each, and none that is watched"
    for pid in range(10, 10 + subject.MOST_UNREAD + 1):
        seen.look_at(pid)
    assert len(looks) == 2 + subject.MOST_UNREAD + 1


def test_looks_at_all_processes_take_a_bounded_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look that takes 20 ms is followed by another after 200 s, one that takes 1 ms after 30 s."""
    took_ns, clock_ns, looks = [20_000_000], [0], list[int]()

    def processes() -> list[Process]:
        clock_ns[0] += took_ns[0]
        return [Process(pid=1, parent=0, start_ticks=1, cpu_ns=0, name="init")]

    def executed(pid: int) -> frozenset[FileId]:
        looks.append(pid)
        return frozenset({(8, 1)})

    monkeypatch.setattr(proc, "processes", processes)
    monkeypatch.setattr(time, "thread_time_ns", lambda: clock_ns[0])
    monkeypatch.setattr(subject, "executed_files", executed)
    seen = Bystanders()
    for second in (0, 30, 199, 200, 401):
        took_ns[0] = 20_000_000 if second < 200 else 1_000_000
        seen.look_around(second * SECOND, ())
    assert len(looks) == 3
    seen.look_around(430 * SECOND, ())
    assert len(looks) == 3
    seen.look_around(431 * SECOND, ())
    assert len(looks) == 4


def test_thousands_of_programs_that_map_the_same_files_take_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each set of files is kept once, not once for each process."""
    monkeypatch.setattr(subject, "executed_files", lambda pid: frozenset((8, 1000 + inode) for inode in range(20)))
    seen = Bystanders()
    tracemalloc.start()
    try:
        for pid in range(1, 2001):
            seen.look_at(pid)
            seen.share((8, 1))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 2000 * 200
