"""Violations as lines: what samples find more of stands beside the cause."""

from __future__ import annotations

from typing import Any

import pytest

from specmine.cli.text.violations import short_of_cpu, table

SORT = {"function": "qsort_r", "is_caller": False, "text": "Samples find more CPU time in qsort_r."}
RENDER = {"function": "render", "is_caller": True, "text": "Samples find more CPU time in calls from render."}


def entry(cause: dict[str, Any]) -> dict[str, Any]:
    """Return an open violation with a cause."""
    return {
        "id": "1", "key": "b+0x10", "function": "serve", "program": "shop", "change": "2.1x slower", "state": "open",
        "since": "2026-11-28T10:00:00.000Z", "because": None, "cause": cause,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        ({"kind": "load", "proven": False, "more_samples": SORT}, "load in qsort_r, likely"),
        ({"kind": "code", "proven": True, "more_samples": RENDER}, "code from render"),
        ({"kind": "wait", "proven": True, "more_samples": None}, "waiting"),
        ({"kind": "unknown", "proven": False}, "not known"),
    ],
)
def test_the_last_column_is_the_cause_and_where_samples_find_it(cause: dict[str, Any], words: str) -> None:
    """A callee, or the caller whose calls take longer."""
    _, line = table([entry(cause)], "2026-11-28T10:01:00.000Z", 100, ascii_only=True)
    assert line.endswith(f"2.1x slower  {words}")


@pytest.mark.parametrize("width", [40, 80, 200])
def test_what_has_closed_is_marked_in_every_width(width: int) -> None:
    """The cause has no room in a narrow terminal; that nobody has to do anything is said all the same."""
    cause = {"kind": "load", "proven": False, "more_samples": SORT}
    known = {
        **entry(cause),
        "id": "2",
        "key": "b+0x20",
        "function": "a_function_with_a_long_name",
        "state": "acknowledged",
    }
    _, first, second = table([entry(cause), known], "2026-11-28T10:01:00.000Z", width, ascii_only=True)
    assert "acknowledged" not in first and "2.1x slower, acknowledged" in second
    assert second.endswith("load in qsort_r, likely") is (width == 200)


def test_the_legend_stands_apart() -> None:
    """Else it reads as one more function."""
    cause = {"kind": "load", "proven": False}
    below = {
        **entry(cause),
        "id": "2",
        "key": "b+0x20",
        "function": "handle",
        "because": {"key": "b+0x10", "function": "serve"},
    }
    lines = table([entry(cause), below], "2026-11-28T10:01:00.000Z", 80, ascii_only=True)
    assert lines[2].split()[:2] == ["`-", "handle"]
    assert lines[3:] == ["", "`- before a name: slower only through the one above"]


def test_a_program_that_is_short_of_cpu_time_is_a_line_of_its_own() -> None:
    """With since when, for how long, and what keeps it from CPU time; none of a document without it."""
    text = "other processes keep 2.0 of 2 CPUs busy, usually 0.3"
    short = {"program": "redis\x1b", "since": "2026-11-28T10:00:00.000Z", "text": text}
    (line,) = short_of_cpu({"at": "2026-11-28T10:02:00.000Z", "short_of_cpu": [short]})
    assert line.startswith("Short of CPU time since ") and line.endswith(f" (2 min): redis\\x1b: {text}.")
    assert short_of_cpu({"at": None, "violations": []}) == []
