"""Probes go where the kernel emulates, never where they would miss a call, hit twice or harm the program."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import capstone
import pytest

from specmine.probes.elf.facts import FunctionKind, Grade, Site
from specmine.probes.elf.parser.branches import find_branches
from specmine.probes.elf.parser.instructions import Handling, handling
from specmine.probes.elf.parser.probe_sites import find_sites
from specmine.probes.elf.parser.symbols import function_table
from specmine.probes.elf.parser.unwind_rows import ENTRY_ROW, read_frames
from tests.support.binary_samples import C_SOURCE, LIBRARIES, assembled, compiled, image_of

# name, body, expected distance of the site (None: refused), expected code when not emulated
BODIES: list[tuple[str, str, int | None, str]] = [
    ("pushes", "push rbp; pop rbp; ret", 0, ""),
    ("pushes_r12", "push r12; pop r12; ret", 0, ""),
    ("marked", "endbr64; push rbx; pop rbx; ret", 4, ""),
    ("tests", "mov eax, edi; test edi, edi; js 1f; inc eax; 1: ret", 4, ""),
    ("short_nop", "nop; ret", 0, ""),
    ("long_nop", "xor eax, eax; .byte 0x0f,0x1f,0x00; ret", 2, ""),
    ("five_nop", ".byte 0x0f,0x1f,0x44,0,0; push rbx; pop rbx; ret", 5, ""),
    ("only_five_nop", ".byte 0x0f,0x1f,0x44,0,0; mov eax, edi; ret", None, "nop5"),
    ("ten_nop", ".byte 0x66,0x2e,0x0f,0x1f,0x84,0,0,0,0,0; push rbx; pop rbx; ret", 10, ""),
    ("only_ten_nop", ".byte 0x66,0x2e,0x0f,0x1f,0x84,0,0,0,0,0; mov eax, edi; ret", None, "instruction"),
    ("locks", "lock inc dword ptr [rdi]; ret", None, "instruction"),
    ("traps", "int3; ret", None, "instruction"),
    ("vector", "vpbroadcastb ymm0, xmm0; ret", None, "unsafe-instruction"),
    ("vector_then_push", "vpxor xmm0, xmm0, xmm0; push rbx; pop rbx; ret", 4, ""),
    ("flags", "pushfq; popfq; ret", None, "unsafe-instruction"),
    ("exchanges", "xchg rax, r8; ret", None, "unsafe-instruction"),
    ("leaf", "lea eax, [rdi + 1]; ret", 0, "no-site"),
    ("frame", "sub rsp, 24; test edi, edi; je 1f; inc eax; 1: add rsp, 24; ret", 0, "no-site"),
    ("frame_by_lea", "lea rsp, [rsp - 8]; push rbx; pop rbx; lea rsp, [rsp + 8]; ret", 0, "no-site"),
    ("calls_system", "mov eax, 39; syscall; cmp rax, -4095; jae 1f; ret; 1: xor eax, eax; ret", 0, "no-site"),
    ("copies", "mov ecx, edx; rep movsb; push rbx; pop rbx; ret", 0, "no-site"),
    ("loops", "xor eax, eax; 1: inc eax; cmp eax, edi; jb 1b; ret", 0, "jump-target"),
    ("loops_to_site", "mov eax, edi; 1: push rbx; pop rbx; dec eax; jne 1b; ret", 0, "jump-target"),
    ("loops_near", "mov eax, edi; inc eax; dec eax; 1: push rbx; pop rbx; dec eax; jne 1b; ret", 0, "jump-target"),
    ("loops_later", "mov eax, edi; push rbx; 1: dec eax; jne 1b; pop rbx; ret", 2, ""),
    ("loops_far", "mov eax, edi; 1: push rbx; pop rbx; .fill 300, 1, 0x90; dec eax; jne 1b; ret", 0, "jump-target"),
    ("grows", "cmp rsp, [r14+16]; jbe 1f; push rbp; pop rbp; ret; 1: call leaf; jmp grows", 6, ""),
    ("grows_far", "cmp rsp, [r14+16]; jbe 1f; sub rsp, 8; add rsp, 8; ret; 1: call leaf; jmp grows_far", 6, "no-site"),
    ("grows_not", "cmp rsp, [r14+16]; jbe 1f; push rbp; pop rbp; ret; 1: inc eax; jmp grows_not", None, "loop-head"),
    ("switches", "mov eax, edi; test eax, eax; je 1f; lea rdx, [rip]; jmp rax; 1: ret", 0, "jump-table"),
    ("calls", "mov edi, 1; call leaf; ret", 5, ""),
    ("enters", "mov eax, edi; enter 4096, 31; leave; ret", 0, "no-site"),
    ("tail_calls", "mov edi, 1; jmp leaf", 5, ""),
    ("entered_behind", "mov edi, 1; push rbx; pop rbx; ret", 0, "jump-target"),
    ("enters_behind", "push rbx; call entered_behind + 5; pop rbx; ret", 0, ""),
    ("spins", "push rbx; 1: pause; jmp 1b", None, "noreturn"),
    ("dies", "mov eax, 60; xor edi, edi; syscall; ud2", None, "noreturn"),
    ("rounds", "push rbx; pop rbx; dec edi; jne rounds; ret", None, "loop-head"),
    ("rounds_far", "push rbx; pop rbx; .fill 300, 1, 0x90; jmp rounds_far; ret", None, "loop-head"),
    ("rounds_moved", "mov eax, edi; push rbx; pop rbx; dec edi; jne rounds_moved; ret", None, "loop-head"),
    ("recurses", "push rbx; call recurses; pop rbx; ret", 0, ""),
    ("nonsense", ".byte 0x06,0x06; ret", None, "undecodable"),
]  # fmt: skip


def sites_of(path: Path, *, emulates: bool = True) -> dict[str, Site]:
    """Return the site of every function of a file by its name."""
    image = image_of(path)
    frames, branches = read_frames(image), find_branches(image)
    table = function_table(image, frames, branches, path.name)
    known = [table.facts(number) for number in range(len(table.starts))]
    sites = find_sites(
        image, table, frames.rows, branches, [each.offset for each in known], kernel_emulates_nops=emulates
    )
    return {facts.name: site for facts, site in zip(known, sites, strict=True)}


@pytest.fixture(scope="module")
def bodies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library with one function for each case, without unwind rows, so that the code alone decides."""
    text = [".intel_syntax noprefix", ".text"]
    for name, body, _, _ in BODIES:
        text += [".p2align 4", f".globl {name}", f".type {name},@function", f"{name}:"]
        text += [each.strip() for each in body.split(";")]
        text += [f".size {name}, . - {name}"]
    source = "\n".join(text).replace("1: ", "1:\n")
    return assembled(tmp_path_factory.mktemp("sites"), "bodies.so", source, "-Wl,-Bsymbolic")


