"""Why functions are where they stand: each reason once."""

from __future__ import annotations

from typing import Any

from specmine.analysis.wording.reasons import grouped, why


def entry(name: str, code: str, text: str, **more: Any) -> dict[str, Any]:
    """Return a function in its state for a reason."""
    return {"function": name, "state": "timing", "reason": {"code": code, "text": text}, "needed": "wait", **more}


def test_each_reason_is_told_once_with_the_functions_that_have_it() -> None:
    """The sentence is that of the first; one that was never called is not one that is being learned."""
    entries = [entry(f"f{number}", "budget", f"{number} calls a second", state="waiting") for number in range(5)]
    entries += [entry("main", "learning", "0 of 5; no call yet", calls_counted=0)]
    entries += [entry("write", "learning", "3 of 5", calls_counted=900, timed=600)]
    assert grouped(entries) == [
        "f0, f1, f2 and 2 more: 0 calls a second [budget] Next: wait",
        "main: 0 of 5; no call yet [learning] Next: wait",
        "write: 3 of 5 [learning] Next: wait",
    ]
    assert grouped([{"function": "f", "state": "single", "verdict": "holds"}]) == []


def test_undecided_is_explained() -> None:
    """An assertion that the newest calls do not decide has no reason of its own."""
    checked = {"function": "f", "state": "single", "verdict": "unknown", "checked": "now", "checks": [{"calls": 900}]}
    assert why({**checked, "build_id": "ab"}) == [
        "The newest calls are as asserted, but too few or too varied to show every change that matters"
    ]
    few = {**checked, "build_id": "ab", "checks": [{"calls": 9}]}
    assert why(few) == ["The newest calls are too few to compare"]
