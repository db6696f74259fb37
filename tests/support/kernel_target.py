"""A tiny C program for kernel tests: it calls z() in a loop until its stdin closes."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

SOURCE = r"""
#include <poll.h>
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) int z(int n) { asm volatile("" : "+r"(n)); return n + 1; }
__attribute__((noinline)) int y(int n) { int r = z(n); asm volatile("" : "+r"(r)); return r + 1; }
int main(void)
{
	long calls = 0;
	struct pollfd in = { .fd = 0, .events = POLLIN };
	printf("%p\n", (void *)z);
	fflush(stdout);
	while (poll(&in, 1, 1) == 0)
		for (int i = 0; i < 20; i++, calls++)
			y(i);
	printf("%ld\n", calls);
	return 0;
}
"""


@dataclass
class Target:
    """A running target."""

    process: subprocess.Popen[str]
    path: Path
    address: int
    """Of z in memory."""
    offset: int
    """Of z in the file."""

    def first_byte(self) -> int:
        """Return the first byte of z as it is in memory now: 0xcc while a probe is on."""
        with Path(f"/proc/{self.process.pid}/mem").open("rb", buffering=0) as memory:
            memory.seek(self.address)
            return memory.read(1)[0]

    def finish(self) -> int:
        """End it and return how often it called z."""
        out, _ = self.process.communicate("\n", timeout=60)
        assert self.process.returncode == 0
        return int(out.split()[-1])


def compile_target(folder: Path) -> Path:
    """Compile the program; z begins with push."""
    source, program = folder / "target.c", folder / "target"
    source.write_text(SOURCE)
    subprocess.run(["cc", "-O2", "-fno-omit-frame-pointer", "-o", program, source], check=True)
    return program


def start_target(program: Path) -> Target:
    """Start it and learn where z is."""
    process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    address = int(process.stdout.readline(), 16)
    for line in Path(f"/proc/{process.pid}/maps").read_text().splitlines():
        words = line.split()
        low, high = (int(x, 16) for x in words[0].split("-"))
        if low <= address < high:
            return Target(process, program, address, address - low + int(words[2], 16))
    raise AssertionError("z is in no mapping")
