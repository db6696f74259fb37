"""Where a function's probe goes: the first instruction that the kernel emulates and that still stands for the entry.

A uprobe on an instruction that is not emulated costs some 14 times more, and about half of all functions begin
with one. So the probe moves on within the entry block, as long as the stack pointer is untouched (the return
address still stands at rsp), nothing else can jump in between, and nothing that takes time lies before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import capstone

from .branches import Branches
from .facts import FunctionKind, Grade, RowTable, Site
from .image import Image
from .instructions import Handling, handling, is_plain_nop5
from .symbols import FunctionTable
from .unwind import ENTRY_ROW

FARTHEST = 64
"""Bytes behind the entry that a probe may move: a few ns of straight-line code."""
_REACH = 130
"""A jump with an 8-bit displacement reaches back so far."""
_LONGEST = 1 << 16
"""Larger functions are not disassembled whole."""

_KINDS = {
    FunctionKind.IFUNC: ("ifunc", "a resolver that runs once: what it chose has another address"),
    FunctionKind.FRAGMENT: ("fragment", "the cold part of another function, entered by jumps"),
    FunctionKind.PLT: ("plt", "stubs of the dynamic linker"),
}
_TEXTS = {
    "no-site": "its first instruction is single-stepped and no emulated one follows before the stack changes",
    "jump-target": "its first instruction is single-stepped and the code jumps back behind it",
    "jump-table": "its first instruction is single-stepped and it jumps by a table, which may lead behind it",
}
_ENDS = ("j", "call", "ret", "loop", "syscall", "sysenter", "int", "hlt", "ud", "iret", "xbegin", "lcall", "ljmp")
# instructions that take longer than the straight-line code that a probe may skip
_SLOW = ("rep", "cpuid", "pause", "xsave", "xrstor", "fxsave", "fxrstor", "wrpkru", "rdrand", "rdseed", "lock", "mfence")


class _Instruction(NamedTuple):
    at: int
    """Distance from the function's first byte."""
    size: int
    mnemonic: str
    operands: str


def find_sites(
    image: Image,
    table: FunctionTable,
    rows: RowTable,
    branches: Branches,
    offsets: Sequence[int],
    *,
    kernel_emulates_nops: bool,
) -> list[Site]:
    """Return the probe site of each function that begins at a file offset.

    Parameters
    ----------
    image, table, rows, branches
        The binary, its functions, unwind rows and direct branches.
    offsets : sequence of int
        First bytes of functions; other places are refused.
    kernel_emulates_nops : bool
        True if the kernel emulates nops of more than one byte (6.16 and later).
    """
    numbers = table.containing(offsets).tolist()
    found = []
    for offset, number in zip(offsets, numbers, strict=True):
        if number < 0 or int(table.starts[number]) != offset:
            found.append(_refused(offset, "not-a-function", "no function begins there"))
            continue
        facts = table.facts(number)
        if facts.kind in _KINDS:
            found.append(_refused(offset, *_KINDS[facts.kind]))
            continue
        found.append(_site(image, table, rows, branches, offset, facts.size, kernel_emulates_nops))
    return found


def _site(
    image: Image,
    table: FunctionTable,
    rows: RowTable,
    branches: Branches,
    start: int,
    size: int,
    kernel_emulates_nops: bool,
) -> Site:
    code = image.read(start, size)
    entry = next(_decode(code[:16]), None)
    if entry is None:
        return _refused(start, "undecodable", "its first bytes are no instruction of x86-64")
    if _never_returns(code):
        return _refused(start, "noreturn", "it never returns, so its calls have no duration")
    first = handling(code[: entry.size], kernel_emulates_nops=kernel_emulates_nops)
    if first is Handling.EMULATED:
        return Site(function=start, offset=start, grade=Grade.EMULATED)
    why = "no-site"
    for at in _candidates(code, kernel_emulates_nops):
        why = _blocked(code, table, rows, branches, start, at)
        if not why:
            return Site(function=start, offset=start + at, grade=Grade.EMULATED)
        break
    if first is Handling.STEPPED:
        return Site(function=start, offset=start, grade=Grade.STEPPED, code=why, text=_TEXTS[why])
    shown = f"{entry.mnemonic} {entry.operands}".strip()
    if first is Handling.REFUSED:
        return _refused(start, "instruction", f"the kernel refuses probes on its first instruction: {shown}")
    if is_plain_nop5(code[: entry.size]):
        return _refused(start, "nop5", "it begins with a 5-byte nop, which the kernel would replace for good")
    return _refused(start, "unsafe-instruction", f"the kernel would run its first instruction wrongly: {shown}")


