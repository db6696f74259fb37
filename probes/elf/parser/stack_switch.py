"""Code that moves the stack pointer to another stack: fibers and coroutines that no name betrays.

Only few instructions can do it: the stack pointer is loaded from a register, from memory or by an exchange. Ordinary
code does so too, to put back what it saved: from its own frame, or from a register into which the same function copied
the stack pointer (arrays of variable size). What is left may switch stacks or not; where in doubt it counts as if it
did, since returns can be timed by return sites then.
"""

from __future__ import annotations

import capstone
import numpy as np
from numpy.typing import NDArray

from .image import Image
from .unwind_rows import Frames

KNOWN = ("libc.so.6", "ld-linux-x86-64.so.2", "libpthread.so.0")
"""Sonames of glibc: what switches stacks there (setcontext and its like) is known by name, longjmp is harmless."""
_KEPT = frozenset(("rbx", "r12", "r13", "r14", "r15"))
"""Registers that calls leave alone: what a function copies there it still has when it puts it back."""
_LONGEST = 1 << 16
_CHUNK = 1 << 24


def stack_switch(image: Image, frames: Frames, soname: str) -> int | None:
    """Return the file offset of an instruction that may switch to another stack, None if there is none.

    Parameters
    ----------
    image, frames
        The binary and its call frame information, which says where functions begin.
    soname : str
        Its name in DT_SONAME.
    """
    if soname in KNOWN:
        return None
    starts = np.asarray(frames.starts, dtype=np.int64)
    decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    for at in _candidates(image):
        number = int(np.searchsorted(starts, at, side="right")) - 1
        start = int(starts[number]) if number >= 0 and at - int(starts[number]) < _LONGEST else at
        end = int(starts[number + 1]) if number + 1 < len(starts) else at + 16
        if _loads_foreign(decoder, image.read(start, min(max(end, at + 16) - start, _LONGEST)), at - start):
            return at
    return None


def _loads_foreign(decoder: capstone.Cs, code: bytes, at: int) -> bool:
    """Tell whether the instruction at a distance into a function loads what the function did not save itself.

    True as well if the function cannot be decoded up to there; False if no instruction begins there.
    """
    saved: set[str] = set()
    loaded = ""
    for address, _, mnemonic, operands in decoder.disasm_lite(code, 0):
        first, _, second = operands.partition(", ")
        if address > at and not loaded:
            return False
        if address == at:
            loaded = second if mnemonic == "mov" else first
        if first in _KEPT and ((mnemonic == "mov" and second == "rsp") or (mnemonic == "lea" and "[rsp" in second)):
            saved.add(first)
    return loaded not in saved


def _candidates(image: Image) -> list[int]:
    """Return the file offsets of bytes that read as such an instruction."""
    found: list[int] = []
    data = image.view
    for segment in image.code:
        end = segment.offset + segment.file_size
        for begin in range(segment.offset, end, _CHUNK):
            code = data[begin : min(begin + _CHUNK + 3, end)]
            found += (begin + _in(code)).tolist()
    return found


def _in(code: NDArray[np.uint8]) -> NDArray[np.int64]:
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
    own = rm_rbp | (plain_rm & ~register & (rm == 4))  # rbp, or memory at rbp, at rsp or at an address
    load = (op == 0x8B) & reg_rsp & ~own
    move = (op == 0x89) & rm_rsp & ~reg_rbp
    swap = (op == 0x87) & (reg_rsp | rm_rsp)
    return np.flatnonzero(wide & (load | move | swap))
