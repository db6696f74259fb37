"""Where a program leaves frames without returning from them: the last jump of longjmp, and of an unwinder.

An exception arrives at its handler, longjmp at its setjmp. What was called from the frames below never returns.
"""

from __future__ import annotations

from collections.abc import Callable

from specmine.probes.arch.machine import machine
from specmine.probes.elf.facts import Grade, Site

from .function_table import FunctionTable
from .image import Image

MOST = 32
"""More such jumps in one file are not those of an unwinder: generated code, a file made to look so."""
_FARTHEST = 1 << 16
_CODE = machine().instruction_set()


def find_landings(image: Image, table: Callable[[], FunctionTable]) -> list[Site]:
    """Return the jumps, by ascending offset; [] if there are none, or so many that they mean something else.

    A place counts only if disassembling its function from the start meets it: a probe in the middle of an
    instruction would change the program. ``table`` is called only where bytes look like such a jump. Few files have
    any, and to find all functions of a file takes a tenth of a second.
    """
    found: list[int] = []
    for segment in image.code:
        data = image.read(segment.offset, segment.file_size)
        for begin, jump in _CODE.unwinder_jumps(data):
            if _are_instructions(image, table(), segment.offset + begin, segment.offset + jump):
                found.append(segment.offset + jump)
            if len(found) > MOST:
                return []
    return [Site(function=at, offset=at, grade=Grade.STEPPED) for at in sorted(found)]


def _are_instructions(image: Image, table: FunctionTable, *places: int) -> bool:
    number = int(table.containing(places[:1])[0])
    if number < 0:
        return False
    begin = int(table.starts[number])
    if places[-1] - begin > _FARTHEST:
        return False
    code = image.read(begin, places[-1] + 16 - begin)
    return _CODE.are_instructions(code, [place - begin for place in places])
