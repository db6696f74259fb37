"""Numbers as LEB128, many at once: the form of all that a push and a row hold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_GROUPS = 10  # of 7 bits in the longest number
Numbers = NDArray[np.uint64]
Places = NDArray[np.int64]


def encode_numbers(numbers: Numbers) -> bytes:
    """Return numbers as LEB128."""
    return encode_parts(numbers, np.array([len(numbers)], np.int64))[0]


def encode_parts(numbers: Numbers, sizes: Places) -> list[bytes]:
    """Return numbers as LEB128, cut into parts of so many numbers each."""
    groups = 1 + max(0, int(numbers.max(initial=0)).bit_length() - 1) // 7
    shifts = np.arange(groups, dtype=np.uint64) * np.uint64(7)
    parts = numbers[:, None] >> shifts
    used = parts > 0
    used[:, 0] = True
    octets = (parts & np.uint64(0x7F)).astype(np.uint8)
    octets[:, :-1] |= used[:, 1:].astype(np.uint8) << np.uint8(7)
    data = octets[used].tobytes()
    lengths = np.concatenate(([0], np.cumsum(used.sum(axis=1))))
    last = np.cumsum(sizes)
    starts, ends = lengths[last - sizes].tolist(), lengths[last].tolist()
    return [data[start:end] for start, end in zip(starts, ends, strict=True)]


def decode_numbers(data: bytes) -> Numbers:
    """Return the numbers of ``encode_numbers``; ValueError for bytes that are none."""
    numbers, _ = decode_parts([data])
    return numbers


def decode_parts(parts: list[bytes]) -> tuple[Numbers, Places]:
    """Return the numbers of some byte strings, and how many each of them holds.

    Raises
    ------
    ValueError
        If one is cut short, or a number has more than 64 bits.
    """
    octets = np.frombuffer(b"".join(parts), np.uint8)
    ends = np.cumsum([len(each) for each in parts], dtype=np.int64) if parts else np.empty(0, np.int64)
    if not len(octets):
        return np.empty(0, np.uint64), np.zeros(len(parts), np.int64)
    last = np.flatnonzero(octets < 0x80)
    before = np.searchsorted(last, ends)  # numbers that end before the end of each part
    filled = np.diff(ends, prepend=0) > 0
    if np.any(octets[ends[filled] - 1] >= 0x80):
        raise ValueError("the last number is cut short")
    starts = np.concatenate(([0], last[:-1] + 1))
    lengths = last - starts + 1
    longest = int(lengths.max())
    if longest > _GROUPS or np.any(octets[last[lengths == _GROUPS]] > 1):
        raise ValueError("a number has more than 64 bits")
    numbers = (octets[starts] & np.uint8(0x7F)).astype(np.uint64)
    at = np.flatnonzero(lengths > 1)
    for group in range(1, longest):  # ever fewer numbers are so long
        more = (octets[starts[at] + group] & np.uint8(0x7F)).astype(np.uint64)
        numbers[at] |= more << np.uint64(7 * group)
        at = at[lengths[at] > group + 1]
    return numbers, np.diff(before, prepend=0)


def signed(numbers: Places) -> Numbers:
    """Return numbers with a sign as ones without: small ones stay small."""
    return ((numbers << 1) ^ (numbers >> 63)).astype(np.uint64)


def unsigned(numbers: Numbers) -> Places:
    """Return the numbers of ``signed``."""
    return (numbers >> np.uint64(1)).astype(np.int64) ^ -(numbers & np.uint64(1)).astype(np.int64)


def spans(starts: Places, lengths: Places) -> Places:
    """Return the places of several runs, one after the other."""
    offsets = np.cumsum(lengths) - lengths
    return np.repeat(starts - offsets, lengths) + np.arange(int(lengths.sum()), dtype=np.int64)
