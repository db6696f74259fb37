"""What the kernel's uprobes make of an instruction: emulate it, step over it, refuse it, or run it wrongly.

Follows arch/x86/kernel/uprobes.c, checked on a 6.18 kernel by probing each form. Three of its faults matter,
since the kernel accepts these and the program then misbehaves: it takes the opcode byte of a VEX or EVEX
instruction for a one-byte opcode (``vpbroadcastb`` becomes a conditional jump), ``xchg`` of rax with r8 for a
nop, and a stepped ``pushf`` saves the trap flag.
"""

from __future__ import annotations

from specmine.probes.arch.interface import Handling, Instruction

_PREFIXES = frozenset(b"\x66\x67\xf2\xf3\x26\x2e\x36\x3e\x64\x65\xf0")
_REFUSED_PREFIXES = frozenset(b"\x26\x2e\x36\x3e\xf0")
_INVALID = b"\x06\x07\x0e\x16\x17\x1e\x1f\x27\x2f\x37\x3f\x60\x61\x82\x9a\xce\xd4\xd5\xd6\xea"
_PRIVILEGED = b"\x6c\x6d\x6e\x6f\xe4\xe5\xe6\xe7\xec\xed\xee\xef\xcf\xcc\xcd\xf1\xf4\xfa\xfb"
_REFUSED = frozenset(_INVALID + _PRIVILEGED)
_REFUSED_TWO = frozenset(b"\x00\x05\x06\x07\x08\x09\x0b\x30\x34\x35\x78\x79\xaa\xff")
_VECTOR = frozenset(b"\xc4\xc5\x62")


def handling(code: bytes, *, kernel_emulates_nops: bool) -> Handling:  # noqa: PLR0911 (a table of cases)
    """Tell how the kernel handles one instruction.

    Parameters
    ----------
    code : bytes
        The whole instruction and nothing else.
    kernel_emulates_nops : bool
        True from 6.16 on: long nops are emulated; from 6.18 on, those of 5 bytes are rewritten instead.
    """
    at = 0
    while at < len(code) and code[at] in _PREFIXES:
        at += 1
    prefixes = code[:at]
    rex = code[at] if at < len(code) and code[at] & 0xF0 == 0x40 else 0
    at += 1 if rex else 0
    if at >= len(code) or not _REFUSED_PREFIXES.isdisjoint(prefixes):
        return Handling.REFUSED
    op = code[at]
    if op in _VECTOR or op in (0x9C, 0x9D):  # pushf, popf
        return Handling.UNSAFE
    if op == 0x0F:
        return _two_bytes(code, at, prefixes, rex, kernel_emulates_nops)
    if op in _REFUSED or (op == 0x8E and len(code) > at + 1 and code[at + 1] & 0x38 == 0x10):  # mov to ss
        return Handling.REFUSED
    if op == 0x90:
        if rex & 1:  # xchg with r8, which the kernel takes for a nop
            return Handling.UNSAFE
        return _rewritten(kernel_emulates_nops) if len(code) == 5 else Handling.EMULATED
    if op & 0xF8 == 0x50:
        return Handling.EMULATED if len(code) == 1 or (len(code) == 2 and rex == 0x41) else Handling.STEPPED
    if op in (0xEB, 0xE9, 0xE8) or op & 0xF0 == 0x70:
        return Handling.REFUSED if 0x66 in prefixes else Handling.EMULATED
    return Handling.STEPPED


def refusal(entry: Instruction, code: bytes, how: Handling) -> tuple[str, str]:
    """Return why a function's first instruction cannot be probed."""
    shown = f"{entry.mnemonic} {entry.operands}".strip()
    if how is Handling.REFUSED:
        return "instruction", f"the kernel refuses probes on its first instruction: {shown}"
    if _is_plain_nop5(code):
        return "nop5", "it begins with a 5-byte nop, which the kernel would replace for good"
    return "unsafe-instruction", f"the kernel would run its first instruction wrongly: {shown}"


def _is_plain_nop5(code: bytes) -> bool:
    """Return True for a no-operation of 5 bytes, which a 6.18 kernel replaces by a call."""
    body = code.lstrip(b"\x66")
    return len(code) == 5 and (body[:2] == b"\x0f\x1f" or body == b"\x90")


def _two_bytes(code: bytes, at: int, prefixes: bytes, rex: int, kernel_emulates_nops: bool) -> Handling:
    op = code[at + 1] if at + 1 < len(code) else 0
    if op & 0xF0 == 0x80:
        return Handling.REFUSED if 0x66 in prefixes else Handling.EMULATED
    if op == 0x1F and kernel_emulates_nops and not rex and set(prefixes) <= {0x66} and len(code) <= 8:
        return _rewritten(kernel_emulates_nops) if len(code) == 5 else Handling.EMULATED
    # 0f 01 holds mostly system instructions, and what is not (rdtscp) begins no function
    return Handling.REFUSED if op in _REFUSED_TWO or op == 0x01 else Handling.STEPPED


def _rewritten(kernel_emulates_nops: bool) -> Handling:
    return Handling.UNSAFE if kernel_emulates_nops else Handling.STEPPED
