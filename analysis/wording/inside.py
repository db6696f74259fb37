"""What happened inside a call as rows of words, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from specmine.analysis.documents import Entry
from specmine.model.text import duration, escaped, share, title

NOTABLE = 0.005
"""Smaller shares are not told."""
OWN = "own code"
OWN_PARTS = {"running": OWN, "waiting": f"{OWN} waiting for a CPU", "blocked": f"{OWN} blocked"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One part of a call."""

    name: str
    mean: str
    share: float
    note: str = ""
    module: str = ""


def rows(each: Any) -> list[Row]:
    """Return the parts of the calls of one class, the largest callee first, own code last; [] if none is known."""
    if not each.get("inside_calls"):
        return []
    mean = float(each.get("inside_mean_seconds") or 0.0)
    found = [_callee(part) for part in each.get("inside") or [] if part["share"] >= NOTABLE]
    own = each.get("own")
    if own and (own["share"] >= NOTABLE or not found):
        of_it = {key: own.get(key, 0.0) / own["share"] for key in ("waiting", "blocked")} if own["share"] else {}
        found.append(Row(name=OWN, mean=duration(mean * own["share"]), share=own["share"], note=waits(of_it)))
    return found


def _callee(part: Any) -> Row:
    often = float(part.get("calls_per_call") or 0.0)
    notes = [f"{three_digits_of(often)} calls" if abs(often - 1.0) > 0.005 else "", waits(part)]
    return Row(
        name=escaped(str(part["callee"])),
        mean=duration(float(part.get("mean_seconds") or 0.0)),
        share=float(part["share"]),
        note=", ".join(filter(None, notes)),
        module=escaped(str(part.get("module") or "")),
    )


def three_digits_of(number: float) -> str:
    """Return a number of calls with at most three digits that matter."""
    return f"{number:.3g}" if number < 1000 else f"{number:,.0f}"


def waits(of: Any) -> str:
    """Return which shares of a part were waits, '' if none is notable."""
    words = {"waiting": "waiting for a CPU", "blocked": "blocked"}
    known = [(share(float(of[key])), word) for key, word in words.items() if float(of.get(key) or 0.0) >= NOTABLE]
    return " and ".join(f"{part}{'' if at else ' of it'} {word}" for at, (part, word) in enumerate(known))


def not_timed(classes: Sequence[Any]) -> str:
    """Return the sentence about callees whose time is not known, '' if there are none."""
    names = sorted({title(each["callee"], each["module"]) for one in classes for each in one.get("not_timed") or []})
    if not names:
        return ""
    return f"Not timed all the while, so their time is in {OWN}: {', '.join(map(escaped, names))}."


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadRow:
    """One part of the spread."""

    name: str
    variance: float
    excess: float | None
    mean: str
    key: tuple[str, str] | None = None
    """Name and module of a callee."""


def spread_rows(entry: Entry) -> list[SpreadRow]:
    """Return the parts of the spread of a function, the largest first; [] where it is not known."""
    found = entry.get("spread")
    if not isinstance(found, dict):
        return []
    return [
        SpreadRow(
            name=escaped(str(each["callee"])) if each.get("callee") else OWN_PARTS.get(str(each["what"]), OWN),
            variance=float(each["variance"]),
            excess=each.get("excess"),
            mean=duration(float(each["mean_seconds"])),
            key=(str(each["callee"]), str(each.get("module") or "")) if each.get("callee") else None,
        )
        for each in found["parts"]
    ]
