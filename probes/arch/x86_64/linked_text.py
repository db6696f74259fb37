"""The text of a function's instructions without what linking changes.

Linking moves functions and data: targets of calls and jumps, displacements from the instruction pointer, and in
programs at a fixed address the addresses themselves.
"""

from __future__ import annotations

import re

import capstone

_MAJOR, _MINOR, _ = capstone.version_bind()
TEXT_VERSION = f"{_MAJOR}.{_MINOR}"
_DECODER = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
_DECODER.skipdata = True  # bytes that are no instruction count as they are
_RELATIVE = re.compile(r"rip [+-] 0x[0-9a-f]+")
_NUMBER = re.compile(r"0x[0-9a-f]+")


def text_of(code: bytes, address: int, fixed: tuple[int, int]) -> tuple[list[str], list[int]]:
    """Return the instructions of a function, and the addresses outside it that its branches name.

    Jumps inside the function count instructions, so padding does not matter.
    """
    instructions = [each for each in _DECODER.disasm_lite(code, address) if not _is_padding(each[2])]
    index = {at: number for number, (at, *_) in enumerate(instructions)}
    lines, callees = [], []
    for _, _, mnemonic, operands in instructions:
        text = operands
        if operands.startswith("0x") and _is_branch(mnemonic):
            target = int(operands, 16)
            inside = address <= target < address + len(code)
            # what is jumped to inside may be padding in front of an instruction
            text = str(index.get(target, "pad")) if inside else "@"
            if not inside:
                callees.append(target)
        elif "rip" in operands:
            text = _RELATIVE.sub("rip", operands)
        if fixed[1] and "0x" in text:
            text = _NUMBER.sub(lambda match: "@" if fixed[0] <= int(match[0], 16) < fixed[1] else match[0], text)
        lines.append(f"{mnemonic} {text}")
    return lines, callees


def _is_branch(mnemonic: str) -> bool:
    return mnemonic.rsplit(" ", 1)[-1].startswith(("j", "call", "loop", "xbegin"))


def _is_padding(mnemonic: str) -> bool:
    return mnemonic.endswith("nop") or mnemonic == "int3"
