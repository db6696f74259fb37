"""Numbers as LEB128, many at once: the form of all that a push and a row hold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_GROUPS = 10  # of 7 bits in the longest number
_JOINED = 4  # of them in 32 bits
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
    goes_on = octets >= 0x80
    last = np.flatnonzero(~goes_on)
    before = np.searchsorted(last, ends)  # numbers that end before the end of each part
    filled = np.diff(ends, prepend=0) > 0
    if np.any(goes_on[ends[filled] - 1]):
        raise ValueError("the last number is cut short")
    return _numbers(octets, goes_on, last), np.diff(before, prepend=0)


def _numbers(octets: NDArray[np.uint8], goes_on: NDArray[np.bool_], last: Places) -> Numbers:
    """Return the numbers that end at the places ``last``.

    Each octet is joined with those before it as if a number ended there: that needs no list of places.
    """
    if len(last) == len(octets):
        return octets.astype(np.uint64)
    low = octets & np.uint8(0x7F)
    joined = low.astype(np.uint32)
    reaches = goes_on[:-1]  # whether the number of an octet begins so many octets before it
    for group in range(1, _JOINED):
        joined[group:] = np.where(reaches, joined[group:] << np.uint32(7) | low[:-group], joined[group:])
        reaches = reaches[1:] & goes_on[: -group - 1]
        if not reaches.any():
            return joined[last].astype(np.uint64)
    numbers = joined[last].astype(np.uint64)
    at = np.flatnonzero(reaches[np.maximum(last - _JOINED, 0)] & (last >= _JOINED))
    group = _JOINED
    while len(at):  # ever fewer numbers are so long
        if group >= _GROUPS or (group == _GROUPS - 1 and np.any(octets[last[at]] > 1)):
            raise ValueError("a number has more than 64 bits")
        numbers[at] = numbers[at] << np.uint64(7) | low[last[at] - group]
        group += 1
        at = at[last[at] >= group]
        at = at[goes_on[last[at] - group]]
    return numbers


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


def has_twice(numbers: Places) -> bool:
    """Tell whether a number is there twice."""
    ordered = np.sort(numbers)
    return bool(np.any(ordered[1:] == ordered[:-1]))
