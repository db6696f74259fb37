"""The loaded programs and their maps with nothing around them: a test writes the maps and makes the links itself."""

from __future__ import annotations

import ctypes
import os
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import numpy as np

from specmine.model.buckets import BUCKETS
from specmine.probes.kernel.loader import load
from specmine.probes.kernel.maps import CachedMap, bpf, map_array
from specmine.probes.kernel.structs import COUNTERS, EPOCHS, MAX_SLOTS, PROCESS, RETURN_SITE, SLOT

LINK_CREATE, UPROBE_MULTI, SESSION, TRACEPOINT_OPEN = 28, 48, 57, 17
LAYOUT = 1

SOURCE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* z begins with push, and behind both of its calls there is a nop: all of them are emulated. */
#define CALLER(name)                                                                                                   \
	__asm__(".globl " #name "\n.type " #name ", @function\n" #name ": push %rbp\nmov %rsp, %rbp\n"                 \
		"call z\n.globl " #name "_back\n" #name "_back: nop\npop %rbp\nret\n");                                \
	void name(void);
__asm__(".text\n.globl z\n.type z, @function\nz: push %rbp\nmov %rsp, %rbp\npop %rbp\nret\n");
CALLER(from_a)
CALLER(from_b)
void leap(const char *path, char **argv)
{
	execv(path, argv);
}
__asm__(".globl leaper\n.type leaper, @function\nleaper: push %rbp\nmov %rsp, %rbp\n"
	"call leap\n.globl leaper_back\nleaper_back: nop\npop %rbp\nret\n");
void leaper(const char *path, char **argv);

int main(int argc, char **argv)
{
	char word[4096];

	(void)argc;
	setvbuf(stdin, NULL, _IONBF, 0); /* what an exec does not read yet is for the next image */
	while (scanf("%4095s", word) == 1) {
		if (*word == 'x')
			leaper(word + 1, argv);
		for (char *c = word; *c; c++)
			*c == 'a' ? from_a() : from_b();
		puts("done");
		fflush(stdout);
	}
	return 0;
}
"""


class Target:
    """A program that calls z from two places, as it is told."""

    def __init__(self, path: Path) -> None:
        """Start it."""
        self.path = path
        self._child = subprocess.Popen([str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self._child.pid
        self.call("")
        told = subprocess.run(["nm", str(path)], check=True, capture_output=True, text=True).stdout
        self.offsets = {
            line.split()[2]: int(line.split()[0], 16) for line in told.splitlines() if len(line.split()) == 3
        }

    @property
    def base(self) -> int:
        """Where its file begins in memory; another place after an exec."""
        return int(Path(f"/proc/{self.pid}/maps").read_text().split("-")[0], 16)

    def call(self, places: str) -> None:
        """Call z from the places, a letter each, and wait until that is done."""
        self._say(places or "aa")

    def execute(self, path: Path) -> None:
        """Become another program, which goes on with what is said."""
        self._say(f"x{path}\naa")

    def _say(self, words: str) -> None:
        assert self._child.stdin is not None and self._child.stdout is not None
        self._child.stdin.write(words + "\n")
        self._child.stdin.flush()
        assert self._child.stdout.readline() == "done\n"

    def end(self) -> None:
        """Let it end."""
        self._child.communicate(timeout=60)

    def __enter__(self) -> Self:
        """Leave it running."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it in any case."""
        if self._child.returncode is None:
            self._child.kill()
            self._child.communicate()


class Bare:
    """Programs, maps, and what a test does with them."""

    def __init__(self, cache: Path) -> None:
        """Load everything; a bucket without a bottom for each slot."""
        self.loaded = load(
            interpreter="/usr/bin/python3", memory_bytes=16 << 20, buckets=BUCKETS, cache=cache, sampling=False
        )
        maps = self.loaded.maps
        self.slots = map_array(maps["slots"], MAX_SLOTS, SLOT, writable=True)
        self.slots["limit"] = 1 << 62
        self.counters = map_array(maps["counters"], MAX_SLOTS, COUNTERS)
        epochs = map_array(maps["epochs"], 1, EPOCHS, writable=True)
        self._processes = CachedMap(maps["processes"], "<u4", PROCESS, epochs)
        self._sites = CachedMap(maps["return_sites"], RETURN_SITE, "<u8", epochs)

    def watch(self, pid: int, *, followed: bool = False) -> None:
        """Tell the kernel that a process is watched."""
        self._processes.put(np.uint32(pid).tobytes(), np.array([(0, LAYOUT, followed, 0)], PROCESS).tobytes())

    def unwatch(self, pid: int) -> None:
        """Tell the kernel that it is not, any more."""
        self._processes.remove(np.uint32(pid).tobytes())

    def say(self, address: int, cookie: int, state: int) -> None:
        """Tell the kernel what is known of a return site."""
        key = np.array([(address, LAYOUT, cookie & 0xFFFF_00FF)], RETURN_SITE)
        self._sites.put(key.tobytes(), np.uint64(state).tobytes())

    def unsay(self, address: int, cookie: int) -> None:
        """Let the kernel forget a return site."""
        self._sites.remove(np.array([(address, LAYOUT, cookie & 0xFFFF_00FF)], RETURN_SITE).tobytes())

    def counted(self, cookie: int) -> dict[str, int]:
        """Return a slot's counters."""
        one = self.counters[cookie & 0xFF]
        return {name: int(one[name].sum()) for name in COUNTERS.names or ()}

    @contextmanager
    def linked(self, path: Path, places: dict[int, str], cookie: int, pid: int = 0) -> Iterator[None]:
        """Have programs at offsets of a file."""
        fds = []
        try:
            for offset, program in places.items():
                name, at, value = (
                    ctypes.create_string_buffer(str(path).encode()),
                    (ctypes.c_uint64 * 1)(offset),
                    (ctypes.c_uint64 * 1)(cookie),
                )
                kind = SESSION if program.endswith("_session") else UPROBE_MULTI
                pointers = (ctypes.addressof(name), ctypes.addressof(at), 0, ctypes.addressof(value))
                head = (self.loaded.programs[program], 0, kind, 0)
                fds.append(bpf(LINK_CREATE, struct.pack("<IIIIQQQQIII4x", *head, *pointers, 1, 0, pid)))
            yield
        finally:
            for fd in fds:
                os.close(fd)

    @contextmanager
    def following(self) -> Iterator[None]:
        """Have the program on that sees an exec."""
        name = ctypes.create_string_buffer(b"sched_process_exec")
        fd = bpf(TRACEPOINT_OPEN, struct.pack("<QI4xQ", ctypes.addressof(name), self.loaded.programs["on_exec"], 0))
        try:
            yield
        finally:
            os.close(fd)
