"""What a host sends is a push or a BadPush, whatever its bytes are."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmine.fleet.checked_values import BadPush
from specmine.fleet.codec import deflated, inflated
from specmine.fleet.folding import FoldedRow
from specmine.fleet.push import HEAD, Push, encode_push
from specmine.fleet.received import decode_push
from specmine.model.function import Function
from specmine.store import Document
from tests.support.stored import FUNCTION, HOST, LIFETIME, observation

_ROWS = tuple(FoldedRow(observation=observation(number, names=("b", "?")), windows=1) for number in range(20))
_BYTES = encode_push(Push(records=(HOST, LIFETIME, FUNCTION), rows=_ROWS))


def _changed(change: Callable[[dict[str, Any]], None]) -> bytes:
    """Return a good push with another head."""
    raw = inflated(_BYTES)
    (length,) = HEAD.unpack_from(raw)
    head = json.loads(raw[HEAD.size : HEAD.size + length])
    change(head)
    text = json.dumps(head).encode()
    return deflated(HEAD.pack(len(text)) + text + raw[HEAD.size + length :])


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


_LIES: dict[str, Callable[[dict[str, Any]], None]] = {
    "a function that is not listed": lambda head: head["rows"]["function"].__setitem__(3, 1),
    "a lifetime that is not listed": lambda head: head["rows"]["lifetime"].__setitem__(3, -1),
    "an unknown kind": lambda head: head["rows"]["kind"].__setitem__(0, "time'"),
    "more timed than counted": lambda head: head["rows"]["calls"].__setitem__(5, 1),
    "a window that ends before it starts": lambda head: head["rows"]["end_ns"].__setitem__(5, 1),
    "more calls than any window holds": lambda head: head["rows"]["calls"].__setitem__(5, 1 << 41),
    "half a call": lambda head: head["rows"]["calls"].__setitem__(5, 240.5),
    "a number beyond 64 bits": lambda head: head["rows"]["calls"].__setitem__(5, 1 << 70),
    "a field too short": lambda head: head["rows"]["inner"].pop(),
    "a bias beyond all durations": lambda head: head["rows"]["bias_ns"].__setitem__(5, 1e30),
    "no bias": lambda head: head["rows"]["bias_ns"].__setitem__(5, None),
    "no histogram": lambda head: head["rows"]["counts"].__setitem__(5, 0),
    "bytes of another length": lambda head: head["rows"]["counts"].__setitem__(5, 3),
    "a negative length": lambda head: head["rows"]["counts"].__setitem__(5, -3),
    "fewer call paths than are used": lambda head: head["paths"].__setitem__(2, 1),
    "a frame missing": lambda head: head["paths"].__setitem__(0, 2),
    "names cut short": lambda head: head["paths"].__setitem__(1, head["paths"][1] - 1),
    "no window": lambda head: head["rows"]["windows"].__setitem__(5, 0),
    "an empty name": lambda head: head["functions"].__setitem__(0, ""),
}


@pytest.mark.parametrize("lie", _LIES)
def test_a_lie_in_the_head_is_a_bad_push(lie: str) -> None:
    """Fields of rows are checked together, and each of them."""
    assert len(decode_push(_changed(lambda head: None)).rows) == 20
    with pytest.raises(BadPush):
        decode_push(_changed(_LIES[lie]))
