"""The words for where a function stands."""

from __future__ import annotations

from typing import Any

import pytest

from specmine.analysis.wording.states import counted, steps_done, words

SLOW = {"state": "open", "direction": "slower", "factor": 2.1, "change": "2.1x slower"}
FAST = {"state": "open", "direction": "faster", "factor": 0.1, "change": "10x faster"}
FEW = {"verdict": "unknown", "calls": 50}


def entry(state: str, code: str = "", **more: Any) -> dict[str, Any]:
    """Return a function in a state, with a reason."""
    reason = {"code": code, "text": more.pop("text", ""), "remedy": ""} if code else None
    return {"build_id": "ab", "state": state, "reason": reason, **more}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (entry("single", verdict="holds", checked="now"), "holds"),
        (entry("explained", verdict="holds", violations=[FAST, SLOW]), "2.1x slower"),
        (entry("explained", verdict="holds", violations=[FAST, {**SLOW, "state": "recovered"}]), "10x faster"),
        (entry("explained", verdict="violated"), "violated"),
        (entry("single", verdict="unknown"), "known"),
        (entry("single", verdict="unknown", checked="now", checks=[FEW]), "too few calls"),
        (entry("single", verdict="unknown", checked="now", checks=[{**FEW, "calls": 900}]), "not decided"),
        (entry("single", "learned-while-slower", verdict="unknown", checked="now"), "learned while slow"),
        (entry("timing", "learning", text="4 of 5 observations"), "learning, 4 of 5"),
        (entry("timing", "slow", text="1 of 5 observations"), "too few calls"),
        (entry("explaining"), "learning callers"),
        (entry("waiting", "budget"), "waits for budget"),
        (entry("candidate", "cold"), "takes little time"),
        (entry("refused", "busy-return-site"), "cannot be timed"),
        (entry("excluded", "ignored"), "left out"),
        (entry("unstable"), "unstable"),
        (entry("single", verdict="holds", checked="now", newest_window_age_seconds=299.0), "holds"),
        (entry("single", verdict="holds", checked="now", newest_window_age_seconds=1140.0), "holds, seen 19 min ago"),
    ],
)
def test_a_function_stands_somewhere(given: dict[str, Any], expected: str) -> None:
    """Plain words; the worst open violation speaks for the function."""
    assert words(given) == expected


def test_functions_are_counted_by_group() -> None:
    """What is violated comes first."""
    entries = [entry("single", verdict="holds", checked="now")] * 2 + [entry("waiting", "budget")] * 3
    entries.append(entry("single", violations=[SLOW]))
    assert counted(entries) == "6 functions: 1 violated, 2 hold, 3 wait for budget."
    assert counted([]) == "No function is known yet."


def test_the_steps_to_an_assertion() -> None:
    """While learning as many as agree; all once it is known."""
    assert steps_done(entry("timing", "learning", text="4 of 5 observations")) == (4, 5)
    assert steps_done(entry("single")) == (5, 5)
    assert steps_done(entry("candidate", "cold")) == (0, 5)
