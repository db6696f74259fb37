"""The dates of a specification come from a file: what is none is not known."""

from __future__ import annotations

from typing import Any

import pytest

from specmine.analysis.check.data_age import utc_ns_of


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        ("1970-01-01T00:00:01.500Z", 1_500_000_000),
        ("1970-01-01T02:00:00+02:00", 0),
        ("2026-11-22T10:00:00", None),
        ("0001-01-01T00:00:00+23:00", None),
        ("9999-12-31T23:59:59-23:00", None),
        ("yesterday", None),
        (None, None),
        (7, None),
        ([], None),
    ],
)
def test_what_is_no_date_is_not_known(moment: Any, expected: int | None) -> None:
    """Without its place in the world a time is none either."""
    assert utc_ns_of(moment) == expected
