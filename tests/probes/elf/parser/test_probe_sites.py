"""Probes go where the kernel emulates, never where they would miss a call, hit twice or harm the program."""

from __future__ import annotations

from pathlib import Path

import capstone
import pytest

from specmine.probes.elf.facts import FunctionKind, Grade, Site
from specmine.probes.elf.parser.branches import find_branches
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