def _refused(start: int, code: str, text: str) -> Site:
    return Site(function=start, offset=start, grade=Grade.REFUSED, code=code, text=text)


def _candidates(code: bytes, kernel_emulates_nops: bool) -> Iterator[int]:
    """Yield the emulated instructions behind the first one that still see the entry's stack pointer."""
    for each in _decode(code[: FARTHEST + 16], detail=True):
        if each.at > FARTHEST:
            return
        raw = code[each.at : each.at + each.size]
        if each.at and handling(raw, kernel_emulates_nops=kernel_emulates_nops) is Handling.EMULATED:
            yield each.at
        if each.mnemonic.startswith((*_ENDS, *_SLOW)) or each.operands == _TOUCHES_STACK:
            return


def _blocked(
    code: bytes, table: FunctionTable, rows: RowTable, branches: Branches, start: int, at: int
) -> str:
    """Return why a probe at distance ``at`` would not stand for the function's entry, '' if it does."""
    row = rows.at(start + at)
    if row and row != ENTRY_ROW:
        return "no-site"
    inside = branches.into(start + 1, start + at + 1)
    if inside.start != inside.stop or int(table.starts.searchsorted(start + at, side="right")) != int(
        table.starts.searchsorted(start, side="right")
    ):
        return "jump-target"
    for each in _decode(code[: at + _REACH + 16]):
        if each.mnemonic.startswith(("j", "loop", "xbegin")) and each.operands.startswith("0x"):
            if 0 < int(each.operands, 16) <= at:
                return "jump-target"
    return "jump-table" if _may_jump_by_table(code) else ""


def _may_jump_by_table(code: bytes) -> bool:
    """Tell whether a function jumps to an address in a register, or out of an indexed table."""
    # ff e0..e7: jmp reg; ff 24: jmp through an index; anything else with these bytes is sorted out below
    if not any(code.find(bytes((0xFF, second))) >= 0 for second in (*range(0xE0, 0xE8), 0x24)):
        return False
    if len(code) > _LONGEST:
        return True
    return any(
        each.mnemonic in ("jmp", "notrack jmp") and ("[" not in each.operands or "*" in each.operands)
        for each in _decode(code)
        if not each.operands.startswith("0x")
    )


def _never_returns(code: bytes) -> bool:
    """Tell whether a function has neither a return nor a way out into another one."""
    if len(code) > _LONGEST or 0xC3 in code or 0xC2 in code:
        return False
    end = 0
    for each in _decode(code):
        end = each.at + each.size
        if each.mnemonic.startswith(("ret", "iret", "ljmp", "loop", "sysret")):
            return False
        if each.mnemonic.startswith(("j", "notrack", "bnd")):
            if not each.operands.startswith("0x") or not 0 <= int(each.operands, 16) < len(code):
                return False
    return end == len(code)


_TOUCHES_STACK = "rsp!"


def _decode(code: bytes, *, detail: bool = False) -> Iterator[_Instruction]:
    """Yield the instructions of a function up to what is none.

    With ``detail`` the operands of one that changes rsp are given as ``rsp!`` instead.
    """
    if not detail:
        for at, size, mnemonic, operands in _QUICK.disasm_lite(code, 0):
            yield _Instruction(at, size, mnemonic, operands)
        return
    for each in _THOROUGH.disasm(code, 0):
        _, written = each.regs_access()
        touches = not _STACK_POINTERS.isdisjoint(written)
        yield _Instruction(each.address, each.size, each.mnemonic, _TOUCHES_STACK if touches else each.op_str)


_STACK_POINTERS = frozenset((capstone.x86.X86_REG_RSP, capstone.x86.X86_REG_ESP, capstone.x86.X86_REG_SP))
_QUICK = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
_THOROUGH = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
_THOROUGH.detail = True
