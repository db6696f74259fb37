"""The jumps by which frames are left are found in what GCC and glibc make, and nowhere else."""

from __future__ import annotations

import subprocess
from pathlib import Path

from specmine.probes.elf.facts import Grade
from specmine.probes.elf.parser.branches import find_branches
from specmine.probes.elf.parser.image import Image
from specmine.probes.elf.parser.symbols import function_table
from specmine.probes.elf.parser.unwind_rows import read_frames
from specmine.probes.elf.parser.unwinder_jumps import MOST, find_landings
from tests.support.binary_samples import assembled, image_of

LIBGCC, LIBC = Path("/lib/x86_64-linux-gnu/libgcc_s.so.1"), Path("/lib/x86_64-linux-gnu/libc.so.6")


def landings(image: Image) -> dict[str, int]:
    """Return how many jumps each function of a binary holds."""
    table = function_table(image, read_frames(image), find_branches(image), "module")
    found = find_landings(image, lambda: table)
    assert all(each.grade is Grade.STEPPED for each in found)
    names = [each.name if each else "" for each in table.lookup([each.offset for each in found])]
    return {name: names.count(name) for name in names}


def built(folder: Path, bodies: dict[str, str]) -> Image:
    """Assemble functions, each with call frame information."""
    text = [".intel_syntax noprefix", ".text"]
    for name, body in bodies.items():
        text += [f".globl {name}", f".type {name}, @function", f"{name}: .cfi_startproc", body, ".cfi_endproc"]
        text.append(f".size {name}, . - {name}")
    return image_of(assembled(folder, "made", "\n".join(text)))


def test_finds_every_way_out_of_the_unwinder() -> None:
    """The functions of GCC's unwinder that do not return to their caller hold one jump each."""
    unwinder = ("_Unwind_RaiseException", "_Unwind_ForcedUnwind", "_Unwind_Resume", "_Unwind_Resume_or_Rethrow")
    assert landings(image_of(LIBGCC)) == dict.fromkeys(unwinder, 1)


def test_finds_longjmp() -> None:
    """All of longjmp's forms end in __longjmp, or in its checked twin."""
    found = landings(image_of(LIBC))
    listing = subprocess.run(["objdump", "-d", "--no-show-raw-insn", LIBC], capture_output=True, text=True, check=True)
    lines = listing.stdout.splitlines()
    jumps = [i for i, line in enumerate(lines) if line.endswith("jmp    *%rdx") and "%r8,%rsp" in lines[i - 2]]
    assert sum(found.values()) == len(jumps) >= 2


def test_finds_only_jumps_that_set_the_stack_pointer_from_a_register(tmp_path: Path) -> None:
    """Epilogues, switches by table, calls and the middle of an instruction are none."""
    bodies = {
        "leaves": "mov rsp, rcx; pop rcx; jmp rcx",
        "jumps_back": "mov rbx, [rdi]; mov rsp, r8; mov rbp, r9; jmp rdx",
        "epilogue": "push rbp; mov rbp, rsp; mov rsp, rbp; pop rbp; jmp rax",
        "table": "mov rdx, rcx; jmp rdx",
        "frame": "mov rsp, rcx; pop rcx; ret",
        "hidden": "movabs rax, 0x90e1ff59cc8948; ret",
        "loads": "mov rsp, rcx; mov rcx, [rsp]; jmp rcx",
    }
    image = built(tmp_path, bodies)
    assert landings(image) == {"leaves": 1, "jumps_back": 1}


def test_a_file_full_of_them_has_none(tmp_path: Path) -> None:
    """Too many such jumps are generated code, not an unwinder."""
    bodies = {f"f{i}": "mov rsp, rcx; pop rcx; jmp rcx" for i in range(MOST + 1)}
    assert landings(built(tmp_path, bodies)) == {}
