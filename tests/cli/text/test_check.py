"""The result of a check as text."""

from __future__ import annotations

from typing import Any

from specmine.cli.text.check import check_text


def of(evidence: dict[str, Any], verdict: str = "unknown", **more: Any) -> dict[str, Any]:
    """Return the result of one formula."""
    formula = {"name": None, "text": "levels(f) ~ [p50 1 us in [0 s, 2 us]]", "verdict": verdict, "evidence": evidence}
    return {"formulas": [formula], "counts": {"holds": 0, "violated": 0, "unknown": 1}, **more}


def test_a_quantile_that_is_not_judged_says_why() -> None:
    """Once, where the reason stands on the line of the quantile."""
    part = {"name": "p50", "calls": 274_199, "verdict": "unknown", "reason": "its normal range begins at 0"}
    text = check_text(of({"reason": "its normal range begins at 0", "quantiles": [part]}), 80)
    assert text.splitlines()[:2] == ["UNKNOWN   levels(f)", " " * 12 + "median: its normal range begins at 0"]
    assert "too few" not in text and text.count("begins at 0") == 1
