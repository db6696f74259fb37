"""Call frame instructions: runs a range's program and packs each row into 32 bits (see unwind_rows.py).

DWARF 5, section 6.4.2; GNU's additions from the Linux Standard Base.
"""

from __future__ import annotations

from typing import NamedTuple

from specmine.probes.arch.machine import machine

from .leb128 import Malformed, sleb, uleb

MAX_ROWS = 1 << 16
"""Rows of one program; real ones have a few thousand at most."""
_FARTHEST = 1 << 40
"""No range is longer."""
_REGISTERS = machine().unwind
_FRAME, _STACK, _RETURN = _REGISTERS.frame_pointer, _REGISTERS.stack_pointer, _REGISTERS.return_address
_PUSHED = _REGISTERS.pushed
_SAME, _SAVED, _UNKNOWN = 0, 1, 2
_RETURN_SAVED, _RETURN_LOST, _RETURN_UNDEFINED = 0, 1, 2
_SIGNAL, _END = 7, 6

_BREG_FRAME, _BREG_STACK = 0x70 + _FRAME, 0x70 + _STACK
# what follows the register: deref (stacks realigned by compilers), deref + what a call pushes (OpenSSL's assembler)
_LOADS = {(_BREG_FRAME, b"\x06"): 4, (_BREG_STACK, bytes((0x06, 0x23, _PUSHED))): 5}


class Cie(NamedTuple):
    """What the programs of many ranges have in common."""

    code_align: int
    data_align: int
    encoding: int
    """How addresses are written (DW_EH_PE_*)."""
    augmented: bool
    signal: bool
    personality: bool
    initial: bytes
    """Instructions that stand before every program."""


class Program(NamedTuple):
    """Rows of a program: distances from the range's start, strictly ascending from 0, and their ``info``."""

    location: list[int]
    info: list[int]


class _State(NamedTuple):
    """What a row says, as it is kept by remember_state."""

    register: int
    """Register of the CFA; -1: ``expression`` instead."""
    offset: int
    expression: int
    """Info bits of an expression for the CFA, 0 if it cannot be expressed."""
    rule: int
    slot: int
    ret: int


def run_program(cie: Cie, program: bytes) -> Program:
    """Run a program after its CIE's instructions; what is malformed ends in a row of kind none."""
    if cie.signal:
        return Program([0], [_SIGNAL])
    runner = _Runner(cie)
    try:
        runner.run(cie.initial, in_cie=True)
        runner.initial = runner.state()
        runner.run(program, in_cie=False)
    except (Malformed, IndexError):
        runner.fail()
    return runner.finish()


