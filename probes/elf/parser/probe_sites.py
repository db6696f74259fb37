"""Where a function's probe goes: the first emulated instruction that still stands for the entry.

A uprobe on an instruction that is not emulated costs some 14 times more, and about half of all functions
begin with one. So the probe moves on within the entry block, as long as the stack pointer is untouched (the
return address still stands at rsp), nothing can jump in between, and nothing that takes time lies before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from specmine.probes.elf.facts import FunctionKind, Grade, RowTable, Site

from .branches import CALL, Branches
from .disassembly import LONGEST, Instruction, decode, first_emulated
from .function_table import FunctionTable
from .image import Image
from .instructions import Handling, handling, is_plain_nop5
from .unwind_rows import ENTRY_ROW

_REACH = 130
"""A jump with an 8-bit displacement reaches back so far."""

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
    emulates_nops: bool


def _site(code: _Code, start: int, number: int) -> Site:  # noqa: PLR0911 (one for each verdict)
    if number < 0 or int(code.table.starts[number]) != start:
        return _refused(start, "not-a-function", "no function begins there")
    facts = code.table.facts(number)
    if facts.kind in _KINDS:
        return _refused(start, *_KINDS[facts.kind])
    body = code.image.read(start, facts.size)
    entry = next(decode(body[:16]), None)
    if entry is None:
        return _refused(start, "undecodable", "its first bytes are no instruction of x86-64")
    if _never_returns(body):
        return _refused(start, "noreturn", "it never returns, so its calls have no duration")
    if _is_loop(code.branches, start, body):
        found = _behind_stack_check(code, start, body)
        if found is not None:
            return found
        return _refused(start, "loop-head", "it jumps back to its first byte: a probe there counts rounds, not calls")
    first = handling(body[: entry.size], kernel_emulates_nops=code.emulates_nops)
    if first is Handling.EMULATED:
        return Site(function=start, offset=start, grade=Grade.EMULATED)
    at = first_emulated(body, code.emulates_nops)
    why = _blocked(code, start, at, body) if at else "no-site"
    if not why:
        return Site(function=start, offset=start + at, grade=Grade.EMULATED)
    if first is Handling.STEPPED:
        return Site(function=start, offset=start, grade=Grade.STEPPED, code=why, text=_TEXTS[why])
    return _refused(start, *_misfit(body[: entry.size], first, entry))


def _is_loop(branches: Branches, start: int, body: bytes) -> bool:
    """Tell whether a function jumps back to its own first byte."""
    into = branches.into(start, start + 1)
    inside = (branches.source[into] >= start) & (branches.source[into] < start + len(body))
    if bool((inside & (branches.kind[into] != CALL)).any()):
        return True
    return any(each.target == 0 and each.mnemonic.startswith(("j", "loop")) for each in decode(body[: _REACH + 16]))


def _behind_stack_check(code: _Code, start: int, body: bytes) -> Site | None:
    """Return the site of a function that begins by checking its stack: where it goes on; None if it does not so.

    Go's functions compare the stack pointer with a limit; where it is reached they call for a larger stack and
    begin anew, so only what follows the check runs once a call.
    """
    for each in decode(body[:64]):
        if each.mnemonic in ("jbe", "jb"):
            after = each.at + each.size
            more = each.target is not None and 0 < each.target < len(body) and _begins_anew(body, each.target)
            if not more or _blocked(code, start, after, body):
                return None
            at = after + max(0, first_emulated(body[after:], code.emulates_nops, first=True))
            if _blocked(code, start, at, body):
                at = after
            size = next((each.size for each in decode(body[at : at + 16])), 0)
            how = handling(body[at : at + size], kernel_emulates_nops=code.emulates_nops)
            grade = {Handling.EMULATED: Grade.EMULATED, Handling.STEPPED: Grade.STEPPED}.get(how)
            why = "" if grade is Grade.EMULATED else "no-site"
            if grade is None:
                return None
            return Site(function=start, offset=start + at, grade=grade, code=why, text=_TEXTS.get(why, ""))
        moves = each.mnemonic in ("lea", "mov") and not each.operands.startswith("rsp")
        if not moves and each.mnemonic != "cmp":
            return None
    return None


def _begins_anew(body: bytes, place: int) -> bool:
    """Tell whether the code at a place calls something and then jumps to the function's first byte."""
    calls = False
    for each in decode(body[place : place + 256]):
        if each.mnemonic == "jmp":
            return calls and each.target is not None and each.target + place == 0
        calls |= each.mnemonic == "call"
        if each.mnemonic.startswith(("j", "ret", "loop")):
            return False
    return False


def _misfit(code: bytes, first: Handling, entry: Instruction) -> tuple[str, str]:
    """Return why a function's first instruction cannot be probed."""
    shown = f"{entry.mnemonic} {entry.operands}".strip()
    if first is Handling.REFUSED:
        return "instruction", f"the kernel refuses probes on its first instruction: {shown}"
    if is_plain_nop5(code):
        return "nop5", "it begins with a 5-byte nop, which the kernel would replace for good"
    return "unsafe-instruction", f"the kernel would run its first instruction wrongly: {shown}"


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
    for each in decode(body[: at + _REACH + 16]):
        jumps = each.mnemonic.startswith(("j", "loop", "xbegin"))
        if jumps and each.target is not None and 0 < each.target <= at:
            return "jump-target"
    return "jump-table" if _may_jump_by_table(body) else ""


def _may_jump_by_table(code: bytes) -> bool:
    """Tell whether a function jumps to an address in a register, or out of an indexed table."""
    # ff e0..e7: jmp reg; ff 24: jmp through an index; what else has these bytes is sorted out below
    if not any(code.find(bytes((0xFF, second))) >= 0 for second in (*range(0xE0, 0xE8), 0x24)):
        return False
    if len(code) > LONGEST:
        return True
    return any(
        each.mnemonic in ("jmp", "notrack jmp") and ("[" not in each.operands or "*" in each.operands)
        for each in decode(code)
        if each.target is None
    )


def _never_returns(code: bytes) -> bool:
    """Tell whether a function has neither a return nor a way out into another one."""
    if len(code) > LONGEST or 0xC3 in code or 0xC2 in code:
        return False
    end = 0
    for each in decode(code):
        end = each.at + each.size
        if each.mnemonic.startswith(("ret", "iret", "ljmp", "sysret")):
            return False
        leaves = each.target is None or not 0 <= each.target < len(code)
        if each.mnemonic.startswith(("j", "loop", "notrack", "bnd")) and leaves:
            return False
    return end == len(code)
