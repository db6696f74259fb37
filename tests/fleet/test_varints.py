"""Numbers come back, or are a ValueError."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmine.fleet.varints import (
    decode_numbers,
    decode_parts,
    encode_numbers,
    encode_parts,
    has_twice,
    signed,
    spans,
    unsigned,
)


def _leb128(number: int) -> bytes:
    """Return a number as DWARF's standard writes it."""
    octets = []
    while True:
        octets.append(number & 0x7F)
        number >>= 7
        if not number:
            return bytes([*(each | 0x80 for each in octets[:-1]), octets[-1]])


@given(st.lists(st.integers(0, 2**64 - 1)))
def test_numbers_come_back(numbers: list[int]) -> None:
    """LEB128 of any 64-bit numbers, as another implementation writes it."""
    data = encode_numbers(np.array(numbers, np.uint64))
    assert data == b"".join(map(_leb128, numbers))
    assert decode_numbers(data).tolist() == numbers


@given(st.lists(st.lists(st.integers(0, 2**64 - 1), max_size=4), max_size=6))
def test_parts_come_back(parts: list[list[int]]) -> None:
    """Each part has its own numbers, empty ones too."""
    sizes = np.array([len(each) for each in parts], np.int64)
    data = encode_parts(np.array([number for each in parts for number in each], np.uint64), sizes)
    numbers, found = decode_parts(data)
    assert found.tolist() == sizes.tolist()
    assert numbers.tolist() == [number for each in parts for number in each]


@given(st.lists(st.binary(max_size=14), max_size=4))
def test_any_bytes_are_numbers_or_an_error(parts: list[bytes]) -> None:
    """As a reader octet by octet says."""
    expected = []
    for data in parts:
        number, shift = 0, 0
        for octet in data:
            number |= (octet & 0x7F) << shift
            shift += 7
            if octet < 0x80:
                expected.append(number if shift <= 70 and number < 2**64 else None)
                number, shift = 0, 0
        if shift:
            expected.append(None)
    if None in expected:
        with pytest.raises(ValueError, match="number"):
            decode_parts(parts)
    else:
        assert decode_parts(parts)[0].tolist() == expected


@pytest.mark.parametrize("data", [b"\x80", b"\xff" * 10, b"\xff" * 9 + b"\x02", b"\x80" * 11 + b"\x00"])
def test_what_is_no_number_is_an_error(data: bytes) -> None:
    """Cut short, or more than 64 bits; also where a part that is whole follows."""
    with pytest.raises(ValueError, match="number"):
        decode_parts([b"\x05", data, b"\x05"])


@given(st.lists(st.integers(-(2**62), 2**62)))
def test_signs_come_back(numbers: list[int]) -> None:
    """Numbers with a sign, small ones as small numbers."""
    coded = signed(np.array(numbers, np.int64))
    assert unsigned(coded).tolist() == numbers
    assert all(code <= 2 * abs(number) for code, number in zip(coded.tolist(), numbers, strict=True))


def test_spans_are_runs() -> None:
    """One after the other, empty ones nowhere."""
    assert spans(np.array([7, 2, 5]), np.array([2, 0, 3])).tolist() == [7, 8, 5, 6, 7]


@given(st.lists(st.integers(-5, 5), max_size=6))
def test_what_is_there_twice(numbers: list[int]) -> None:
    """Wherever the two stand."""
    assert has_twice(np.array(numbers, np.int64)) == (len(set(numbers)) < len(numbers))
