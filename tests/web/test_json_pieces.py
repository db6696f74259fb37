"""Read in pieces, JSON is what it is read at once."""

from __future__ import annotations

import json
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmine.web.json_pieces import loads

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=25,
)


@given(VALUES, st.sampled_from([None, 1, 3]), st.booleans())
def test_values_are_the_same(value: Any, indent: int | None, ascii_only: bool) -> None:
    """Whatever the nesting, the spaces and the letters."""
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert loads(text, large=0) == json.loads(text)
    assert loads(text.encode("utf-8", "surrogatepass"), large=0) == json.loads(text)


@given(st.text(alphabet='{}[]",:1 tru\\e' + string.whitespace, max_size=12))
def test_what_is_no_json_is_refused_alike(text: str) -> None:
    """Both read a text, or both refuse it."""
    try:
        known = json.loads(text)
    except ValueError:
        with pytest.raises(ValueError):
            loads(text, large=0)
    else:
        assert loads(text, large=0) == known


def test_small_texts_are_read_at_once() -> None:
    """The size decides which parser reads; both agree at the limit."""
    value = {"functions": [{"name": "f" * 100, "at": number} for number in range(2000)], "end": None}
    text = json.dumps(value)
    assert len(text) > 1 << 17
    assert loads(text) == loads(text, large=len(text) + 1) == value
