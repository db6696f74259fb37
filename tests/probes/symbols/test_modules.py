"""Layouts are numbered from a bounded range: those that no process has any more make room for others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from specmine.probes.elf.client import Reader
from specmine.probes.process.mappings import Mapping
from specmine.probes.symbols import modules as code
from specmine.probes.symbols.modules import REST_NS, Modules
from tests.probes.symbols.test_unwind_space import arrays


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[Modules]:
    """Modules over processes that each execute memory at an address of their own."""

    def mappings(pid: int) -> list[Mapping]:
        return [Mapping(start=pid << 12, end=(pid + 1) << 12, offset=0, file=(0, 0), path="")]

    monkeypatch.setattr(code, "executable_mappings", mappings)
    with Reader() as reader:
        yield Modules(reader, arrays(20_000, 20_000))


def test_programs_that_come_and_go_are_placed_for_ever(modules: Modules) -> None:
    """A hundred processes, one after the other, beside one that stays: each has a layout, that one its own."""
    stays = modules.layout_of(1)
    now_ns = 0
    for pid in range(2, 102):
        number = modules.layout_of(pid)
        assert number not in (0, stays)
        assert modules.find(number, pid << 12) is None and modules.layouts[number].mappings[0].start == pid << 12
        modules.use({stays, number}, now_ns)
        now_ns += REST_NS
    assert modules.layout_of(1) == stays
    assert modules.lost == 0
    assert modules.retired and stays not in modules.retired


def test_layouts_rest_before_their_numbers_are_used_again(modules: Modules) -> None:
    """Paths through them may still have to be named; too many at once are lost, and counted."""
    numbers = [modules.layout_of(pid) for pid in range(1, 9)]
    assert sorted(filter(None, numbers)) == list(range(1, len(set(numbers)))) and numbers[-1] == 0
    full = len(set(numbers)) - 1
    modules.use(set(), 5)
    modules.use(set(), 5 + REST_NS - 1)
    assert modules.layout_of(50) == 0
    assert not modules.retired
    modules.use({1}, 5 + REST_NS)
    assert modules.layout_of(50) not in (0, 1)
    assert len(modules.retired) == full // 2 and 1 not in modules.retired
    assert modules.lost == len(numbers) - full + 1


def test_a_layout_that_comes_back_is_kept(modules: Modules) -> None:
    """A process that maps the same again takes its layout out of rest."""
    first = modules.layout_of(1)
    for pid in range(2, 9):
        modules.layout_of(pid)
    modules.use(set(), 1)
    modules.use(set(), 1 + REST_NS)
    assert modules.layout_of(1) == first
    assert modules.layout_of(77) != first
    assert modules.layouts[first].mappings[0].start == 1 << 12
