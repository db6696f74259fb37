"""Where a program leaves frames without returning from them: the last jump of longjmp, and of an unwinder.

Both set the stack pointer from a register, then jump to an address in a register: an exception arrives at its
handler, longjmp at its setjmp. What was called from the frames below never returns. glibc's ``__longjmp`` and the
``eh_return`` of GCC's unwinder have this form in every build; code of another form is not found.
"""

from __future__ import annotations

import re

import capstone

from specmine.probes.elf.facts import Grade, Site

from .function_table import FunctionTable
from .image import Image

MOST = 32
"""More such jumps in one file are not those of an unwinder: generated code, a file made to look so."""
_FARTHEST = 1 << 16
# mov rsp, reg (not rbp: that is an epilogue), then pops and moves between registers, then jmp reg
_JUMP = re.compile(
    rb"(?:[\x48\x4c]\x89[\xc4\xcc\xd4\xdc\xf4\xfc]|\x4c\x89[\xe4\xec]|\x48\x8b[\xe0-\xe3\xe6\xe7]|\x49\x8b[\xe0-\xe7])"
    rb"(?:\x41?[\x58-\x5f]|[\x48\x49\x4c\x4d]\x89[\xc0-\xff]|\x90){0,8}?"
    rb"(\x3e?\x41?\xff[\xe0-\xe7])",
    re.DOTALL,
)
_DISASSEMBLER = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)


def find_landings(image: Image, table: FunctionTable) -> list[Site]:
    """Return the jumps, by ascending offset; [] if there are none, or so many that they mean something else.

    A place counts only if disassembling its function from the start meets it: a probe in the middle of an
    instruction would change the program.
    """
    found: list[int] = []
    for segment in image.code:
        data = image.read(segment.offset, segment.file_size)
        for match in _JUMP.finditer(data):
            start, jump = segment.offset + match.start(), segment.offset + match.start(1)
            if _is_met(image, table, start, jump):
                found.append(jump)
            if len(found) > MOST:
                return []
    return [Site(function=at, offset=at, grade=Grade.STEPPED) for at in sorted(found)]


def _is_met(image: Image, table: FunctionTable, *places: int) -> bool:
    number = int(table.containing(places[:1])[0])
    if number < 0:
        return False
    begin = int(table.starts[number])
    if places[-1] - begin > _FARTHEST:
        return False
    code = image.read(begin, places[-1] + 16 - begin)
    met = {begin + address for address, _, _, _ in _DISASSEMBLER.disasm_lite(code, 0)}
    return met.issuperset(places)
