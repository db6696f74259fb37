"""Breakpoints are counted where the memory shows them, and nowhere else."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from specmine.probes.safety import breakpoints
from specmine.probes.safety.breakpoints import Remaining, breakpoints_everywhere, breakpoints_in
from tests.support.binary_samples import compiled

PATCHES = r"""
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
__attribute__((noinline, aligned(64))) int work(int n) { for (int i = 0; i < 9; i++) n += n / 3; return n; }
int main(void)
{
	uintptr_t page = (uintptr_t)work & ~4095ul;
	unsigned char *p = (unsigned char *)work;
	mprotect((void *)page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC);
	p[0] = 0xcc, p[1] = 0xcc, p[2] ^= 0x55;
	mprotect((void *)page, 8192, PROT_READ | PROT_EXEC);
	puts("ready");
	fflush(stdout);
	getchar();
	return 0;
}
"""


def test_written_breakpoints_are_counted(tmp_path: Path) -> None:
    """Two of three bytes that a program changed in its code are breakpoints; a process without any has none."""
    path = compiled(tmp_path, "patches", PATCHES, "-O1")
    with subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        assert breakpoints_in(child.pid) == 2
        assert breakpoints_everywhere()[0][child.pid] == 2
        child.communicate("\n")
    assert breakpoints_in(child.pid) == 0
    assert breakpoints_in(os.getpid()) == 0


def test_all_processes_must_have_been_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """The number is not known before; processes are looked at until none has a breakpoint."""
    left = {1: 0, 2: 3, 3: 0, 4: 0}
    monkeypatch.setattr(breakpoints, "breakpoints_in", left.__getitem__)
    remaining = Remaining(most=2)
    remaining.begin()
    assert [remaining.look(left) for _ in range(3)] == [3, -1, 3]
    left[2] = 0
    assert [remaining.look(left) for _ in range(2)] == [0, 0]
    left[4] = 1
    remaining.begin()
    assert [remaining.look(left) for _ in range(3)] == [-1, 1, 1]
    left[4] = 0
    assert remaining.look(left) == 0
