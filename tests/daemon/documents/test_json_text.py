"""JSON shows no control character to a terminal, and loses none."""

from __future__ import annotations

import json
import unicodedata

import pytest

from specmine.daemon.documents.json_text import json_text


def test_control_characters_are_escaped_and_come_back() -> None:
    """C0 and C1 controls, directions of writing, half characters: none stands raw, all are read again."""
    document = {"name": "a\x1b[31m\x9b31m\u202eb\u2028\ud800\x7f\x85 c", "e\u2066": ["\u00e9\u4e2d"]}
    text = json_text(document)
    assert {unicodedata.category(each) for each in text.removesuffix("\n") if each != "\n"} & {
        "Cc",
        "Cf",
        "Cs",
    } == set()
    assert "\u00e9\u4e2d" in text
    assert json.loads(text.encode()) == document


def test_no_number_that_json_does_not_know() -> None:
    """A NaN is a fault of ours, not a reader's trouble."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_text({"a": float("nan")})
