"""Call rates as text."""

from __future__ import annotations

from typing import Any

import pytest

from specmine.analysis.wording.call_rate import call_rate


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"rate_per_second": 361.4}, "361"),
        ({"rate_per_second": 90_061.0, "rate_is_least": True}, ">90,061"),
        ({"rate_per_second": None}, ""),
        ({}, ""),
    ],
)
def test_a_rate_that_is_a_lower_bound_says_so(entry: dict[str, Any], expected: str) -> None:
    """What was counted, or more than that; nothing where no call was."""
    assert call_rate(entry) == expected
