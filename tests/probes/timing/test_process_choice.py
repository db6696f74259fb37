"""Which processes a function is probed in: of one lifetime, and of the program that is asked for."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from specmine.model.batch import Watch
from specmine.model.observation import Kind
from specmine.probes.process.tracker import Member
from specmine.probes.timing.function.attachment import Attachment
from specmine.probes.timing.process_choice import Chosen, ProcessChoice


class Library:
    """A module; only its identity counts."""

    file = (1, 2)


LIBRARY = Library()


class Timed:
    """A timed function without a window."""

    def __init__(self, program: str) -> None:
        self.watch = Watch(function="f", kind=Kind.TIME, program=program)
        self.module, self.by_site, self.window, self.lifetime = LIBRARY, False, None, ""
        self.attachment = Attachment()

    def choose(self, lifetime: str) -> None:
        """Note the lifetime."""
        self.lifetime = lifetime


def choice(*members: Member) -> ProcessChoice:
    """Return a choice among processes that all map the module, and that nothing bars."""
    fakes: list[Any] = [
        SimpleNamespace(layouts={1: SimpleNamespace(modules={LIBRARY: None})}),
        SimpleNamespace(members={each.pid: each for each in members}),
        SimpleNamespace(share=lambda file: 0),
        SimpleNamespace(bars=lambda pid, modules: None),
    ]
    return ProcessChoice(fakes[0], fakes[1], fakes[2], fakes[3], random.Random(7))


def member(pid: int, program: str) -> Member:
    """Return a process that is a lifetime of its own."""
    return Member(pid=pid, program=0, lifetime=f"b:{pid}:1", start_ticks=1, file=None, called=program, layout=1)


@pytest.mark.parametrize(("program", "pids"), [("redis", {1}), ("shop", {2, 3}), ("", {1, 2, 3}), ("gone", set())])
def test_only_the_wanted_program_is_probed(program: str, pids: set[int]) -> None:
    """Its lifetimes take turns; never all processes at once while others map the file."""
    chosen = choice(member(1, "redis"), member(2, "shop"), member(3, "shop"))
    found = [chosen.pids(cast(Any, Timed(program)), begun=False) for _ in range(60)]
    assert {pid for each in found for pid in each} == pids
    assert all(len(each) == min(1, len(pids)) for each in found)


def test_an_only_program_is_probed_for_all() -> None:
    """One breakpoint serves all its processes."""
    only = choice(member(1, "redis"))
    assert only.pids(cast(Any, Timed("redis")), begun=False) == only.pids(cast(Any, Timed("")), begun=False) == [0]


@pytest.mark.parametrize(("members", "missed"), [((1,), False), ((1, 2), True)])
def test_calls_of_processes_without_probes_are_missed(members: tuple[int, ...], missed: bool) -> None:
    """Counts are called exact only if all processes of the program are probed."""
    timed = Timed("shop")
    found = choice(*(member(pid, "shop") for pid in members), member(9, "redis")).pids(cast(Any, timed), begun=False)
    assert (len(found), timed.attachment.take_missed()) == (1, missed)
    assert timed.attachment.part == 1 / len(members)
    assert not timed.attachment.take_missed()


def test_beside_another_function_its_lifetime_and_its_processes_are_chosen() -> None:
    """What callees take is known only where both are probed; nowhere else are they then."""
    chosen = choice(member(1, "redis"), member(2, "shop"), member(3, "shop"))
    for number in (2, 3):
        timed, beside = Timed("shop"), Chosen(f"b:{number}:1", [number])
        assert chosen.pids(cast(Any, timed), begun=False, beside=beside) == [number]
        assert timed.lifetime == beside.lifetime
    assert chosen.pids(cast(Any, Timed("shop")), begun=False, beside=Chosen("b:2:1", [9])) == []
    assert chosen.pids(cast(Any, Timed("shop")), begun=False, beside=Chosen("b:1:1", [1])) == []
