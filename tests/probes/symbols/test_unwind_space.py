"""The rows of the modules that processes map share bounded room: those not used lately make place and come back."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from specmine.probes.elf.client import Reader
from specmine.probes.kernel.loader import Loaded
from specmine.probes.kernel.structs import RANGE_ROWS
from specmine.probes.symbols import unwind_loader, unwind_space
from specmine.probes.symbols.module import Module
from specmine.probes.symbols.modules import Modules
from specmine.probes.symbols.unwind_loader import CALIBRATION_ROWS
from tests.support.memory_arrays import arrays
from tests.support.patience import patient

ROWS, PAGES = 120_000, 60_000
AMPLE = 1 << 21, 1 << 20


@pytest.fixture
def reader() -> Iterator[Reader]:
    """Start a reader, end it."""
    with Reader(niceness=0) as one:
        yield one


@pytest.fixture(scope="module")
def program() -> Iterator[int]:
    """Run a program that maps more than there is room for; the test's own process maps whatever others imported."""
    command = [sys.executable, "-c", "import numpy; print('ready', flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        yield child.pid
        child.communicate(b"\n")


def settled(modules: Modules) -> list[Module]:
    """Wait until all has been read that will be; return the modules."""
    end = time.monotonic() + patient(120)
    while modules.busy or modules._unwinding._waiting_for_room:
        modules.collect()
        time.sleep(0.01)
        assert time.monotonic() < end
    return [m for m in modules.by_file.values() if m.facts is not None and m.facts.frames_digest]


def kernel_rows(loaded: Loaded, module: Module) -> list[int]:
    """Return a module's rows as the programs would find them, from its page index on."""
    index = np.fromfile(f"/proc/self/fd/{loaded.maps['page_index']}", np.uint64)
    rows = np.fromfile(f"/proc/self/fd/{loaded.maps['rows']}", np.uint64)
    pages = index[module.index : module.index + module.lengths[1]]
    return [int(row) & 0xFFFF_FFFF for row in rows[int(pages[0]) : int(pages[-1]) + 1]]


def test_rows_come_back_when_a_walk_asks_for_them(
    reader: Reader, program: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In too little room all modules are served in turn, never more than fits, and what is there is whole."""
    monkeypatch.setattr(unwind_loader, "IDLE_NS", -1)
    monkeypatch.setattr(unwind_space, "REST_NS", 1_000_000)
    with arrays(ROWS, PAGES) as loaded, closing(Modules(reader, loaded)) as modules:
        layout = modules.layout_of(program)
        everything = settled(modules)
        assert modules.evictions > 0
        assert 0 < modules.row_bytes <= 8 * (ROWS + PAGES)
        absent = [m for m in everything if m.evicted]
        assert absent
        for module in absent[:4]:
            mapping = next(m for m in modules.layouts[layout].mappings if m.file == module.file)
            modules.want(layout, mapping.start)
            settled(modules)
            assert module.flags == RANGE_ROWS
            found = kernel_rows(loaded, module)
            assert len(found) == module.lengths[0]
            assert found == sorted(set(found))
            assert modules.row_bytes <= 8 * (ROWS + PAGES - 2 * CALIBRATION_ROWS)


def test_rows_in_use_stay(reader: Reader, program: int) -> None:
    """Where everything was used just now nothing makes room, and what does not fit is counted."""
    with arrays(ROWS, PAGES) as loaded, closing(Modules(reader, loaded)) as modules:
        modules.layout_of(program)
        settled(modules)
        assert modules.evictions == 0
        assert modules.lost > 0


def test_a_second_start_takes_rows_from_the_disk(reader: Reader, program: int, tmp_path: Path) -> None:
    """The same rows are in the kernel after a restart, without being made again."""
    asked: list[str] = []
    whole = reader.request

    def request(op: str, fd: int, **arguments: object) -> int:
        asked.append(op)
        return whole(op, fd, **arguments)

    with (
        arrays(*AMPLE) as first,
        arrays(*AMPLE) as second,
        closing(Modules(reader, first, tmp_path)) as modules,
        closing(Modules(reader, second, tmp_path)) as again,
    ):
        modules.layout_of(program)
        settled(modules)
        reader.request = request  # type: ignore[method-assign]
        again.layout_of(program)
        settled(again)
        by_name = {m.file: m for m in again.by_file.values()}
        for module in modules.by_file.values():
            if module.lengths[0] and module.path != "[vdso]":
                assert kernel_rows(first, module) == kernel_rows(second, by_name[module.file])
        assert asked.count("rows") <= asked.count("facts") // 4


def test_what_never_fits_takes_no_room_from_others(
    reader: Reader, program: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The largest file has more rows than there is room for: it is left out, and the rows of all others stay."""
    with arrays(*AMPLE) as loaded, closing(Modules(reader, loaded)) as roomy:
        roomy.layout_of(program)
        *others, largest = sorted(module.lengths[0] for module in settled(roomy))
        assert sum(others) < largest, "the program is not what this test needs"
    monkeypatch.setattr(unwind_loader, "IDLE_NS", -1)
    with arrays(largest - 1, AMPLE[1]) as loaded, closing(Modules(reader, loaded)) as modules:
        modules.layout_of(program)
        settled(modules)
        assert (modules.lost, modules.evictions) == (1, 0)
        assert sorted(m.lengths[0] for m in modules.by_file.values() if m.lengths[0])[-1] == others[-1]
