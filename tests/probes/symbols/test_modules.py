"""Layouts are numbered from a bounded range: those that no process has any more make room for others."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from specmine.probes.elf.client import Reader
from specmine.probes.process.mappings import Mapping
from specmine.probes.symbols import modules as code
from specmine.probes.symbols.module import Module
from specmine.probes.symbols.modules import REST_NS, Modules
from tests.support.memory_arrays import arrays
from tests.support.product import wait_until


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[Modules]:
    """Modules over processes that each execute memory at an address of their own."""

    def mappings(pid: int) -> list[Mapping]:
        return [Mapping(start=pid << 12, end=(pid + 1) << 12, offset=0, file=(0, 0), path="")]

    monkeypatch.setattr(code, "executable_mappings", mappings)
    with Reader() as reader, arrays(20_000, 20_000) as loaded, closing(Modules(reader, loaded)) as made:
        yield made


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


def test_files_that_nobody_maps_are_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deployments bring new files for ever: few stay open beside those in use; one that returns is read anew."""
    monkeypatch.setattr(code, "MOST_FILES", 4)
    monkeypatch.setattr(code, "executable_mappings", lambda pid: [mapping_of(tmp_path / str(pid), pid)])
    monkeypatch.setattr(code, "open_mapped", lambda pid, _: os.open(tmp_path / str(pid), os.O_RDONLY))
    with Reader() as reader, arrays(20_000, 20_000) as loaded, closing(Modules(reader, loaded)) as modules:

        def settled(pid: int) -> Module:
            module = modules.layouts[modules.layout_of(pid)].modules[0]
            assert module is not None
            wait_until(lambda: modules.collect() or module.settled, "the file")  # type: ignore[func-returns-value]
            return module

        for pid in range(1, 7):
            shutil.copy("/bin/true", tmp_path / str(pid))
        made = [settled(pid) for pid in range(1, 7)]
        modules.use({modules.layout_of(2)}, 1)
        modules.use({modules.layout_of(2)}, 1 + REST_NS)
        assert modules.forget({made[2]}) == {made[0], *made[3:]}
        assert [module.fd >= 0 for module in made] == [False, True, True, False, False, False]
        modules.use({modules.layout_of(2)}, 2 + REST_NS)
        again = settled(1)
        assert again is not made[0] and again.fd >= 0 and again.facts is not None and not again.gone
        assert modules.forget(()) == set()  # there are few now


def mapping_of(path: Path, pid: int) -> Mapping:
    """Return how a process maps its program."""
    status = path.stat()
    return Mapping(
        start=pid << 30, end=(pid << 30) + 4096, offset=0, file=(status.st_dev, status.st_ino), path=str(path)
    )
