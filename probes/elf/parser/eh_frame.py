"""The entries of .eh_frame and .debug_frame: which program describes which range of addresses.

Speed matters (35,000 entries in a database server), so the usual form is taken apart by one ``struct`` call.
DWARF 5, section 6.4.1; Linux Standard Base, .eh_frame.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from specmine.probes.arch.machine import machine

from .cfa_program import Cie
from .image import PT_GNU_EH_FRAME, Image
from .leb128 import Malformed, sleb, uleb

_RETURN = machine().unwind.return_address
_ENTRY = struct.Struct("<IIiI")
_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")


class Entry(NamedTuple):
    """A range of addresses and the program that describes it."""

    cie: Cie
    start: int
    size: int
    program: bytes


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


def _entries(  # noqa: PLR0912 (one loop over a format with variants)
    data: bytes, address: int, *, debug: bool, terminated: bool = False
) -> Iterator[Entry]:
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
                skip, at = uleb(data, at)
                at += skip
        except (Malformed, IndexError, struct.error):
            continue
        if size > 0:
            yield Entry(cie, start & 0xFFFFFFFFFFFFFFFF, size & 0xFFFFFFFFFFFFFFFF, data[at:end])


def _cie(data: bytes, position: int, *, debug: bool) -> Cie | None:
    try:
        return _read_cie(data, position, debug=debug)
    except (Malformed, IndexError, struct.error):
        return None


def _read_cie(data: bytes, position: int, *, debug: bool) -> Cie:
    if position < 0:
        raise Malformed
    length, at = _U32.unpack_from(data, position)[0], position + 4
    width = 4
    if length == 0xFFFFFFFF:
        length, at = _U64.unpack_from(data, at)[0], at + 8
        width = 8 if debug else 4
    end = at + length
    marker = int.from_bytes(data[at : at + width], "little")
    if end > len(data) or marker != ((1 << 8 * width) - 1 if debug else 0):
        raise Malformed
    at += width
    version = data[at]
    stop = data.index(b"\0", at + 1, end) if b"\0" in data[at + 1 : end] else -1
    if version not in (1, 3, 4) or stop < 0:
        raise Malformed
    augmentation, at = data[at + 1 : stop], stop + 1
    if version == 4:
        at += 2  # sizes of addresses and segments
    code_align, at = uleb(data, at)
    data_align, at = sleb(data, at)
    register, at = (data[at], at + 1) if version == 1 else uleb(data, at)
    if register != _RETURN or (augmentation and augmentation[:1] != b"z"):
        raise Malformed
    encoding, personality = 0, False
    if augmentation:
        skip, at = uleb(data, at)
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
                raise Malformed
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
        raise Malformed
    form = encoding & 0x0F
    if form in (0x01, 0x09):
        value, at = (uleb if form == 0x01 else sleb)(data, at)
        return base + value, at
    width = {0: 8, 2: 2, 3: 4, 4: 8, 0xA: 2, 0xB: 4, 0xC: 8}.get(form)
    if width is None or at + width > len(data):
        raise Malformed
    return base + int.from_bytes(data[at : at + width], "little", signed=form >= 8), at + width
