"""Instructions that move the stack pointer to another stack.

Only few can: the stack pointer is loaded from a register, from memory or by an exchange. Ordinary code does so too, to
put back what it saved: from its own frame, or from a register into which the same function copied the stack pointer
(arrays of variable size).
"""

from __future__ import annotations

import capstone
import numpy as np

from specmine.probes.arch.interface import Bytes, Places

_PRESERVED = frozenset(("rbx", "r12", "r13", "r14", "r15"))
"""Registers that calls leave alone: what a function copies there it still has when it puts it back."""
_DECODER = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)


def stack_loads(code: Bytes) -> Places:
    """Return where a REX.W prefix, an opcode and a ModRM byte load rsp from elsewhere than its own frame."""
    if len(code) < 3:
        return np.empty(0, np.int64)
    rex, op, modrm = code[:-2], code[1:-1], code[2:]
    mod, reg, rm = modrm >> 6, modrm >> 3 & 7, modrm & 7
    wide = (rex & 0xF8) == 0x48
    register = mod == 3
    plain_reg, plain_rm = (rex & 4) == 0, (rex & 1) == 0  # else they stand for r8 to r15
    reg_rsp, rm_rsp = plain_reg & (reg == 4), plain_rm & register & (rm == 4)
    reg_rbp, rm_rbp = plain_reg & (reg == 5), plain_rm & (rm == 5)
    in_frame = rm_rbp | (plain_rm & ~register & (rm == 4))  # rbp, or memory at rbp, at rsp or at an address
    load = (op == 0x8B) & reg_rsp & ~in_frame
    move = (op == 0x89) & rm_rsp & ~reg_rbp
    swap = (op == 0x87) & (reg_rsp | rm_rsp)
    return np.flatnonzero(wide & (load | move | swap))


def loads_foreign_stack(code: bytes, at: int) -> bool:
    """Return whether the instruction at a place of a function loads a stack that the function did not save.

    True as well if the function cannot be decoded up to there; False if no instruction begins there.
    """
    saved: set[str] = set()
    loaded = ""
    for address, _, mnemonic, operands in _DECODER.disasm_lite(code, 0):
        first, _, second = operands.partition(", ")
        if address > at and not loaded:
            return False
        if address == at:
            loaded = second if mnemonic == "mov" else first
        copies = (mnemonic == "mov" and second == "rsp") or (mnemonic == "lea" and "[rsp" in second)
        if first in _PRESERVED and copies:
            saved.add(first)
    return loaded not in saved
