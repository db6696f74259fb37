"""How often the mappings of a process are read: once for a short life, again where libraries came after that."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from specmine.probes.process.bystanders import Bystanders
from specmine.probes.process.code_sizes import CodeSizes
from specmine.probes.timing.address_spaces import FORKED_NS, REMAP_NS, SOON_NS, AddressSpaces

OLD, NEW = range(100, 106), 200
STATUS = "Name:\tx\nVmExe:\t{} kB\nVmLib:\t{} kB\n"


class World:
    """Processes that exist as files only, and what was read of them."""

    def __init__(self, folder: Path) -> None:
        """Begin with some processes that have been there for a while."""
        self.folder = folder
        self.reads: Counter[int] = Counter()
        self.checks = 0
        self.layouts: dict[int, int] = {}
        self.news: tuple[list[tuple[int, int]], list[int], list[int], list[int]] = ([], [], [], [])
        self.members = {pid: SimpleNamespace(layout=0) for pid in OLD}
        for pid in OLD:
            self.grown(pid, 10)
        modules = SimpleNamespace(
            layout_of=self.layout_of,
            use=self.nothing,
            forget=lambda kept: set(),
            retired=set(),
            layouts={number: SimpleNamespace(mappings=(), modules=()) for number in (1, 2)},
        )
        placement = SimpleNamespace(check_bystanders=self.nothing, replaced_pids=set)
        registry = SimpleNamespace(
            forked=self.nothing, gone=self.nothing, recheck_safety=self.check, placement=placement
        )
        symbolizer = SimpleNamespace(unread=set)
        parts: list[Any] = [modules, symbolizer, self, Bystanders(), registry, CodeSizes(8, folder)]
        self.spaces = AddressSpaces(*parts)

    def layout_of(self, pid: int) -> int:
        """Count a read."""
        self.reads[pid] += 1
        return self.layouts.get(pid, 0)

    def place(self, pid: int, layout: int) -> None:
        """Note what a process maps."""
        self.members[pid].layout = layout

    def fork(self, parent: int, child: int) -> None:
        """Let a process fork; what its child maps is taken to be what it maps."""
        self.members[child] = SimpleNamespace(layout=self.members[parent].layout)
        self.grown(child, 10)
        self.news[0].append((parent, child))

    def nothing(self, *_: object) -> None:
        """Do nothing."""

    def check(self, now_ns: int) -> None:
        """Count a look at what is safe."""
        self.checks += 1

    def take_news(self) -> tuple[list[tuple[int, int]], list[int], list[int], list[int]]:
        """Return and forget the news."""
        news, self.news = self.news, ([], [], [], [])
        return news

    def grown(self, pid: int, library_kb: int) -> None:
        """Let a process execute so much."""
        (self.folder / str(pid)).mkdir(exist_ok=True)
        (self.folder / str(pid) / "status").write_text(STATUS.format(8, library_kb))

    def live(self, now_ns: int, pid: int, library_kb: int = 10) -> None:
        """Let a process begin, and have it looked at."""
        self.members[pid] = SimpleNamespace(layout=0)
        self.grown(pid, library_kb)
        self.news[1].append(pid)
        self.spaces.look_around(now_ns)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A second after the start, when all were read."""
    found = World(tmp_path)
    found.spaces.look_around(1)
    assert found.reads == Counter(OLD)
    found.reads.clear()
    found.checks = 0
    return found


def test_a_short_life_is_read_once(world: World) -> None:
    """Whether it is safe is looked at again once it has settled; what it maps is not, nor what the others map."""
    world.live(SOON_NS, NEW)
    world.spaces.look_around(2 * SOON_NS)
    assert world.reads == {NEW: 1}
    assert world.checks == 1
    del world.members[NEW]
    world.news[2].append(NEW)
    for tick in range(3, 40):
        world.spaces.look_around(tick * SOON_NS)
    assert world.reads == {NEW: 1}


def test_libraries_that_come_after_the_first_look_are_read(world: World) -> None:
    """A process that was looked at before its loader had mapped anything is read again a moment later."""
    world.live(SOON_NS, NEW, library_kb=2)
    world.grown(NEW, 1800)
    world.spaces.look_around(2 * SOON_NS)
    assert world.reads == {NEW: 2}


def test_all_are_read_again_from_time_to_time(world: World) -> None:
    """A library may take the place of one of its size."""
    world.spaces.look_around(REMAP_NS + 1)
    assert world.reads == Counter(OLD)


def test_children_of_a_parent_that_has_moved_its_libraries_are_read(world: World) -> None:
    """Its code is as large as before, so nothing else tells; children from before that have what they had."""
    parent, before, after = OLD[0], NEW, range(NEW + 1, NEW + 9)
    world.layouts = dict.fromkeys(OLD, 1)
    world.spaces.look_around(REMAP_NS + 1)
    world.reads.clear()
    world.fork(parent, before)
    world.spaces.look_around(REMAP_NS + 2)
    assert not world.reads
    world.spaces.look_around(REMAP_NS + 2 + FORKED_NS)
    assert world.reads == {parent: 1}
    world.layouts |= {parent: 2} | dict.fromkeys(after, 2)
    for child in after:
        world.fork(parent, child)
    world.spaces.look_around(REMAP_NS + 3 + 2 * FORKED_NS)
    assert world.reads == {parent: 2} | dict.fromkeys(after, 1)
    assert {world.members[pid].layout for pid in (parent, *after)} == {2}
    assert world.members[before].layout == 1


def test_a_parent_that_forks_all_the_time_is_read_from_time_to_time(world: World) -> None:
    """That is what a shell does; what it maps is read once in some seconds, and its children are not."""
    for tick in range(1, 45):
        world.fork(OLD[0], NEW + tick)
        world.spaces.look_around(1 + tick * FORKED_NS // 10)
    assert world.reads == {OLD[0]: 4}
    world.news[2].append(OLD[0])
    world.spaces.look_around(1 + 48 * FORKED_NS // 10)
    assert world.reads == {OLD[0]: 4}