class _Runner:
    """A machine that runs call frame instructions, for one program."""

    __slots__ = (
        "align", "code_align", "expression", "info", "initial", "location", "locations", "offset",
        "register", "ret", "rule", "slot", "stack",
    )  # fmt: skip

    def __init__(self, cie: Cie) -> None:
        """Begin before the first instruction, where nothing is known yet."""
        self.code_align, self.align = cie.code_align, cie.data_align
        self.register, self.offset, self.expression = -1, 0, 0
        self.rule, self.slot, self.ret = _SAME, 0, _RETURN_LOST
        self.initial = self.state()
        self.stack: list[_State] = []
        self.location = 0
        self.locations: list[int] = []
        self.info: list[int] = []

    def state(self) -> _State:
        """Return what the current row says."""
        return _State(self.register, self.offset, self.expression, self.rule, self.slot, self.ret)

    def restore(self, state: _State) -> None:
        """Go back to a row."""
        self.register, self.offset, self.expression, self.rule, self.slot, self.ret = state

    def emit(self) -> None:
        """Write the current row; it replaces one at the same place and joins an equal one before it."""
        info = self.packed()
        if self.locations and self.locations[-1] == self.location:
            self.info[-1] = info
        elif not self.info or self.info[-1] != info:
            if len(self.info) >= MAX_ROWS:
                raise Malformed
            self.locations.append(self.location)
            self.info.append(info)

    def packed(self) -> int:
        """Return the current row's info."""
        if self.ret:
            return _END if self.ret == _RETURN_UNDEFINED else 0
        if self.register == _STACK:
            kind = 1
        elif self.register == _FRAME:
            kind = 2
        elif self.register == -1 and self.expression:
            return self.expression | self.rule << 3 | self.slot << 5
        else:
            return 0
        offset = self.offset
        if offset & 7 or not -(1 << 21) <= offset < 1 << 21:
            return 0
        return kind | self.rule << 3 | self.slot << 5 | (offset >> 3 & 0x7FFFF) << 13

    def fail(self) -> None:
        """Let the rest of the range be without a rule."""
        self.ret = _RETURN_LOST

    def finish(self) -> Program:
        """Return the rows; there is always one at 0."""
        if len(self.info) < MAX_ROWS:
            self.emit()
        else:
            self.info[-1] = 0
        if self.locations[0] != 0:
            self.locations[0] = 0
        return Program(self.locations, self.info)

    def run(self, code: bytes, *, in_cie: bool) -> None:  # noqa: PLR0912, PLR0915 (an instruction set)
        """Run instructions; raises Malformed or IndexError."""
        at, end = 0, len(code)
        while at < end:
            op = code[at]
            at += 1
            high = op & 0xC0
            if high == 0x40:  # advance_loc
                self.advance(op & 0x3F, in_cie)
            elif high == 0x80:  # offset
                value, at = uleb(code, at)
                self.saved(op & 0x3F, value)
            elif high == 0xC0:  # restore
                self.back_to_initial(op & 0x3F)
            elif op == 0x0E:  # def_cfa_offset
                self.offset, at = uleb(code, at)
            elif op == 0x0C:  # def_cfa
                self.register, at = uleb(code, at)
                self.offset, at = uleb(code, at)
            elif op == 0x0D:  # def_cfa_register
                self.register, at = uleb(code, at)
            elif op == 0x0A:  # remember_state
                if len(self.stack) > 64:
                    raise Malformed
                self.stack.append(self.state())
            elif op == 0x0B:  # restore_state
                if not self.stack:
                    raise Malformed
                self.restore(self.stack.pop())
            elif op == 0x00:  # nop
                pass
            elif op in (0x02, 0x03, 0x04):  # advance_loc1, 2, 4
                width = 1 << op - 2
                self.advance(int.from_bytes(code[at : at + width], "little"), in_cie)
                at += width
            elif op == 0x05:  # offset_extended
                register, at = uleb(code, at)
                value, at = uleb(code, at)
                self.saved(register, value)
            elif op == 0x11:  # offset_extended_sf
                register, at = uleb(code, at)
                value, at = sleb(code, at)
                self.saved(register, value)
            elif op == 0x06:  # restore_extended
                register, at = uleb(code, at)
                self.back_to_initial(register)
            elif op == 0x07:  # undefined
                register, at = uleb(code, at)
                self.lost(register, undefined=True)
            elif op == 0x08:  # same_value
                register, at = uleb(code, at)
                if register == _FRAME:
                    self.rule, self.slot = _SAME, 0
                else:
                    self.lost(register)
            elif op == 0x09:  # register
                register, at = uleb(code, at)
                _, at = uleb(code, at)
                self.lost(register)
            elif op == 0x12:  # def_cfa_sf
                self.register, at = uleb(code, at)
                value, at = sleb(code, at)
                self.offset = value * self.align
            elif op == 0x13:  # def_cfa_offset_sf
                value, at = sleb(code, at)
                self.offset = value * self.align
            elif op == 0x0F:  # def_cfa_expression
                length, at = uleb(code, at)
                self.register, self.expression = -1, expression_info(code[at : at + length])
                at += length
            elif op in (0x10, 0x16):  # expression, val_expression
                register, at = uleb(code, at)
                length, at = uleb(code, at)
                at += length
                self.lost(register)
            elif op in (0x14, 0x15):  # val_offset, val_offset_sf
                register, at = uleb(code, at)
                _, at = uleb(code, at)
                self.lost(register)
            elif op == 0x2E:  # GNU_args_size
                _, at = uleb(code, at)
            elif op == 0x2F:  # GNU_negative_offset_extended
                register, at = uleb(code, at)
                value, at = uleb(code, at)
                self.saved(register, -value)
            else:  # set_loc needs addresses, the others are of other machines
                raise Malformed

    def advance(self, delta: int, in_cie: bool) -> None:
        """End the current row."""
        if in_cie:
            raise Malformed
        self.emit()
        self.location += delta * self.code_align
        if self.location > _FARTHEST:
            raise Malformed

    def saved(self, register: int, factored: int) -> None:
        """Note that a register is saved at CFA + factored * data alignment."""
        offset = factored * self.align
        if register == _FRAME:
            if offset & 7 or not -0xFF <= offset >> 3 <= 0:
                self.rule, self.slot = _UNKNOWN, 0
            else:
                self.rule, self.slot = _SAVED, -offset >> 3
        elif register == _RETURN:
            self.ret = _RETURN_SAVED if offset == -_PUSHED else _RETURN_LOST

    def lost(self, register: int, *, undefined: bool = False) -> None:
        """Note that no rule of ours finds a register."""
        if register == _FRAME:
            self.rule, self.slot = _UNKNOWN, 0
        elif register == _RETURN:
            self.ret = _RETURN_UNDEFINED if undefined else _RETURN_LOST

    def back_to_initial(self, register: int) -> None:
        """Give a register the rule of the CIE."""
        if register == _FRAME:
            self.rule, self.slot = self.initial.rule, self.initial.slot
        elif register == _RETURN:
            self.ret = self.initial.ret


def expression_info(code: bytes) -> int:
    """Return kind and n of a CFA expression as bits of ``info``, 0 if they cannot say it."""
    if code == _REGISTERS.plt_expression:
        return 3
    if len(code) >= 3 and code[0] in (_BREG_FRAME, _BREG_STACK):
        offset, at = sleb(code, 1)
        form = _LOADS.get((code[0], code[at:]))
        if form is not None and not offset & 7 and -(1 << 21) <= offset < 1 << 21:
            return form | (offset >> 3 & 0x7FFFF) << 13
    return 0
