"""What changed between two builds, in words."""

from __future__ import annotations

from typing import Any

from specmine.analysis.report.changes import change_groups, change_words, lead_sentence


def entry(function: str, verdict: str, ratio: float | None, **more: Any) -> dict[str, Any]:
    """Return a function of a comparison that all its calls decided."""
    return {
        "function": function, "module": "shop", "verdict": verdict, "verdict_of_summary": verdict, "ratio": ratio,
        "interval": None if ratio is None else [0.9 * ratio, 1.1 * ratio], "seconds": [1e-5, None], "decided_by": None,
        "behaviours": [], "calls": 100, "explained_by": [], "needed_lifetimes": None, "machine_code": None,
        "code_unchanged": None, "change": None, "lifetimes": [6, 6],
    } | more  # fmt: skip


def test_the_sentence_names_the_cause_before_what_is_slower_through_it() -> None:
    """Nobody looks for a second cause where there is one."""
    entries = [
        entry("load", "worse", 2.5, explained_by=["checksum (shop)"]),
        entry("checksum", "worse", 2.1, machine_code="changed"),
        entry("render", "better", 0.8),
        entry("parse", "undecided", 1.02, needed_lifetimes=9),
        entry("url", "equivalent", 1.0),
    ]
    assert lead_sentence(entries, 0.02) == (
        "checksum is 2.1x slower; its code changed. load is slower only through what it calls. render is 1.2x faster. "
        "Of 1 it is not decided: more runs would tell."
    )
    groups = change_groups(entries, 0.02)
    assert [(each.text, each.functions) for each in groups] == [
        ("Slower", 2), ("Faster", 1), ("Not decided", 1), ("The same", 1)
    ]  # fmt: skip
    assert [row.name for row in groups[0].rows] == ["checksum", "load"]


def test_nothing_is_called_the_same_that_was_not_decided() -> None:
    """No change found, and no change decided, are two sentences."""
    same = [entry("a", "equivalent", 1.0), entry("b", "undecided", None)]
    assert lead_sentence(same, 0.02) == (
        "No change was found. 1 of 2 functions take as long as before, within 2 %. "
        "Of 1 it is not decided: more runs would tell."
    )


def test_a_change_is_told_by_its_size() -> None:
    """In times where it is large, in per cent where it is small, by the part that decided."""
    assert change_words(entry("f", "worse", 34.4)) == "34x slower"
    assert change_words(entry("f", "worse", 1.04)) == "4 % slower"
    assert change_words(entry("f", "better", 0.5)) == "2.0x faster"
    assert change_words(entry("f", "undecided", 3.0)) == "not decided"
    part = {"kind": "class", "expression": None, "class": {"lower_seconds": 3.6e-5, "upper_seconds": None},
            "ratio": 1.5, "interval": [1.4, 1.6], "seconds": [1e-4, 1.5e-4], "verdict": "worse", "summary": "median",
            "lifetimes": [6, 6], "reason": ""}  # fmt: skip
    assert change_words(entry("f", "worse", 1.0, decided_by=0, behaviours=[part])) == "1.5x slower over 36 us"
