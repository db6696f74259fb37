"""x86-64 code as instructions, and the first of them on which a probe is cheap."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import capstone

from .instructions import Handling, handling

FARTHEST = 64
"""Bytes behind the entry that a probe may move: a few ns of straight-line code."""
LONGEST = 1 << 16
"""Larger functions are not disassembled whole."""
_LEAVING = ("j", "loop", "call", "ret", "iret", "lcall", "ljmp", "syscall", "sysenter", "int", "hlt", "ud")
# longer than the straight-line code that a probe may skip
_SLOW = (
    "rep",
    "lock",
    "pause",
    "cpuid",
    "xsave",
    "xrstor",
    "xbegin",
    "fxsave",
    "fxrstor",
    "wrpkru",
    "rdrand",
)
_ENDS = _LEAVING + _SLOW
"""Instructions (by the beginning of their names) behind which no probe stands for the entry."""
_BASE = 1 << 32
"""Where functions are disassembled, so that every target of a branch is shown in hex."""
_STACK_POINTERS = frozenset((capstone.x86.X86_REG_RSP, capstone.x86.X86_REG_ESP, capstone.x86.X86_REG_SP))
_QUICK = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
_THOROUGH = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
_THOROUGH.detail = True


class Instruction(NamedTuple):
    """One instruction of a function."""

    at: int
    """Distance from the function's first byte."""
    size: int
    mnemonic: str
    operands: str
    target: int | None
    """Of a direct branch, likewise; other instructions may have one by chance (push imm)."""


def decode(code: bytes) -> Iterator[Instruction]:
    """Yield the instructions of a function up to what is none."""
    for address, size, mnemonic, operands in _QUICK.disasm_lite(code, _BASE):
        immediate = operands.startswith("0x") and "," not in operands  # enter has two
        target = int(operands, 16) - _BASE if immediate else None
        yield Instruction(address - _BASE, size, mnemonic, operands, target)


def first_emulated(code: bytes, emulates_nops: bool, *, first: bool = False) -> int:
    """Return where the first emulated instruction with an unchanged stack pointer is, 0 (-1) if there is none.

    The first instruction itself is asked only if ``first``; then -1 stands for none.
    """
    none = -1 if first else 0
    for each in _THOROUGH.disasm(code[: FARTHEST + 16], _BASE):
        at = int(each.address) - _BASE
        if at > FARTHEST:
            return none
        raw = code[at : at + each.size]
        if (at or first) and handling(raw, kernel_emulates_nops=emulates_nops) is Handling.EMULATED:
            return at
        _, written = each.regs_access()
        if each.mnemonic.startswith(_ENDS) or not _STACK_POINTERS.isdisjoint(written):
            return none
    return none
