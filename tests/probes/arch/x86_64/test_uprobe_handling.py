"""What the kernel makes of a probed instruction is known beforehand."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from specmine.probes.arch.interface import Handling
from specmine.probes.arch.x86_64.uprobe_handling import handling
from tests.support.binary_samples import compiled


def test_prefixes_decide() -> None:
    """A prefix can turn an emulated instruction into a refused one."""
    assert handling(b"\x74\x00", kernel_emulates_nops=True) is Handling.EMULATED
    assert handling(b"\x66\x74\x00", kernel_emulates_nops=True) is Handling.REFUSED
    assert handling(b"\xf2\xe9\0\0\0\0", kernel_emulates_nops=True) is Handling.EMULATED
    assert handling(b"\x3e\xff\xe0", kernel_emulates_nops=True) is Handling.REFUSED
    assert handling(b"\x48\x50", kernel_emulates_nops=True) is Handling.STEPPED
    assert handling(b"", kernel_emulates_nops=True) is Handling.REFUSED
    assert handling(b"\x66", kernel_emulates_nops=True) is Handling.REFUSED


PROBED = [
    ("90", Handling.EMULATED), ("66 90", Handling.EMULATED), ("f3 90", Handling.EMULATED),
    ("0f 1f 00", Handling.EMULATED), ("0f 1f 84 00 00 00 00 00", Handling.EMULATED),
    ("66 0f 1f 84 00 00 00 00 00", Handling.STEPPED), ("66 2e 0f 1f 84 00 00 00 00 00", Handling.REFUSED),
    ("f3 0f 1e fa", Handling.STEPPED), ("eb 00", Handling.EMULATED), ("e9 00 00 00 00", Handling.EMULATED),
    ("74 00", Handling.EMULATED), ("0f 84 00 00 00 00", Handling.EMULATED), ("66 74 00", Handling.REFUSED),
    ("f2 e9 00 00 00 00", Handling.EMULATED), ("89 f8", Handling.STEPPED), ("85 ff", Handling.STEPPED),
    ("f0 ff 44 24 f8", Handling.REFUSED), ("2e 8b 44 24 f8", Handling.REFUSED), ("f4", Handling.REFUSED),
    ("64 48 8b 04 25 00 00 00 00", Handling.STEPPED), ("0f 44 c7", Handling.STEPPED), ("cc", Handling.REFUSED),
]  # fmt: skip

PROBER = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
extern void (*tab[])(void *);
extern char __executable_start;
static uint64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}
int main(int argc, char **argv)
{
	static char buffer[64];
	int type = atoi(argv[1]);
	for (int i = 0; tab[i]; i++) {
		struct perf_event_attr a = {
			.type = type,
			.size = sizeof a,
			.config1 = (uint64_t)argv[0],
			.config2 = (uint64_t)tab[i] - (uint64_t)&__executable_start,
		};
		int fd = syscall(SYS_perf_event_open, &a, getpid(), -1, -1, 0);
		uint64_t best = ~0ull;
		if (fd < 0) { printf("%d\n", -errno); continue; }
		for (int round = 0; round < 10; round++) {
			uint64_t t = now();
			for (int k = 0; k < 20; k++) tab[i](buffer);
			t = (now() - t) / 20;
			if (t < best) best = t;
		}
		printf("%ld\n", (long)best);
		close(fd);
	}
}
"""


@pytest.mark.kernel
def test_this_kernel_handles_instructions_as_we_say(tmp_path: Path) -> None:
    """Probed for real, what we call emulated is the cheap kind, stepped the expensive one, and refused is refused."""
    kind = Path("/sys/bus/event_source/devices/uprobe/type")
    if not kind.exists() or shutil.which("gcc") is None:
        pytest.skip("no uprobe events or no gcc")
    text = [".text"]
    for number, (code, _) in enumerate(PROBED):
        numbers = ",".join(f"0x{each}" for each in code.split())
        text += [".p2align 4", f"f{number}:", f".byte {numbers}", "ret"]
    text += [".data", ".globl tab", "tab:", *(f".quad f{n}" for n in range(len(PROBED))), ".quad 0"]
    text += ['.section .note.GNU-stack,"",@progbits']
    (tmp_path / "forms.s").write_text("\n".join(text) + "\n")
    prober = compiled(tmp_path, "prober", PROBER, str(tmp_path / "forms.s"), "-O1", "-no-pie")
    command = [str(prober), kind.read_text().strip()]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.split()
    prices = [int(each) for each in shown]
    if all(price < 0 and price != -524 for price in prices):
        pytest.skip("not allowed to probe")
    stepped = [price for price, (_, how) in zip(prices, PROBED, strict=True) if how is Handling.STEPPED]
    for price, (code, how) in zip(prices, PROBED, strict=True):
        assert handling(bytes.fromhex(code), kernel_emulates_nops=True) is how, code
        if how is Handling.REFUSED:
            assert price == -524, code
        elif how is Handling.EMULATED:
            assert 0 < price < min(stepped), code