@pytest.mark.parametrize(("name", "distance", "code"), [(n, d, c) for n, _, d, c in BODIES], ids=[b[0] for b in BODIES])
def test_the_site_of(bodies: Path, name: str, distance: int | None, code: str) -> None:
    """Each kind of entry has the site, or the reason, that it should have."""
    site = sites_of(bodies)[name]
    assert site.code == code
    if distance is None:
        assert site.grade is Grade.REFUSED
        assert site.text
    else:
        assert site.offset - site.function == distance
        assert site.grade is (Grade.STEPPED if code else Grade.EMULATED)


def test_older_kernels_emulate_only_short_nops(bodies: Path) -> None:
    """Before 6.16 a long nop is stepped over, and one of five bytes is left alone."""
    sites = sites_of(bodies, emulates=False)
    assert sites["short_nop"].grade is Grade.EMULATED
    assert (sites["long_nop"].grade, sites["long_nop"].code) == (Grade.STEPPED, "no-site")
    assert sites["only_five_nop"].grade is Grade.STEPPED
    assert sites["five_nop"].offset - sites["five_nop"].function == 5


def test_what_is_no_function_is_refused(tmp_path: Path) -> None:
    """Ifuncs, cold parts, PLT stubs and places inside functions are refused by name."""
    path = compiled(tmp_path, "prog", C_SOURCE, "-O2")
    image = image_of(path)
    frames, branches = read_frames(image), find_branches(image)
    table = function_table(image, frames, branches, "prog")
    (inside,) = table.match(["visible"])
    of_kind = {table.facts(i).kind: int(table.starts[i]) for i in range(len(table.starts))}
    wanted = {
        of_kind[FunctionKind.IFUNC]: "ifunc",
        of_kind[FunctionKind.FRAGMENT]: "fragment",
        of_kind[FunctionKind.PLT]: "plt",
        inside.offset + 1: "not-a-function",
        1 << 40: "not-a-function",
    }
    found = find_sites(image, table, frames.rows, branches, list(wanted), kernel_emulates_nops=True)
    assert [each.code for each in found] == list(wanted.values())
    assert {each.grade for each in found} == {Grade.REFUSED}


def test_sites_in_libc_hold_what_they_promise() -> None:
    """Every moved site of libc sees the entry's stack by the unwind rows and lies on an emulated instruction."""
    path = LIBRARIES / "libc.so.6"
    image = image_of(path)
    frames, branches = read_frames(image), find_branches(image)
    table = function_table(image, frames, branches, "libc.so.6")
    starts = [int(each) for each in table.starts]
    sites = find_sites(image, table, frames.rows, branches, starts, kernel_emulates_nops=True)
    decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    emulated = [each for each in sites if each.grade is Grade.EMULATED]
    for site in emulated:
        row = frames.rows.at(site.offset)
        assert site.offset == site.function or row in (ENTRY_ROW, 0)
        _, size, mnemonic, _ = next(decoder.disasm_lite(image.read(site.offset, 16), site.offset))
        assert mnemonic.startswith(("j", "push", "call", "nop", "bnd")), (mnemonic, hex(site.offset))
        assert mnemonic != "nop" or size != 5
    functions = [each for each in sites if each.code not in ("ifunc", "fragment", "plt")]
    assert len(emulated) > 0.7 * len(functions)


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
    """Probed for real, what we call emulated is the cheap kind, stepped the dear one, and refused is refused."""
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
