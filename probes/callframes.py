"""Call frame information: the entries of .eh_frame and .debug_frame, and the rows their programs describe.

Speed matters (35,000 programs in a database server), so headers are taken apart by one ``struct`` call and a
program is run once for each of its distinct texts. DWARF 5, section 6.4.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from .image import PT_GNU_EH_FRAME, Image

MAX_ROWS = 1 << 16
"""Rows of one program; real ones have a few thousand at most."""
_RBP, _RSP, _RETURN = 6, 7, 16
_SAME, _SAVED, _UNKNOWN = 0, 1, 2
_RETURN_SAVED, _RETURN_LOST, _RETURN_UNDEFINED = 0, 1, 2
_SIGNAL, _END = 7, 6

# breg7 8, breg16 0, lit15, and, lit11, ge, lit3, shl, plus: what ld writes for lazy PLT stubs
_PLT_EXPRESSION = bytes((0x77, 8, 0x80, 0, 0x3F, 0x1A, 0x3B, 0x2A, 0x33, 0x24, 0x22))
_DEREF, _BREG_RBP, _BREG_RSP = 0x06, 0x76, 0x77

_ENTRY = struct.Struct("<IIiI")
_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")


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


class Entry(NamedTuple):
    """A range of addresses and the program that describes it."""

    cie: Cie
    start: int
    size: int
    program: bytes


class Program(NamedTuple):
    """Rows of a program: distances from the range's start, strictly ascending from 0, and their ``info``."""

    location: list[int]
    info: list[int]


class _Malformed(Exception):
    """The entry cannot be read; it is left out."""


def read_entries(image: Image) -> Iterator[Entry]:
    """Yield the ranges of .eh_frame, then those of .debug_frame."""
    section = image.section(".eh_frame")
    if section is not None:
        yield from _entries(image.content(section), section.address, debug=False)
    else:
        yield from _entries_by_header(image)
    section = image.section(".debug_frame")
    if section is not None:
        yield from _entries(image.content(section), 0, debug=True)


def _entries_by_header(image: Image) -> Iterator[Entry]:
    """Find .eh_frame without section headers: the segment .eh_frame_hdr points at it."""
    for header in image.program[image.program["type"] == PT_GNU_EH_FRAME]:
        content, address = image.read(int(header["offset"]), 12), int(header["address"])
        if len(content) < 8 or content[1] != 0x1B:
            continue
        address += 4 + struct.unpack_from("<i", content, 4)[0]
        offset = image.file_offset(address)
        if offset is None:
            continue
        end = max(
            each.offset + each.file_size
            for each in image.segments
            if each.offset <= offset < each.offset + each.file_size
        )
        yield from _entries(image.read(offset, end - offset), address, debug=False, terminated=True)


def _entries(data: bytes, address: int, *, debug: bool, terminated: bool = False) -> Iterator[Entry]:
    cies: dict[int, Cie | None] = {}
    end_of_data = len(data)
    position = 0
    while position + 16 <= end_of_data:
        length, link, distance, size = _ENTRY.unpack_from(data, position)
        body = position + 4
        if length == 0:  # a terminator; files linked with -r have more behind it
            if terminated:
                return
            position += 4
            continue
        wide = length == 0xFFFFFFFF
        if wide:
            length, body = _U64.unpack_from(data, position + 4)[0], position + 12
        end = body + length
        if end > end_of_data:
            return
        here, position = position, end
        width = 8 if wide and debug else 4
        if wide:
            if body + 24 > end:
                continue
            link = (_U64 if debug else _U32).unpack_from(data, body)[0]
        if link == ((1 << 8 * width) - 1 if debug else 0):
            continue  # a CIE: read when a range refers to it
        where = link if debug else body - link
        if where not in cies:
            cies[where] = _cie(data, where, debug=debug)
        cie = cies[where]
        if cie is None:
            continue
        at = body + width
        try:
            if cie.encoding == 0x1B and not wide:
                if here + 16 > end:
                    continue
                start, at = address + at + distance, at + 8
            else:
                start, at = _pointer(data, at, cie.encoding, address + at)
                size, at = _pointer(data, at, cie.encoding & 0x0F, 0)
            if cie.augmented:
                skip, at = _uleb(data, at)
                at += skip
        except (_Malformed, IndexError, struct.error):
            continue
        if size > 0:
            yield Entry(cie, start & 0xFFFFFFFFFFFFFFFF, size & 0xFFFFFFFFFFFFFFFF, data[at:end])


