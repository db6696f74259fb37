"""Numbers of variable length in DWARF data (DWARF 5, section 7.6)."""

from __future__ import annotations


class Malformed(Exception):
    """This entry, or the rest of this program, cannot be read."""


def uleb(data: bytes, at: int) -> tuple[int, int]:
    """Read an unsigned LEB128 number; return it and the place behind it. Raises Malformed, IndexError."""
    byte = data[at]
    at += 1
    if byte < 0x80:
        return byte, at
    value, shift = byte & 0x7F, 7
    while byte >= 0x80:
        if shift > 63:
            raise Malformed
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
    return value, at


def sleb(data: bytes, at: int) -> tuple[int, int]:
    """Read a signed LEB128 number; return it and the place behind it. Raises Malformed, IndexError."""
    value, after = uleb(data, at)
    bits = 7 * (after - at)
    return value - (1 << bits) if value >> (bits - 1) else value, after
