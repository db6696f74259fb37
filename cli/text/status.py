"""The status as people read it first: what is wrong, what changed, or that all is well."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from specmine.analysis.wording.assertions import wrapped
from specmine.analysis.wording.levels import normal_range
from specmine.analysis.wording.standing import Standing
from specmine.analysis.wording.violations import is_of_data
from specmine.model.text import cells, count, escaped, plural, three_digits

from .violations import Entry, cause_words, clock, lasted, name_of

_QUANTILES = {"p50": "median", "p90": "p90", "p99": "p99", "mean": "mean"}


def headline(standing: Standing, host: str, at: str | None, width: int, notices: Sequence[str] = ()) -> list[str]:
    """Return the lines that a status begins with.

    Parameters
    ----------
    standing : Standing
    host : str
        The name of the host, '' if it is not known.
    at : str, optional
        The time of the data, RFC 3339.
    width : int
        Columns of the terminal.
    notices : sequence of str
        What else a person has to know first; stands below the title.
    """
    title = f"{standing.title} on {escaped(host)}" if host else standing.title
    lines = [_apart(title, _date(at), width)]
    for number, notice in enumerate(notices):
        lines += [*([""] if not number else []), *wrapped(notice, width, hang=" " * 6)]
    for each in (*standing.problems, *standing.changes):
        lines += ["", *_entry(each, at, width)]
    if standing.asserted:
        some = f", {plural(standing.changed, 'function')} changed (above)" if standing.changed else ""
        some += f", {count(standing.undecided)} not decided now" if standing.undecided else ""
        lines += ["", f"{count(standing.holding)} of {plural(standing.asserted, 'function')} as asserted{some}."]
    if standing.problems:
        lines.append(f"Next: specmine violations {escaped(str(standing.problems[0]['function']))}")
    return [*lines, ""]


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
