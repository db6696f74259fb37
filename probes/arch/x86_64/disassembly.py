"""x86-64 code as instructions, and the first of them on which a probe is cheap."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import capstone

from specmine.probes.arch.interface import Handling, Instruction

from .uprobe_handling import handling

FARTHEST = 64
"""Bytes behind the entry that a probe may move: a few ns of straight-line code."""
LONGEST = 1 << 16
"""Larger functions are not disassembled whole."""
SHORT_JUMP = 130
"""A jump with an 8-bit displacement reaches back so far."""
_JUMPS = ("j", "loop", "xbegin")
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


def decode(code: bytes) -> Iterator[Instruction]:
    """Yield the instructions of a function up to what is none."""
    for address, size, mnemonic, operands in _QUICK.disasm_lite(code, _BASE):
        immediate = operands.startswith("0x") and "," not in operands  # enter has two
        target = int(operands, 16) - _BASE if immediate else None
        yield Instruction(address - _BASE, size, mnemonic, operands, target, mnemonic.startswith(_JUMPS))


def first_emulated(code: bytes, *, kernel_emulates_nops: bool, first: bool) -> int:
    """Return where the first emulated instruction with an unchanged stack pointer is, 0 (-1) if there is none.

    The first instruction itself is asked only if ``first``; then -1 stands for none.
    """
    none = -1 if first else 0
    for each in _THOROUGH.disasm(code[: FARTHEST + 16], _BASE):
        at = int(each.address) - _BASE
        if at > FARTHEST:
            return none
        raw = code[at : at + each.size]
        if (at or first) and handling(raw, kernel_emulates_nops=kernel_emulates_nops) is Handling.EMULATED:
            return at
        _, written = each.regs_access()
        if each.mnemonic.startswith(_ENDS) or not _STACK_POINTERS.isdisjoint(written):
            return none
    return none


def behind_stack_check(code: bytes) -> int:
    """Return where a function goes on that begins by checking its stack, as Go's do; 0 if it does not begin so.

    Such functions compare the stack pointer with a limit; where it is reached they call for a larger stack and
    begin anew.
    """
    for each in decode(code[:64]):
        if each.mnemonic in ("jbe", "jb"):
            more = each.target is not None and 0 < each.target < len(code) and _begins_anew(code, each.target)
            return each.at + each.size if more else 0
        moves = each.mnemonic in ("lea", "mov") and not each.operands.startswith("rsp")
        if not moves and each.mnemonic != "cmp":
            return 0
    return 0


def _begins_anew(body: bytes, place: int) -> bool:
    """Return whether the code at a place calls something and then jumps to the function's first byte."""
    calls = False
    for each in decode(body[place : place + 256]):
        if each.mnemonic == "jmp":
            return calls and each.target is not None and each.target + place == 0
        calls |= each.mnemonic == "call"
        if each.mnemonic.startswith(("j", "ret", "loop")):
            return False
    return False


def may_jump_by_table(code: bytes) -> bool:
    """Return whether a function jumps to an address in a register, or out of an indexed table."""
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


def never_returns(code: bytes) -> bool:
    """Return whether a function has neither a return nor a way out into another one."""
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


def are_instructions(code: bytes, places: Collection[int]) -> bool:
    """Return whether disassembling the code from its start meets an instruction at each of these places."""
    return {address for address, _, _, _ in _QUICK.disasm_lite(code, 0)}.issuperset(places)
