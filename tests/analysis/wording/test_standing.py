"""How a host stands is told in the same words and counts by the command and by the page."""

from __future__ import annotations

from typing import Any

from specmine.analysis.wording.standing import standing_of


def entry(key: str, verdict: str = "holds", *, calls: int = 500, state: str = "single") -> dict[str, Any]:
    """Return a function of a specification."""
    checks = [{"calls": calls}]
    return {"key": key, "state": state, "build_id": "ab", "verdict": verdict, "checked": "now", "checks": checks}


def opened(key: str, direction: str = "slower", **more: Any) -> dict[str, Any]:
    """Return an open violation."""
    return {"key": key, "state": "open", "direction": direction, "function": key, **more}


def test_all_is_well_only_where_all_is_decided() -> None:
    """What is not known is no yes."""
    assert standing_of([entry("a"), entry("b")], []).title == "All well"
    assert standing_of([entry("a"), entry("b", "unknown")], []).title == "No problem seen"
    assert standing_of([entry("a", "unknown")], []).title == "Nothing decided now"
    assert standing_of([entry("a", state="timing")], []).title == "Nothing asserted yet"
    assert standing_of([], []).title == "Nothing asserted yet"


def test_each_function_counts_once() -> None:
    """One that changed is not also undecided, whatever the specification, which may be older, says of it."""
    functions = [entry("a", "unknown"), entry("b", "unknown", calls=3), entry("c"), entry("d"), entry("e", "violated")]
    found = standing_of(functions, [opened("a"), opened("c", because={"key": "a"}), opened("x", "faster")])
    assert (found.holding, found.changed, found.undecided, found.few, found.asserted) == (1, 3, 2, 1, 6)
    assert found.title == "1 problem", "what the other one explains is none of its own"
    assert [each["key"] for each in found.changes] == ["x"]


def test_a_violation_that_has_closed_is_none() -> None:
    """Whether it holds again is what its newest calls say."""
    closed = {**opened("a"), "state": "recovered"}
    assert standing_of([entry("a")], [closed]).title == "All well"
    assert standing_of([entry("a", "violated")], [closed]).title == "Nothing decided now"
