"""The status as people read it first: what is wrong, what changed, or that all is well."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from specmine.analysis.documents import Document
from specmine.analysis.wording.levels import normal_range
from specmine.analysis.wording.violations import has_open_cause, is_of_data, is_open, is_problem
from specmine.model.text import cells, count, escaped, plural, three_digits

from .violations import Entry, cause_words, clock, lasted, name_of

_QUANTILES = {"p50": "median", "p90": "p90", "p99": "p99", "mean": "mean"}


def headline(document: Document, asserted: int, width: int, undecided: int = 0) -> list[str]:
    """Return the lines that a status begins with.

    Parameters
    ----------
    document : Document
        ``specmine.violations/1``.
    asserted : int
        Functions of which something is asserted.
    width : int
        Columns of the terminal.
    undecided : int
        Those of them of which the newest calls do not say whether they are as asserted.
    """
    at = document.get("at")
    standing = [each for each in document["violations"] if is_open(each)]
    causes = [each for each in standing if not has_open_cause(each, standing)]
    problems = [each for each in causes if is_problem(each)]
    host = f" on {escaped(str(document['host']))}" if document.get("host") else ""
    changed = len({each.get("key") for each in standing})
    holding = max(0, asserted - changed - undecided)
    lines = [_apart(f"{_said(problems, causes, holding, undecided)}{host}", _date(at), width)]
    for each in (*problems, *(other for other in causes if not is_problem(other))):
        lines += ["", *_entry(each, at, width)]
    if asserted:
        some = f", {plural(changed, 'function')} changed (above)" if changed else ""
        some += f", {count(undecided)} not decided now" if undecided else ""
        lines += ["", f"{count(holding)} of {plural(asserted, 'function')} as asserted{some}."]
    if problems:
        lines.append(f"Next: specmine violations {escaped(str(problems[0]['function']))}")
    return [*lines, ""]


def _said(problems: Sequence[Entry], causes: Sequence[Entry], holding: int, undecided: int) -> str:
    if problems:
        return plural(len(problems), "problem")
    if causes:
        return plural(len(causes), "change")
    if holding:
        return "All well" if holding >= undecided else "No problem seen"
    return "Nothing decided now" if undecided else "Nothing asserted yet"


def _entry(entry: Entry, at: str | None, width: int) -> Iterator[str]:
    """Yield what changed, since when, why, and what else is slower with it."""
    yield _numbers(f"{name_of(entry)}    {entry['change']}", entry, width)
    yield f"  since  {clock(str(entry['since']), at)}{lasted(entry, at)}"
    yield f"  cause  {cause_words(entry)}{': other data or another configuration' if is_of_data(entry) else ''}"
    below = [f"{escaped(str(each['function']))} {each['text']}" for each in entry.get("explains") or ()]
    if below:
        yield f"  also   {', '.join(below)}"


def _numbers(text: str, entry: Entry, width: int) -> str:
    """Return the text with observed beside normal, where there is room."""
    name = str(entry.get("quantile"))
    observed = (entry.get("observed") or {}).get(name)
    expected: Mapping[str, Any] | None = (entry.get("expected") or {}).get(name)
    if not observed or not expected or entry.get("what") == "path":
        return text
    normal = normal_range({name: expected}, name) or three_digits(expected["seconds"])
    numbers = f"   {_QUANTILES.get(name, name)} {three_digits(observed['seconds'])}, normal {normal}"
    return text + numbers if cells(text + numbers) <= width else text


def _apart(left: str, right: str, width: int) -> str:
    gap = width - cells(left) - cells(right)
    return f"{left}{' ' * gap}{right}" if right and gap > 1 else left


def _date(at: str | None) -> str:
    if not at:
        return ""
    now = datetime.fromisoformat(at).astimezone(UTC)
    return f"{now.day} {now.strftime('%b %Y, %H:%M:%S')} UTC"
