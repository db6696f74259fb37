"""The rows by which people read a comparison: what decided first, in plain words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from specmine.mining.regression.comparison import Change
from specmine.model.text import count, duration, listed, plural

from .time_parts import MOSTLY

Entry = Mapping[str, Any]
"""A function, or a part of one, in the JSON of a comparison."""

GROUPS = {
    Change.WORSE: "slower",
    Change.BETTER: "faster",
    Change.UNDECIDED: "not decided",
    Change.EQUIVALENT: "the same",
}
"""Verdicts as people read them, in the order in which they matter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of a table; foreign names are not escaped."""

    suffix: str
    """What it adds to the name of the function; '' for all calls."""
    seconds: tuple[str, str]
    ratio: str
    interval: str
    note: str
    verdict: Change
    value: float | None = None
    """The ratio, new by old ..."""
    bounds: tuple[float, float] | None = None
    """... and its interval."""


def worst_first(entries: Sequence[Entry]) -> list[Entry]:
    """Return functions in the order in which they matter: slower, faster, not decided, the same."""
    order = list(GROUPS)
    return sorted(
        entries,
        key=lambda each: (order.index(Change(each["verdict"])), bool(each["explained_by"]), -_size(each),
                          -each["calls"], each["function"]),
    )  # fmt: skip


def counted(entries: Sequence[Entry]) -> list[str]:
    """Return how many functions there are of each verdict, such as ``3 slower``."""
    verdicts = [Change(each["verdict"]) for each in entries]
    order = (Change.WORSE, Change.BETTER, Change.EQUIVALENT, Change.UNDECIDED)
    return [f"{verdicts.count(each)} {GROUPS[each]}" for each in order if each in verdicts]


def rows_of(each: Entry, *, everything: bool = False) -> list[Row]:
    """Return the row of what decided, then that of all calls if they changed too; or all rows."""
    parts = each["behaviours"]
    note = note_of(each)
    if everything:
        return [_row(each, "", note, each), *(_row(part, suffix_of(part, each), "", part) for part in parts)]
    if each["decided_by"] is None:
        unsure = [part for part in parts if part["verdict"] == Change.UNDECIDED.value]
        if each["verdict"] == each["verdict_of_summary"] or not unsure:
            return [_row(each, "", note, each)]
        return [_row(unsure[0], suffix_of(unsure[0], each), note, each)]
    part = parts[each["decided_by"]]
    also = [_row(each, "", "", each)] if each["verdict_of_summary"] == each["verdict"] else []
    return [_row(part, suffix_of(part, each), note, each), *also]


def note_of(each: Entry) -> str:
    """Return the one thing to know about a function."""
    verdict, needed = Change(each["verdict"]), each["needed_lifetimes"]
    if verdict is Change.UNDECIDED and needed is not None:
        return f"{plural(max(1, needed - min(each['lifetimes'])), 'more run')} a side"
    if verdict in (Change.UNDECIDED, Change.EQUIVALENT):
        return ""
    if each["explained_by"]:
        return f"through {listed([one.split(' (')[0] for one in each['explained_by'][:2]])}"
    if kept_off := _kept_off(each):
        return kept_off
    if each["machine_code"] == "changed" or each["code_unchanged"]:
        return "code changed" if each["machine_code"] == "changed" else "code unchanged"
    cause = (each["change"] or {}).get("cause")
    own = "own code unchanged" if each["machine_code"] in ("same", "moved") else ""
    return {"host": "the host explains it", "load": "another load"}.get(str(cause), own)


def _kept_off(each: Entry) -> str:
    """Return what calls do longer or less than before, where the mean has changed, and that explains it."""
    part = each if each["decided_by"] is None else each["behaviours"][each["decided_by"]]
    if not each.get("time") or part["summary"] != "mean" or part.get("class") or part.get("expression"):
        return ""
    longer = Change(each["verdict"]) is Change.WORSE
    shares = each["time"]["of_difference"]
    if shares["waiting"] >= MOSTLY:
        return f"{'more' if longer else 'less'} waiting for a CPU"
    return f"blocked {'longer' if longer else 'less'}" if shares["blocked"] >= MOSTLY else ""


def suffix_of(part: Entry, each: Entry) -> str:
    """Return what a part adds to the name of its function: ``by db_get``, ``calling fsync``, ``over 36 us``."""
    if part["expression"] is not None:
        if reached := re.fullmatch(r"calls ([^ `]+)", part["expression"]):
            return f"calling {reached[1]}"
        caller = re.fullmatch(r"([^ `]+)->([^ `]+)", part["expression"])
        return f"by {caller[1]}" if caller and caller[2] == each["function"] else f"if {part['expression']}"
    if part["class"] is None:
        return {"mean": "on average", "median": "by the median"}.get(part["summary"], f"at {part['summary']}")
    lower, upper = part["class"]["lower_seconds"], part["class"]["upper_seconds"]
    if upper is None:
        return f"over {duration(lower)}"
    return f"up to {duration(upper)}" if lower <= 0 else f"from {duration(lower)} to {duration(upper)}"


def _row(one: Entry, suffix: str, note: str, judged: Entry) -> Row:
    seconds = ["–" if each is None else duration(each) for each in one["seconds"]]
    interval = one["interval"]
    return Row(
        suffix=suffix,
        seconds=(seconds[0], seconds[1]),
        ratio="–" if one["ratio"] is None else f"{_digits(one['ratio'])}×",
        interval="–" if interval is None else f"{_digits(interval[0])}–{_digits(interval[1])}",
        note=note,
        verdict=Change(judged["verdict"]),
        value=one["ratio"],
        bounds=(float(interval[0]), float(interval[1])) if interval and None not in interval else None,
    )


def _size(each: Entry) -> float:
    """Return how far the ratio of the part that decided is from 1, in either direction."""
    ratio = (each if each["decided_by"] is None else each["behaviours"][each["decided_by"]])["ratio"]
    return abs(ratio - 1.0 if ratio >= 1.0 else 1.0 / ratio - 1.0) if ratio else 0.0


def _digits(value: float) -> str:
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else count(value)
