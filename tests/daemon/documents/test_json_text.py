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


def test_floats_have_six_digits_and_shares_nine() -> None:
    """The shares of a dozen classes add up to 1; whole numbers keep all digits."""
    document = {"at": 1 / 3, "each": [2e-9 / 3, (-1e6 / 7,)], "calls": 123456789, "classes": [{"share": 1 / 7}] * 7}
    assert json.loads(json_text(document)) == {
        "at": 0.333333, "each": [6.66667e-10, [-142857.0]], "calls": 123456789, "classes": [{"share": 0.142857143}] * 7,
    }  # fmt: skip


def test_what_was_written_is_written_alike_again() -> None:
    """A document that was read and is written has the same bytes."""
    text = json_text({"shares": [1 / 7] * 7, "seconds": 1e-6 / 3, "interval": [1 / 3, None]})
    assert json_text(json.loads(text)) == text


def test_no_number_that_json_does_not_know() -> None:
    """A NaN is a fault of ours, not a reader's trouble."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_text({"a": float("nan")})