def _cie(data: bytes, position: int, *, debug: bool) -> Cie | None:
    try:
        return _read_cie(data, position, debug=debug)
    except (_Malformed, IndexError, struct.error):
        return None


def _read_cie(data: bytes, position: int, *, debug: bool) -> Cie:
    if position < 0:
        raise _Malformed
    length, at = _U32.unpack_from(data, position)[0], position + 4
    width = 4
    if length == 0xFFFFFFFF:
        length, at = _U64.unpack_from(data, at)[0], at + 8
        width = 8 if debug else 4
    end = at + length
    marker = int.from_bytes(data[at : at + width], "little")
    if end > len(data) or marker != ((1 << 8 * width) - 1 if debug else 0):
        raise _Malformed
    at += width
    version = data[at]
    stop = data.index(b"\0", at + 1, end) if b"\0" in data[at + 1 : end] else -1
    if version not in (1, 3, 4) or stop < 0:
        raise _Malformed
    augmentation, at = data[at + 1 : stop], stop + 1
    if version == 4:
        at += 2  # sizes of addresses and segments
    code_align, at = _uleb(data, at)
    data_align, at = _sleb(data, at)
    register, at = (data[at], at + 1) if version == 1 else _uleb(data, at)
    if register != _RETURN or (augmentation and augmentation[:1] != b"z"):
        raise _Malformed
    encoding, personality = 0, False
    if augmentation:
        skip, at = _uleb(data, at)
        body, at = at, at + skip
        for letter in augmentation[1:]:
            if letter == ord("R"):
                encoding, body = data[body], body + 1
            elif letter == ord("L"):
                body += 1
            elif letter == ord("P"):
                personality = True
                body = _pointer(data, body + 1, data[body], body + 1)[1]
            elif letter not in b"SB":
                raise _Malformed
    return Cie(
        code_align=code_align,
        data_align=data_align,
        encoding=encoding,
        augmented=bool(augmentation),
        signal=b"S" in augmentation,
        personality=personality,
        initial=data[at:end],
    )


def _pointer(data: bytes, at: int, encoding: int, here: int) -> tuple[int, int]:
    """Read an encoded pointer that stands at address ``here``; only absolute and pc-relative ones."""
    base = {0x00: 0, 0x10: here}.get(encoding & 0x70)
    if base is None:
        raise _Malformed
    form = encoding & 0x0F
    if form in (0x01, 0x09):
        value, at = (_uleb if form == 0x01 else _sleb)(data, at)
        return base + value, at
    width = {0: 8, 2: 2, 3: 4, 4: 8, 0xA: 2, 0xB: 4, 0xC: 8}.get(form)
    if width is None or at + width > len(data):
        raise _Malformed
    return base + int.from_bytes(data[at : at + width], "little", signed=form >= 8), at + width


