"""Where calls waited as rows of words, for the terminal and the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from specmine.analysis.documents import Entry
from specmine.daemon.documents.violation_text import wait_words
from specmine.model.text import count, duration, escaped, share

from .inside import three_digits_of

NOTABLE = 0.005
"""Smaller shares are not told."""
LEAST_OFTEN = 0.1
"""Fewer waits a call are told as one in so many calls."""
ITSELF = "(itself)"
"""Stands for the function whose calls these are: a place within it is no other function."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitRow:
    """The waits of one kind at one place."""

    what: str
    """For what: the kind, and the system call."""
    place: str
    """The innermost function that is not of the C library."""
    within: str
    """The timed function nearest to the wait; '' for the function itself."""
    share: float
    mean: str
    note: str = ""


def wait_rows(waits: Any) -> list[WaitRow]:
    """Return the waits of an entry or of one of its classes, the largest first; [] if none is known."""
    parts = waits.get("parts") if isinstance(waits, dict) else None
    return [_row(each) for each in parts or [] if each["share"] >= NOTABLE]


def _row(part: Any) -> WaitRow:
    often = float(part.get("waits_per_call") or 0.0)
    return WaitRow(
        what=wait_words(str(part["kind"]), part.get("system_call")),
        place=escaped(str(part["place"])) if part.get("place") else ITSELF,
        within=escaped(str(part["within"])) if part.get("within") else "",
        share=float(part["share"]),
        mean=duration(float(part.get("mean_seconds") or 0.0)),
        note="; ".join(filter(None, (_often(often), _woken(part)))),
    )


def _woken(part: Any) -> str:
    """Return who ended most of the time of these waits; '' where that is not known."""
    wakers = part.get("woken_by") or []
    if not wakers:
        return ""
    first = wakers[0]
    return f"woken by {escaped(str(first['place'] or 'another program'))}, {share(float(first['share']))}"


def _often(waits: float) -> str:
    """Return how often a call waits there."""
    if not waits:
        return ""
    return f"{three_digits_of(waits)} a call" if waits >= LEAST_OFTEN else f"once in {count(round(1 / waits))} calls"


def waits_head(entry: Entry) -> str:
    """Return the sentence above the rows; '' where waits were not followed."""
    waits = entry.get("waits")
    if not isinstance(waits, dict):
        return ""
    seen = f"{count(int(waits['calls']))} calls, followed for {duration(float(waits['followed_seconds']))}"
    if not waits.get("parts"):
        return f"No wait in {seen}."
    return f"A call waits for {duration(float(waits['mean_seconds']))} on average, of {seen}."
