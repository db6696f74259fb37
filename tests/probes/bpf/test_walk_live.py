"""Call paths are those of an unwinder that shares no code with ours: elfutils' libdw, on the same stacks.

The large version of this, on Debian's servers under load, is bench/truth/call_paths.py.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from specmine.probes.elf.facts import Grade
from specmine.probes.process.selection import Selection
from specmine.probes.settings import SourceSettings
from specmine.probes.source import BpfSource
from tests.support.patience import patient
from tests.support.stackdump import Dumper, Tally

pytestmark = pytest.mark.kernel

STACKS = 300
SCRIPT = """
import json, re, sqlite3, zlib
d = sqlite3.connect(":memory:")
while True:
    text = json.dumps({str(n): [n, str(n)] for n in range(50)})
    json.loads(text); re.findall("[0-9]+5", text); zlib.compress(text.encode())
    sorted(text.split(), key=lambda w: -len(w)); d.execute("select 1").fetchall()
"""


@pytest.fixture(autouse=True)
def libdw() -> None:
    """Skip where libdw's headers are missing; in continuous integration fail."""
    if not Path("/usr/include/elfutils/libdwfl.h").exists():
        (pytest.fail if os.environ.get("CI") else pytest.skip)("needs libdw-dev")


def compared(cache: Path, command: list[str | Path], *names: str) -> Tally:
    """Compare stacks at entries of the functions named, and at CPU samples."""
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    source = BpfSource([Selection(pid=child.pid)], SourceSettings(watch=names, cache=str(cache), sampling=False))
    tally = Tally()
    try:
        source.start()
        loaded = source.parts.loaded
        end = time.monotonic() + patient(90)
        found: dict[str, int] = {}
        while not (len(found) == len(names) and source.parts.modules.busy is False) and time.monotonic() < end:
            fresh = source.poll(time.monotonic_ns()).functions
            found |= {f.key: f.offset for f in fresh if f.name in names}
            time.sleep(0.02)
        dumper = Dumper(loaded)
        try:
            for key, offset in found.items():
                module = source.parts.symbolizer.module_of[key]
                (site,) = source.parts.reader.sites(module.fd, [offset], kernel_emulates_nops=False)
                assert site.grade is not Grade.REFUSED
                dumper.probe(module.fd, [site.offset], child.pid)
            dumper.sample(499)
            while tally.compared < STACKS and time.monotonic() < end:
                source.poll(time.monotonic_ns())
                dumper.compare(tally, lambda tgid, address: hex(address))
                time.sleep(0.02)
        finally:
            dumper.close()
    finally:
        source.close()
        child.kill()
        child.wait()
    return tally


def test_paths_of_an_interpreter_equal_libdw(cache: Path) -> None:
    """Debian's Python, deep in C without frame pointers: each return address is libdw's, and the ends agree."""
    tally = compared(cache, ["/usr/bin/python3", "-c", SCRIPT], "malloc", "PyObject_Malloc")
    assert tally.compared >= STACKS
    assert tally.different == []
    assert tally.equal == tally.compared
    assert tally.complete >= 0.99 * tally.compared
    assert tally.frames > 8 * tally.compared


def test_paths_without_frame_pointers_equal_libdw(program: Callable[..., Path], cache: Path) -> None:
    """A program compiled as distributions do, at entries and wherever the clock meets it."""
    tally = compared(cache, [program("paths", "stock"), "600"], "z")
    assert tally.compared >= STACKS
    assert tally.different == []
    assert tally.complete >= 0.99 * tally.compared
