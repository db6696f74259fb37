"""A digest of a function's machine code that stays when a program is only linked anew.

Linking moves functions and data: targets of calls and jumps, displacements from the instruction pointer, and in
programs at a fixed address the addresses themselves. These are left out, and what a call names goes in by its name
instead. Jumps inside the function count instructions, so padding does not matter either.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from specmine.probes.arch.machine import machine
from specmine.probes.elf.facts import FunctionKind

from .function_table import FunctionTable
from .image import Image

LARGEST = 1 << 16
"""Bytes of a function beyond which it has no digest."""
_CODE = machine().instruction_set()
_SCHEME = f"1.{_CODE.TEXT_VERSION}"
"""Digests are of the disassembler's text: another one's cannot be compared with them."""
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
    lines, callees = _CODE.text_of(image.read(offset, size), offset + shift, _fixed_range(image))
    names = _names(table, [target - shift for target in callees])
    letter = "l" if table.has_local_names else "e"
    return f"{_SCHEME}:{_hash(lines)}:{letter}{_hash(names)}"


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
