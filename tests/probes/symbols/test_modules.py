"""Layouts are numbered from a bounded range: those that no process has any more make room for others."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from specmine.probes.elf.client import Reader
from specmine.probes.process.mappings import Mapping
from specmine.probes.symbols import modules as code
from specmine.probes.symbols.module import Module
from specmine.probes.symbols.modules import REST_NS, UNUSED_NS, Modules
from tests.support.memory_arrays import arrays
from tests.support.product import wait_until

SECOND = 10**9


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


class Files:
    """Processes that each execute a file of their own, whose name is their pid."""

    def __init__(self, folder: Path, modules: Modules) -> None:
        """Execute nothing yet; ``now_ns`` is near the clock that answers are timed by."""
        self.folder, self.modules = folder, modules
        self.now_ns = time.monotonic_ns()
        self.mappings: dict[int, list[Mapping]] = {}

    def run(self, pid: int) -> Module:
        """Let a process run until its file is read."""
        shutil.copy("/bin/true", self.folder / str(pid))
        self.mappings[pid] = [mapping_of(self.folder / str(pid), pid)]
        module = self.modules.layouts[self.modules.layout_of(pid)].modules[0]
        assert module is not None
        wait_until(lambda: self.modules.collect() or module.settled, "the file", step_s=0.001)  # type: ignore[func-returns-value]
        return module

    def pass_time(self, ns: int, *alive: int) -> None:
        """Let time pass in which only these processes live."""
        self.modules.use({self.modules.layout_of(pid) for pid in alive}, self.now_ns)
        self.now_ns += ns
        self.modules.use({self.modules.layout_of(pid) for pid in alive}, self.now_ns)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Files]:
    """Files that processes come and go with."""
    monkeypatch.setattr(code, "open_mapped", lambda pid, _: os.open(tmp_path / str(pid), os.O_RDONLY))
    with Reader() as reader, arrays(20_000, 20_000) as loaded, closing(Modules(reader, loaded)) as modules:
        made = Files(tmp_path, modules)
        monkeypatch.setattr(code, "executable_mappings", made.mappings.__getitem__)
        yield made


def test_deleted_files_that_nobody_maps_are_closed(files: Files) -> None:
    """A deployment deletes the file of the build before: it is closed once paths through it were named."""
    stays, deleted, read, rests = (files.run(pid) for pid in range(1, 5))
    (files.folder / "1").unlink()
    (files.folder / "2").unlink()
    (files.folder / "3").unlink()
    files.pass_time(REST_NS - 1, 1)
    assert files.modules.forget({read}) == set()
    files.pass_time(1, 1)
    assert files.modules.forget({read}) == {deleted}
    assert [each.fd >= 0 for each in (stays, deleted, read, rests)] == [True, False, True, True]
    assert files.modules.forget() == {read}
    assert not files.modules.find(2, 2 << 30)  # its layout went with it
    assert files.modules.evictions == 0  # nothing was lost


def test_files_that_nobody_has_mapped_for_long_are_closed(files: Files) -> None:
    """A program that may be started again stays open for a while; each start of it is one more."""
    seldom, never = files.run(1), files.run(2)
    files.pass_time(UNUSED_NS - 1)
    assert files.modules.forget() == set()
    files.pass_time(1, 1)
    assert files.modules.forget() == {never}
    files.pass_time(UNUSED_NS)
    assert files.modules.forget() == {seldom}


def test_of_many_files_none_stays_that_nobody_maps(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """Containers bring all of their libraries; one that returns is read anew."""
    monkeypatch.setattr(code, "MOST_FILES", 4)
    made = [files.run(pid) for pid in range(1, 7)]
    files.pass_time(REST_NS, 2)
    assert files.modules.forget({made[2]}) == {made[0], *made[2:]}
    assert [module.fd >= 0 for module in made] == [False, True, False, False, False, False]
    again = files.run(1)
    assert again is not made[0] and again.fd >= 0 and again.facts is not None and not again.gone


def test_builds_are_told_as_they_come_and_go(files: Files) -> None:
    """Of two files of one build the second one tells nothing new, nor does the end of the first."""
    build = files.run(1).facts
    assert build is not None and files.modules.take_builds() == ((build.build_id,), ())
    files.run(2)
    (files.folder / "1").unlink()
    files.pass_time(REST_NS, 2)
    assert files.modules.forget() and files.modules.take_builds() == ((build.build_id,), ())
    (files.folder / "2").unlink()
    files.pass_time(REST_NS)
    assert files.modules.forget() and files.modules.take_builds() == ((), (build.build_id,))
    assert files.modules.take_builds() == ((), ())


def test_two_hundred_builds_leave_no_descriptor(files: Files) -> None:
    """A new file each minute, deleted by the next one: as many are open after the last as after the tenth."""
    open_now = []
    for pid in range(1, 201):
        files.run(pid)
        files.pass_time(60 * SECOND, pid)
        files.modules.forget()
        (files.folder / str(pid)).unlink()
        open_now.append(len(os.listdir("/proc/self/fd")))
        assert len(files.modules.by_file) <= 3 and len(files.modules.layouts) <= 3
    assert max(open_now) <= open_now[10]


def mapping_of(path: Path, pid: int) -> Mapping:
    """Return how a process maps its program."""
    status = path.stat()
    return Mapping(
        start=pid << 30, end=(pid << 30) + 4096, offset=0, file=(status.st_dev, status.st_ino), path=str(path)
    )
