"""A push is what was put in, or BadPush."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmine.fleet.folding import FoldedRow
from specmine.fleet.push import BadPush, Push, boots_of, decode_push, encode_push, pushes_of
from specmine.model.function import Function
from specmine.store import Document
from tests.support.stored import FUNCTION, HOST, LIFETIME, observation

_ROWS = tuple(FoldedRow(observation=observation(number, names=("b", "?")), windows=1) for number in range(20))
_PUSH = Push(records=(HOST, LIFETIME, FUNCTION), rows=_ROWS)
_BYTES = encode_push(_PUSH)


def test_a_push_comes_back() -> None:
    """Records, rows, histograms, paths and times."""
    back = decode_push(_BYTES)
    assert back.records == _PUSH.records
    for one, other in zip(back.rows, _ROWS, strict=True):
        left, right = one.observation, other.observation
        assert (left.histogram, left.calls, left.bias_ns, left.end_ns) == (
            right.histogram, right.calls, right.bias_ns, right.end_ns,
        )  # fmt: skip
        assert [part.path for part in left.paths] == [part.path for part in right.paths]
    assert boots_of(back) == {"boot"}


@given(st.integers(0, len(_BYTES) - 1), st.integers(1, 255))
def test_a_damaged_push_is_a_bad_push(at: int, change: int) -> None:
    """One byte changed anywhere; checksums find it nearly always, and nothing else is raised."""
    damaged = _BYTES[:at] + bytes([_BYTES[at] ^ change]) + _BYTES[at + 1 :]
    try:
        decode_push(damaged)
    except BadPush:
        return


@given(st.binary(max_size=300))
def test_any_bytes_are_a_bad_push(data: bytes) -> None:
    """Also where they inflate to something."""
    for raw in (data, b"\0" + data, b"\1" + zlib.compress(data)):
        with pytest.raises(BadPush):
            decode_push(raw)


def test_a_bomb_is_refused() -> None:
    """What inflates to more than 8 MiB is not inflated."""
    with pytest.raises(BadPush, match="cut short or too many"):
        decode_push(b"\1" + zlib.compress(bytes(64 << 20), 9))


@pytest.mark.parametrize("name", ["\0", "x" * 600, "\ud800", ""])
def test_names_that_no_database_takes_are_refused(name: str) -> None:
    """Zero bytes, halves of characters, endless and empty keys."""
    record = Function(build_id=name, offset=1, name="f", module="m") if name else Document(name="", document={})
    with pytest.raises(BadPush):
        decode_push(encode_push(Push(records=(record,))))


def test_a_large_push_becomes_several() -> None:
    """Each within the limit, together the same."""
    parts = [decode_push(each) for each in pushes_of(_PUSH, most=2000)]
    assert len(parts) > 3
    assert sum(len(each.rows) for each in parts) == len(_ROWS)
    assert sum(len(each.records) for each in parts) == 3


def test_what_does_not_fit_alone_is_counted_as_lost() -> None:
    """A single record beyond the limit is given up, and the push says so."""
    document = Document(
        name="specification", document={"functions": [{"noise": str(number)} for number in range(5000)]}
    )
    (part,) = (decode_push(each) for each in pushes_of(Push(records=(document,)), most=2000))
    assert (part.lost, part.records) == (1, ())
