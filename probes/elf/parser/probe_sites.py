"""Where a function's probe goes: the first emulated instruction that still stands for the entry.

A uprobe on an instruction that is not emulated costs some 14 times more, and about half of all functions
begin with one. So the probe moves on within the entry block, on three conditions: the stack pointer is unchanged,
nothing can jump in between, and nothing that takes time lies before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from specmine.probes.arch.interface import Branch, Handling
from specmine.probes.arch.machine import machine
from specmine.probes.elf.facts import FunctionKind, Grade, RowTable, Site

from .branches import Branches
from .function_table import FunctionTable
from .image import Image
from .unwind_rows import ENTRY_ROW

_CODE = machine().instruction_set()

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
    code = _Code(image, table, rows, branches, kernel_emulates_nops)
    numbers = table.containing(offsets).tolist()
    return [_site(code, offset, number) for offset, number in zip(offsets, numbers, strict=True)]


class _Code(NamedTuple):
    image: Image
    table: FunctionTable
    rows: RowTable
    branches: Branches
    kernel_emulates_nops: bool


def _site(code: _Code, start: int, number: int) -> Site:  # noqa: PLR0911 (one for each verdict)
    if number < 0 or int(code.table.starts[number]) != start:
        return _refused(start, "not-a-function", "no function begins there")
    facts = code.table.facts(number)
    if facts.kind in _KINDS:
        return _refused(start, *_KINDS[facts.kind])
    body = code.image.read(start, facts.size)
    entry = next(_CODE.decode(body[:16]), None)
    if entry is None:
        return _refused(start, "undecodable", f"its first bytes are no instruction of {machine().title}")
    if _CODE.never_returns(body):
        return _refused(start, "noreturn", "it never returns, so its calls have no duration")
    if _is_loop(code.branches, start, body):
        found = _behind_stack_check(code, start, body)
        if found is not None:
            return found
        return _refused(start, "loop-head", "it jumps back to its first byte: a probe there counts rounds, not calls")
    first = _CODE.handling(body[: entry.size], kernel_emulates_nops=code.kernel_emulates_nops)
    if first is Handling.EMULATED:
        return Site(function=start, offset=start, grade=Grade.EMULATED)
    at = _CODE.first_emulated(body, kernel_emulates_nops=code.kernel_emulates_nops, first=False)
    why = _blocked(code, start, at, body) if at else "no-site"
    if not why:
        return Site(function=start, offset=start + at, grade=Grade.EMULATED)
    if first is Handling.STEPPED:
        return Site(function=start, offset=start, grade=Grade.STEPPED, code=why, text=_TEXTS[why])
    return _refused(start, *_CODE.refusal(entry, body[: entry.size], first))


def _is_loop(branches: Branches, start: int, body: bytes) -> bool:
    """Return whether a function jumps back to its own first byte."""
    into = branches.into(start, start + 1)
    inside = (branches.source[into] >= start) & (branches.source[into] < start + len(body))
    if bool((inside & (branches.kind[into] != Branch.CALL)).any()):
        return True
    return any(step.target == 0 and step.jumps for step in _CODE.decode(body[: _CODE.SHORT_JUMP + 16]))


def _behind_stack_check(code: _Code, start: int, body: bytes) -> Site | None:
    """Return the site of a function that begins by checking its stack: where it goes on; None if it does not so."""
    after = _CODE.behind_stack_check(body)
    if not after or _blocked(code, start, after, body):
        return None
    emulates = code.kernel_emulates_nops
    at = after + max(0, _CODE.first_emulated(body[after:], kernel_emulates_nops=emulates, first=True))
    if _blocked(code, start, at, body):
        at = after
    size = next((instruction.size for instruction in _CODE.decode(body[at : at + 16])), 0)
    how = _CODE.handling(body[at : at + size], kernel_emulates_nops=emulates)
    grade = {Handling.EMULATED: Grade.EMULATED, Handling.STEPPED: Grade.STEPPED}.get(how)
    if grade is None:
        return None
    why = "" if grade is Grade.EMULATED else "no-site"
    return Site(function=start, offset=start + at, grade=grade, code=why, text=_TEXTS.get(why, ""))


def _refused(start: int, code: str, text: str) -> Site:
    return Site(function=start, offset=start, grade=Grade.REFUSED, code=code, text=text)


def _blocked(code: _Code, start: int, at: int, body: bytes) -> str:
    """Return why a probe at distance ``at`` would not stand for the function's entry, '' if it does."""
    row = code.rows.at(start + at)
    if row and row != ENTRY_ROW:
        return "no-site"
    branches = code.branches.into(start + 1, start + at + 1)
    first, last = np.searchsorted(code.table.starts, (start, start + at), side="right")
    if branches.start != branches.stop or first != last:
        return "jump-target"
    for step in _CODE.decode(body[: at + _CODE.SHORT_JUMP + 16]):
        if step.jumps and step.target is not None and 0 < step.target <= at:
            return "jump-target"
    return "jump-table" if _CODE.may_jump_by_table(body) else ""
