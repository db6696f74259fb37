"""Where calls wait as text: all calls, then each class, no wider than the terminal."""

from __future__ import annotations

from typing import Any

import pytest

from specmine.analysis.wording.violations import growth_of
from specmine.cli.text.waits import waits_table


def part(**more: Any) -> dict[str, Any]:
    """Return one place."""
    return {
        "kind": "futex", "system_call": "futex", "place": "take_lock", "place_module": "app", "within": None,
        "share": 0.96, "waits_per_call": 1.2, "mean_seconds": 4.1e-3, "frames": ["take_lock"],
    } | more  # fmt: skip


def entry() -> dict[str, Any]:
    """Return a function of two classes of which the slow one waits."""
    fault = part(kind="fault", system_call=None, place=None, share=0.04, mean_seconds=1.7e-4, within="parse")
    waits = {"calls": 400, "mean_seconds": 4.3e-3, "parts": [part(), fault, part(share=0.001, place="never\x1b[31m")]}
    slow = {"upper_seconds": None, "share": 0.2, "waits": waits}
    fast = {"upper_seconds": 1e-3, "share": 0.8, "waits": {"calls": 900, "mean_seconds": 0.0, "parts": []}}
    return {"function": "f", "waits": waits | {"followed_seconds": 3.0, "at": "now"}, "classes": [fast, slow]}


@pytest.mark.parametrize("columns", [50, 80, 120])
def test_rows_name_kind_place_and_share(columns: int) -> None:
    """The largest place stands first; what is under half a percent is left out."""
    lines = waits_table(entry(), columns)
    assert max(map(len, lines)) <= columns
    text = " ".join(" ".join(lines).split())
    assert "A call waits for 4.3 ms on average, of 400 calls, followed for 3.0 s." in text
    assert "futex take_lock 4.1 ms 96 %" in text
    assert "page fault (itself) 170 us 4 %" in text.replace("\N{MICRO SIGN}", "u")
    assert "never" not in text
    assert "over 1.0 ms:" in text and "up to 1.0 ms:" not in text


def test_what_was_not_followed_is_not_told() -> None:
    assert waits_table({"function": "f", "waits": None}, 80) == []
    none = {"calls": 12, "mean_seconds": 0.0, "parts": [], "followed_seconds": 1.0}
    assert waits_table({"function": "f", "waits": none}, 80) == ["  No wait in 12 calls, followed for 1.0 s."]


def test_a_violation_says_what_grew() -> None:
    """A wait and a callee are told as sentences; nothing where nothing is known."""
    text = "file fsync under save, +4.1 ms of +4.3 ms a call"
    assert growth_of({"cause": {"growth": {"kind": "file", "text": text}}}) == f"Waits: {text}."
    assert growth_of({"cause": {"growth": {"kind": "callee", "text": "save"}}}) == "Callee: save."
    assert growth_of({"cause": {"growth": None}}) == growth_of({}) == ""
    samples = {"function": "qsort_r", "is_caller": False, "text": "Samples find more CPU time in qsort_r."}
    both = {"cause": {"growth": {"kind": "callee", "text": "save"}, "more_samples": samples}}
    assert growth_of(both) == "Callee: save. Samples find more CPU time in qsort_r."
