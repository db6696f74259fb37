"""Lines cut at their last commas, many at once: where each field lies, its number, its hash.

Everything works on positions in one block of bytes, so no line becomes an object of its own; that is several
times faster than a parser that looks at one line after the other.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
_PADDING = 8
_PRIME = np.uint64(0x9E3779B97F4A7C15)
_MASKS = np.array([(1 << 8 * size) - 1 for size in range(9)], dtype=np.uint64)
_MOST_DIGITS = 19


@dataclass(frozen=True, slots=True, eq=False)
class Fields:
    """One field of every line."""

    begin: Numbers
    end: Numbers
    """First byte behind it."""


class Lines:
    """The lines of a block that are not empty, cut at their last commas."""

    def __init__(self, block: bytes, *, named: bool, tail: int) -> None:
        """Cut.

        Parameters
        ----------
        block : bytes
            Whole lines, ended by line feeds alone.
        named : bool
            True if there is text before the last ``tail`` fields, which may contain commas.
        tail : int
            Number of fields to cut off, at least 1.

        Raises
        ------
        ValueError
            If a line has fewer fields, or, unless ``named``, more.
        """
        if not block.endswith(b"\n"):
            block += b"\n"
        self._block = block + bytes(_PADDING)
        data = np.frombuffer(block, dtype=np.uint8)
        ends = np.flatnonzero(data == ord("\n"))
        begins = np.concatenate(([0], ends[:-1] + 1))
        filled = ends > begins
        begins, ends = begins[filled], ends[filled]
        commas = np.flatnonzero(data == ord(","))
        before = np.searchsorted(commas, ends)
        inside = before - np.searchsorted(commas, begins)
        cut = tail if named else tail - 1
        if inside.min(initial=cut) < cut or (not named and inside.max(initial=cut) > cut):
            raise ValueError("another number of fields")
        cuts = [commas[before - back] for back in range(cut, 0, -1)]
        after = [cut + 1 for cut in cuts]
        self.head = Fields(begins, cuts[0] if named else begins)
        """The text before the fields that are cut off."""
        edges = zip(after if named else [begins, *after], [*cuts[1:], ends] if named else [*cuts, ends], strict=True)
        self.tail = [Fields(begin, end) for begin, end in edges]
        self._data = np.frombuffer(self._block, dtype=np.uint8)

    def __len__(self) -> int:
        """Return the number of lines."""
        return len(self.head.begin)

    def text(self, fields: Fields, line: int) -> bytes:
        """Return a field of one line."""
        return self._block[int(fields.begin[line]) : int(fields.end[line])]

    def has(self, fields: Fields, letter: bytes) -> bool:
        """Return whether any of these fields contains a byte."""
        at = np.flatnonzero(self._data == ord(letter))
        return bool((np.searchsorted(at, fields.end) > np.searchsorted(at, fields.begin)).any())

    def whole_numbers(self, fields: Fields) -> Numbers | None:
        """Return the numbers that fields of digits alone write; None if others are among them, or above 2**63."""
        length = fields.end - fields.begin
        if length.min(initial=1) < 1 or length.max(initial=1) > _MOST_DIGITS:
            return None
        value = np.zeros(len(length), dtype=np.int64)
        bad = np.zeros(len(length), dtype=bool)
        least = int(length.min(initial=_MOST_DIGITS))
        scale = 1
        for place in range(int(length.max(initial=0))):
            digit = self._data[np.maximum(fields.end - 1 - place, 0)] - np.uint8(ord("0"))
            if place >= least:
                digit[length <= place] = 0
            bad |= digit > 9
            value += digit.astype(np.int64) * scale
            scale *= 10
        return None if bad.any() or value.min(initial=0) < 0 else value

    def decimals(self, fields: Fields) -> NDArray[np.float64] | None:
        """Return the numbers of fields of digits with or without a point; None if others are among them."""
        whole = self.whole_numbers(fields)
        if whole is not None:
            return whole.astype(np.float64)
        steps = np.zeros(len(self._data) + 1, dtype=np.int8)
        steps[fields.begin] += 1
        steps[fields.end + 1] -= 1  # with the comma or line feed behind it
        joined = self._data[np.cumsum(steps[:-1], dtype=np.int8) > 0].tobytes().replace(b"\n", b",")[:-1]
        if joined.translate(None, b"0123456789.,") or not (fields.end > fields.begin).all():
            return None
        return _parsed(joined, len(self))

    def hashes(self, fields: Fields) -> NDArray[np.uint64]:
        """Return a hash of 64 bits of each field."""
        words: NDArray[np.uint64] = np.ndarray((len(self._block) - 7,), np.dtype("<u8"), self._block, strides=(1,))
        length = fields.end - fields.begin
        found = length.astype(np.uint64) * _PRIME
        for place in range(0, int(length.max(initial=0)), 8):
            left = length - place
            there = left > 0
            word = words[np.minimum(fields.begin + place, len(words) - 1)] & _MASKS[np.clip(left, 0, 8)]
            mixed = (found ^ word) * _PRIME
            found = np.where(there, mixed ^ (mixed >> np.uint64(29)), found)
        return found


def _parsed(joined: bytes, number: int) -> NDArray[np.float64] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # what follows a number that is none is left out with a warning only
            values: NDArray[Any] = np.fromstring(joined.decode("ascii"), dtype=np.float64, sep=",")
    except (ValueError, DeprecationWarning):
        return None
    return values if len(values) == number else None
