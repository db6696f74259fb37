"""A process that maps more code than when it was read is told."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
from pathlib import Path

from specmine.probes.process.code_sizes import MOST_AT_ONCE, CodeSizes
from tests.support.patience import patient

_MAPS_CODE = """
import mmap, sys
print("ready", flush=True)
sys.stdin.readline()
kept = mmap.mmap(-1, 1 << 20, prot=mmap.PROT_READ | mmap.PROT_EXEC)
print("mapped", flush=True)
sys.stdin.readline()
"""


def status(root: Path, pid: int, exe: int, lib: int) -> None:
    """Write the lines that count of a process's status."""
    (root / str(pid)).mkdir(exist_ok=True)
    (root / str(pid) / "status").write_text(f"Name:\tVmExe\nVmExe:\t{exe:8} kB\nVmLib:\t{lib:8} kB\nVmPTE:\t4 kB\n")


def test_a_mapping_that_comes_is_seen() -> None:
    """The kernel counts what a live process executes; a mapping without that right does not change it."""
    child = subprocess.Popen(
        [sys.executable, "-c", _MAPS_CODE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    sizes = CodeSizes(8)
    assert child.stdin is not None and child.stdout is not None
    try:
        sizes.read(os.getpid())
        with mmap.mmap(-1, 1 << 20):
            assert sizes.all_as_read([os.getpid()])
        assert child.stdout.readline() == "ready\n"
        sizes.read(child.pid)
        assert sizes.changed([child.pid]) == []
        child.stdin.write("\n")
        child.stdin.flush()
        assert child.stdout.readline() == "mapped\n"
        assert sizes.changed([child.pid, os.getpid()]) == [child.pid]
    finally:
        child.communicate("\n", timeout=patient(60))


def test_what_changed_is_told_until_it_is_read_again(tmp_path: Path) -> None:
    """A forked child is what its parent was; the dead, and those never read, are no news."""
    sizes = CodeSizes(8, tmp_path)
    status(tmp_path, 1, 100, 2000)
    sizes.read(1)
    status(tmp_path, 2, 100, 2000)
    sizes.inherit(1, 2)
    assert sizes.changed([1, 2, 3]) == []
    status(tmp_path, 2, 100, 2004)
    assert sizes.changed([1, 2, 3]) == [2]
    assert not sizes.all_as_read([1, 2, 3])
    assert sizes.changed([]) == [2]
    sizes.read(2)
    assert sizes.all_as_read([1, 2, 3])
    assert sizes.changed([1, 2, 3]) == []
    sizes.forget(2)
    assert sizes.changed([2]) == []


def test_many_processes_take_turns(tmp_path: Path) -> None:
    """All are looked at in the end, some at once."""
    sizes = CodeSizes(2, tmp_path)
    for pid in range(1, 6):
        status(tmp_path, pid, 1, 1)
        sizes.read(pid)
        status(tmp_path, pid, 1, 2)
    looks = [sizes.changed(range(1, 6)) for _ in range(3)]
    assert all(len(each) <= 2 for each in looks)
    assert {pid for each in looks for pid in each} == {1, 2, 3, 4, 5}
    assert sizes.all_as_read(range(1000, 1000 + 2 * MOST_AT_ONCE))
