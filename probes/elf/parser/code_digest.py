"""A digest of a function's machine code that stays when a program is only linked anew.

Linking moves functions and data: targets of calls and jumps, displacements from the instruction pointer, and in
programs at a fixed address the addresses themselves. These are left out, and what a call names goes in by its name
instead. Jumps inside the function count instructions, so padding does not matter either.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence

import capstone

from specmine.probes.elf.facts import FunctionKind

from .function_table import FunctionTable
from .image import Image

LARGEST = 1 << 16
"""Bytes of a function beyond which it has no digest."""
_MAJOR, _MINOR, _ = capstone.version_bind()
_SCHEME = f"1.{_MAJOR}.{_MINOR}"
"""Digests are of the disassembler's text: another one's cannot be compared with them."""
_DECODER = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
_DECODER.skipdata = True  # bytes that are no instruction count as they are
_RELATIVE = re.compile(r"rip [+-] 0x[0-9a-f]+")
_NUMBER = re.compile(r"0x[0-9a-f]+")
_FIXED = 2
"""e_type of a program that is linked for one address."""


def code_digests(image: Image, table: FunctionTable, offsets: Sequence[int]) -> list[str]:
    """Return the digest of each function that begins at these file offsets, '' where there is none.

    Notes
    -----
    A digest is ``scheme:code:names``; ``names`` begins with ``l`` or ``e``: were the names of local functions
    known, or only the exported ones. Digests say something about each other if their schemes are equal, names if
    their first letters are as well. What constants and strings hold that the code refers to is not in it.
    """
    numbers = table.containing(offsets).tolist()
    return [_digest(image, table, offset, number) for offset, number in zip(offsets, numbers, strict=True)]


def _digest(image: Image, table: FunctionTable, offset: int, number: int) -> str:
    if number < 0 or int(table.starts[number]) != offset:
        return ""
    size = int(table.sizes[number])
    segment = next((each for each in image.code if each.offset <= offset < each.offset + each.file_size), None)
    if segment is None or not 0 < size <= LARGEST or table.facts(number).kind is not FunctionKind.FUNCTION:
        return ""
    shift = segment.address - segment.offset
    lines, callees = _normalised(image.read(offset, size), offset + shift, size, _fixed_range(image))
    names = _names(table, [target - shift for target in callees])
    letter = "l" if table.has_local_names else "e"
    return f"{_SCHEME}:{_hash(lines)}:{letter}{_hash(names)}"


def _normalised(code: bytes, address: int, size: int, fixed: tuple[int, int]) -> tuple[list[str], list[int]]:
    """Return the instructions without what linking changes, and the addresses outside that they name."""
    found = [each for each in _DECODER.disasm_lite(code, address) if not _is_padding(each[2])]
    index = {at: number for number, (at, *_) in enumerate(found)}
    lines, callees = [], []
    for _, _, mnemonic, operands in found:
        text = operands
        if operands.startswith("0x") and _is_branch(mnemonic):
            target = int(operands, 16)
            inside = address <= target < address + size
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


def _fixed_range(image: Image) -> tuple[int, int]:
    """Return the addresses that a program at a fixed place has, (0, 0) for all others."""
    if image.type != _FIXED or not image.segments:
        return 0, 0
    low = min(each.address for each in image.segments)
    return low, max(each.address + each.memory_size for each in image.segments)


def _names(table: FunctionTable, offsets: Sequence[int]) -> list[str]:
    """Return what branches name: a function, a place inside one counts as it; '?' where nothing is named."""
    found = []
    for number in table.containing(offsets).tolist():
        facts = table.facts(number) if number >= 0 else None
        found.append(facts.name if facts is not None and facts.mangled else "?")
    return found


def _hash(lines: Iterable[str]) -> str:
    return hashlib.blake2b("\n".join(lines).encode(), digest_size=8).hexdigest()