def _uleb(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    at += 1
    if byte < 0x80:
        return byte, at
    value, shift = byte & 0x7F, 7
    while byte >= 0x80:
        if shift > 63:
            raise _Malformed
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
    return value, at


def _sleb(data: bytes, at: int) -> tuple[int, int]:
    value, after = _uleb(data, at)
    bits = 7 * (after - at)
    return value - (1 << bits) if value >> (bits - 1) else value, after


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
    except (_Malformed, IndexError, struct.error):
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
                raise _Malformed
            self.locations.append(self.location)
            self.info.append(info)

    def packed(self) -> int:
        """Return the current row's info."""
        if self.ret:
            return _END if self.ret == _RETURN_UNDEFINED else 0
        if self.register == _RSP:
            kind = 1
        elif self.register == _RBP:
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

    def run(self, code: bytes, *, in_cie: bool) -> None:  # noqa: PLR0912, PLR0915 (an instruction set is long)
        """Run instructions."""
        at, end = 0, len(code)
        while at < end:
            op = code[at]
            at += 1
            high = op & 0xC0
            if high == 0x40:  # advance_loc
                self.advance(op & 0x3F, in_cie)
            elif high == 0x80:  # offset
                value, at = _uleb(code, at)
                self.saved(op & 0x3F, value)
            elif high == 0xC0:  # restore
                self.back_to_initial(op & 0x3F)
            elif op == 0x0E:  # def_cfa_offset
                self.offset, at = _uleb(code, at)
            elif op == 0x0C:  # def_cfa
                self.register, at = _uleb(code, at)
                self.offset, at = _uleb(code, at)
            elif op == 0x0D:  # def_cfa_register
                self.register, at = _uleb(code, at)
            elif op == 0x0A:  # remember_state
                if len(self.stack) > 64:
                    raise _Malformed
                self.stack.append(self.state())
            elif op == 0x0B:  # restore_state
                if not self.stack:
                    raise _Malformed
                self.restore(self.stack.pop())
            elif op == 0x00:  # nop
                pass
            elif op in (0x02, 0x03, 0x04):  # advance_loc1, 2, 4
                width = 1 << op - 2
                self.advance(int.from_bytes(code[at : at + width], "little"), in_cie)
                at += width
            elif op == 0x05:  # offset_extended
                register, at = _uleb(code, at)
                value, at = _uleb(code, at)
                self.saved(register, value)
            elif op == 0x11:  # offset_extended_sf
                register, at = _uleb(code, at)
                value, at = _sleb(code, at)
                self.saved(register, value)
            elif op == 0x06:  # restore_extended
                register, at = _uleb(code, at)
                self.back_to_initial(register)
            elif op == 0x07:  # undefined
                register, at = _uleb(code, at)
                self.lost(register, undefined=True)
            elif op == 0x08:  # same_value
                register, at = _uleb(code, at)
                if register == _RBP:
                    self.rule, self.slot = _SAME, 0
                else:
                    self.lost(register)
            elif op == 0x09:  # register
                register, at = _uleb(code, at)
                _, at = _uleb(code, at)
                self.lost(register)
            elif op == 0x12:  # def_cfa_sf
                self.register, at = _uleb(code, at)
                value, at = _sleb(code, at)
                self.offset = value * self.align
            elif op == 0x13:  # def_cfa_offset_sf
                value, at = _sleb(code, at)
                self.offset = value * self.align
            elif op == 0x0F:  # def_cfa_expression
                length, at = _uleb(code, at)
                self.register, self.expression = -1, expression_info(code[at : at + length])
                at += length
            elif op in (0x10, 0x16):  # expression, val_expression
                register, at = _uleb(code, at)
                length, at = _uleb(code, at)
                at += length
                self.lost(register)
            elif op in (0x14, 0x15):  # val_offset, val_offset_sf
                register, at = _uleb(code, at)
                _, at = _uleb(code, at)
                self.lost(register)
            elif op == 0x2E:  # GNU_args_size
                _, at = _uleb(code, at)
            elif op == 0x2F:  # GNU_negative_offset_extended
                register, at = _uleb(code, at)
                value, at = _uleb(code, at)
                self.saved(register, -value)
            else:  # set_loc needs addresses, the others are of other machines
                raise _Malformed

    def advance(self, delta: int, in_cie: bool) -> None:
        """End the current row."""
        if in_cie:
            raise _Malformed
        self.emit()
        self.location += delta * self.code_align

    def saved(self, register: int, factored: int) -> None:
        """Note that a register is saved at CFA + factored * data alignment."""
        offset = factored * self.align
        if register == _RBP:
            if offset & 7 or not -0xFF <= offset >> 3 <= 0:
                self.rule, self.slot = _UNKNOWN, 0
            else:
                self.rule, self.slot = _SAVED, -offset >> 3
        elif register == _RETURN:
            self.ret = _RETURN_SAVED if offset == -8 else _RETURN_LOST

    def lost(self, register: int, *, undefined: bool = False) -> None:
        """Note that a register cannot be had by a rule of ours."""
        if register == _RBP:
            self.rule, self.slot = _UNKNOWN, 0
        elif register == _RETURN:
            self.ret = _RETURN_UNDEFINED if undefined else _RETURN_LOST

    def back_to_initial(self, register: int) -> None:
        """Give a register the rule of the CIE."""
        if register == _RBP:
            self.rule, self.slot = self.initial.rule, self.initial.slot
        elif register == _RETURN:
            self.ret = self.initial.ret


def expression_info(code: bytes) -> int:
    """Return kind and n of a CFA expression as bits of ``info``, 0 if they cannot say it."""
    if code == _PLT_EXPRESSION:
        return 3
    if len(code) >= 3 and code[0] in (_BREG_RBP, _BREG_RSP):
        offset, at = _sleb(code, 1)
        if code[at:] == bytes((_DEREF,)) and not offset & 7 and -(1 << 21) <= offset < 1 << 21:
            return (4 if code[0] == _BREG_RBP else 5) | (offset >> 3 & 0x7FFFF) << 13
    return 0
