"""The result of a check as text."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from specmine.cli.text.check import check_text


def of(evidence: dict[str, Any]) -> dict[str, Any]:
    """Return the result of one formula."""
    formula = {
        "name": None,
        "text": "levels(f) ~ [p50 1 us in [0 s, 2 us]]",
        "verdict": "unknown",
        "evidence": evidence,
    }
    return {"formulas": [formula], "counts": {"holds": 0, "violated": 0, "unknown": 1}}


def test_a_quantile_that_is_not_judged_says_why() -> None:
    """Once, where the reason stands on the line of the quantile."""
    part = {"name": "p50", "calls": 274_199, "verdict": "unknown", "reason": "its normal range begins at 0"}
    text = check_text(of({"reason": "its normal range begins at 0", "quantiles": [part]}), 80, 0.0)
    assert text.splitlines()[:2] == ["UNKNOWN   levels(f)", " " * 12 + "median: its normal range begins at 0"]
    assert "too few" not in text and text.count("begins at 0") == 1


def test_old_data_are_called_so() -> None:
    """The age of the newest data stands below; that of a formula only where its own are older than that."""
    noon_s = datetime(2026, 11, 22, 12, tzinfo=UTC).timestamp()
    level = "levels(f)"

    def lines(*newest: str | None) -> list[str]:
        told = [of({"newest": f"2026-11-22T{each}.000Z"} if each else {}) for each in newest]
        formulas = [formula for each in told for formula in each["formulas"]]
        return [line.strip() for line in check_text({**told[0], "formulas": formulas}, 80, noon_s).splitlines()]

    assert lines("11:58:00") == [f"UNKNOWN   {level}", "", "1 formula: 1 unknown."]
    assert lines("11:58:00", "11:40:00")[1:3] == [f"UNKNOWN   {level}", "observed 20 min ago"]
    assert lines("11:40:00", None)[-1] == "The newest data are 20 min old."
    assert "ago" not in "".join(lines("11:40:00", "11:40:01"))
