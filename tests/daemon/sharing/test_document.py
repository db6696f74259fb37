"""What the fleet said is untrusted: whatever comes is read exactly, or refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmine.daemon.sharing.document import (
    MOST_DUTIES,
    BadOrders,
    Received,
    checked_duty,
    read_received,
    read_statement,
    received_text,
    statement_text,
)
from specmine.mining.borders.inference import Inference
from specmine.mining.fleet.duty import Duty, Purpose
from specmine.mining.fleet.statement import InheritedStatement
from specmine.model.observation import Kind

_STATED = InheritedStatement(
    function="ab+0x10", build_id="ab", learned=Inference(chain=8, stable=True, class_calls=(800,)), hosts=8,
    median_ns=5e4, calls=3000,
)  # fmt: skip
_DUTY = Duty(function="ab+0x10", purpose=Purpose.PANEL, calls=200, kind=Kind.PATH)
_RECEIVED = Received(boot_id="boot", told_ns=7, duties=(_DUTY,), left=("ab+0x20",), statements=(_STATED,), number=4)


def test_it_comes_back_as_it_was() -> None:
    """Both the whole and one statement."""
    again = read_received(received_text(_RECEIVED))
    assert (again.duties, again.left, again.number) == (_RECEIVED.duties, _RECEIVED.left, 4)
    assert received_text(again) == received_text(_RECEIVED)
    assert statement_text(read_statement(statement_text(_STATED))) == statement_text(_STATED)


_border = {
    "edge": 5, "duration_ns": 5e4, "cdf": 0.5, "found": 8, "of": 8, "regions": [],
    "evidence": None,
}  # fmt: skip
_WRONG: list[tuple[str, dict[str, Any]]] = [
    ("schema", {"schema": "specmine.received/2"}),
    ("too many duties", {"duties": [{"function": "a", "purpose": "panel", "calls": 1}] * (MOST_DUTIES + 1)}),
    ("purpose", {"duties": [{"function": "a", "purpose": "own", "calls": 1}]}),
    ("no call", {"duties": [{"function": "a", "purpose": "panel", "calls": 0}]}),
    ("too many calls", {"duties": [{"function": "a", "purpose": "panel", "calls": 10**9}]}),
    ("only counted", {"duties": [{"function": "a", "purpose": "panel", "calls": 1, "kind": "count"}]}),
    ("no function", {"duties": [{"function": "", "purpose": "panel", "calls": 1}]}),
    ("long key", {"left": ["x" * 600]}),
    ("time", {"told_ns": -1}),
    ("number", {"number": 1 << 70}),
    ("text", {"told_ns": "7"}),
    ("nobody", {"statements": [{**json.loads(statement_text(_STATED)), "hosts": 0}]}),
    ("no time", {"statements": [{**json.loads(statement_text(_STATED)), "median_ns": 0.0}]}),
    ("unstable", {"statements": [{**json.loads(statement_text(_STATED)), "learned": {}}]}),
    ("classes", {"statements": [{**json.loads(statement_text(_STATED)), "result": {
        "borders": [7, 5], "bias_ns": 0.0, "class_calls": [1, 2, 3], "behaviours": [], "paths": []}}]}),
]  # fmt: skip


@pytest.mark.parametrize(("what", "change"), _WRONG, ids=[what for what, _ in _WRONG])
def test_what_none_may_say_is_refused(what: str, change: dict[str, Any]) -> None:
    """As a whole, so nothing of it counts."""
    text = json.dumps(json.loads(received_text(_RECEIVED)) | change)
    with pytest.raises(BadOrders):
        read_received(text)


@given(st.binary(max_size=300), st.integers(0, 10**6))
def test_any_bytes_are_read_or_refused(noise: bytes, place: int) -> None:
    """No other exception."""
    whole = received_text(_RECEIVED).encode()
    at = place % len(whole)
    for each in (noise, whole[:at] + noise + whole[at + len(noise) :], whole[:at]):
        try:
            read_received(each)
        except BadOrders:
            continue


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 5_000, "NaN", "null", "[]", "", '{"schema": NaN}'])
def test_hostile_json_is_refused(text: str) -> None:
    """Deep, no object, no number."""
    with pytest.raises(BadOrders):
        read_received(text)


def test_a_duty_is_checked_alone() -> None:
    """The forwarder checks each before it writes them."""
    assert checked_duty({"function": "ab+0x10", "purpose": "scout", "calls": 5}).kind is Kind.TIME
    wrongs: list[object] = [{}, [], {"function": 1}, {"function": "a", "purpose": "scout", "calls": True}]
    for wrong in wrongs:
        with pytest.raises(BadOrders):
            checked_duty(wrong)
