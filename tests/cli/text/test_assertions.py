"""Assertions as tables and lists."""

from __future__ import annotations

import pytest

from specmine.cli.text.assertions import assertion


@pytest.mark.parametrize("columns", [50, 80])
def test_many_classes_are_listed_under_each_other(columns: int) -> None:
    """A table that does not fit becomes a list in which no number is cut from its class."""
    uppers = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, None]
    entry = {
        "function": "f", "module": "m", "state": "explained", "calls": 600,
        "classes": [{"upper_seconds": upper, "share": 1 / 6} for upper in uppers],
        "behaviours": [{"expression": "`a b`->f and not c->f", "calls": 600, "shares": [1 / 6] * 6}],
    }  # fmt: skip
    text = "\n".join(assertion(entry, columns))
    assert max(map(len, text.split("\n"))) <= columns
    for name in ("<= 1.0 us", "<= 10 us", "<= 100 us", "<= 1.0 ms", "<= 10 ms", "> 10 ms"):
        assert f"17 % {name}" in text
