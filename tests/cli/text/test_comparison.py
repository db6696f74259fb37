"""The table of a comparison: what became slower first, in any width, with the notes that matter."""

from __future__ import annotations

from typing import Any

import pytest

from specmine.cli.text.comparison import comparison_text
from specmine.cli.text.comparison_notes import in_plain_words
from specmine.model.text import cells


def entry(name: str, verdict: str, ratio: float | None, **more: Any) -> dict[str, Any]:
    """Return a function of a comparison."""
    interval = None if ratio is None else [ratio * 0.97, ratio * 1.03]
    return {
        "function": name, "module": "shop", "verdict": verdict, "verdict_of_summary": verdict, "decided_by": None,
        "ratio": ratio, "interval": interval, "seconds": [76e-6, 76e-6 * (ratio or 1.0)], "lifetimes": [19, 6],
        "needed_lifetimes": None, "reason": "because", "behaviours": [], "lifetimes_left_out": [], "calls": 100,
        "change": None, "host": None, "machine_code": None, "code_unchanged": None, "where": None, "cause": False,
        "explains": [], "explained_by": [], "expression": None, "class": None, "summary": "median", **more,
    }  # fmt: skip


def document(*functions: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a comparison of two builds."""
    return {
        "base": {"name": "v2.4.1", "lifetimes": 19, "lifetimes_seen": 20},
        "new": {"name": "v2.5.0", "lifetimes": 6, "lifetimes_seen": 6},
        "rule": {"summary": "median", "level": 0.95, "tolerance": 0.02, "fdr": False},
        "skipped_lines": 0, "environment": {"differences": []}, "only_base": [], "only_new": [],
        "order": {"interleaved": True, "warning": None, "remedy": None, "drift": None},
        "functions": list(functions), "machine_code": {"counts": {"changed": 0, "moved": 0, "same": 0}, "suspects": []},
        **more,
    }  # fmt: skip


BY_DB_GET = {
    "kind": "behaviour", "expression": "db_get->load", "class": None, "summary": "median", "verdict": "worse",
    "ratio": 1.52, "interval": [1.46, 1.59], "seconds": [161e-6, 245e-6], "lifetimes": [19, 6],
}  # fmt: skip
SHOP = document(
    entry("steady", "equivalent", 1.0),
    entry("log_write", "undecided", 1.03, needed_lifetimes=13),
    entry("render", "better", 0.83, machine_code="changed"),
    entry("load", "worse", 1.0, decided_by=0, behaviours=[BY_DB_GET], verdict_of_summary="equivalent",
          explained_by=["checksum (shop)"]),
    entry("checksum", "worse", 2.1, machine_code="changed", cause=True, explains=["load (shop)"]),
)  # fmt: skip


def test_the_table_at_80_columns() -> None:
    """Slower first, causes before what they explain; each row has one note."""
    assert comparison_text(SHOP, 80).splitlines()[:14] == [
        "2 slower (1 cause), 1 faster, 1 the same, 1 not decided        19 runs against 6",
        "",
        "                  v2.4.1  v2.5.0  RATIO  95 % INTERVAL",
        "slower",
        "  checksum         76 us  160 us  2.10×      2.04–2.16  code changed",
        "  load by db_get  161 us  245 us  1.52×      1.46–1.59  through checksum",
        "faster",
        "  render           76 us   63 us  0.83×      0.81–0.85  code changed",
        "not decided",
        "  log_write        76 us   78 us  1.03×      1.00–1.06  7 more runs a side",
        "the same, within 2 %: steady",
        "",
        "Medians of runs unless said; each run counts once.",
    ]


@pytest.mark.parametrize("columns", [50, 60, 80, 120])
def test_no_line_is_wider_than_the_terminal(columns: int) -> None:
    """Long C++ names stand on a line of their own, notes below their row where there is no room beside it."""
    name = "std::vector<shop::Basket, std::allocator<shop::Basket> >::_M_realloc_insert(shop::Basket const&)"
    text = comparison_text(document(entry(name, "worse", 1.3, machine_code="changed"), *SHOP["functions"]), columns)
    assert all(cells(line) <= columns for line in text.splitlines())
    assert "code changed" in text


def test_names_cannot_control_the_terminal() -> None:
    """Escape sequences in names of functions and builds are shown, not obeyed."""
    hostile = document(entry("a\x1b[31m", "worse", 1.3))
    hostile["new"] = {**hostile["new"], "name": "v\x1b[0m"}
    assert "\x1b" not in comparison_text(hostile, 80)


def test_a_ratio_without_an_interval_is_shown() -> None:
    """One run a side: the ratio, a dash for the interval, and what would help."""
    alone = entry("f", "undecided", 2.0, interval=None, needed_lifetimes=2, lifetimes=[1, 1])
    (row,) = [line for line in comparison_text(document(alone), 80).splitlines() if line.startswith("  f ")]
    assert row.split() == ["f", "76", "us", "152", "us", "2.00×", "–", "1", "more", "run", "a", "side"]


def test_the_warning_stands_above_the_table() -> None:
    """Sides that did not take turns: a warning with the remedy, and what functions of unchanged code show."""
    order = {"interleaved": False, "warning": "they did not take turns", "remedy": "let lifetimes take turns",
             "drift": {"ratio": 1.08, "interval": [1.02, 1.14], "functions": 12}}  # fmt: skip
    lines = comparison_text(document(*SHOP["functions"], order=order), 120).splitlines()
    assert lines[1] == "Warning: they did not take turns. Remedy: let runs take turns."
    assert lines[2].startswith("12 functions of unchanged code took 8 % longer (1.02–1.14)")


def test_lifetimes_are_runs_for_people_but_not_in_names() -> None:
    """Words are replaced, names of functions are not."""
    assert in_plain_words("Lifetimes of one lifetime.") == "Runs of one run."
    assert (
        in_plain_words("calls with `lifetime_end`->x and Lifetime::end")
        == "calls with `lifetime_end`->x and Lifetime::end"
    )
