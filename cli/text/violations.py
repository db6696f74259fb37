"""Violations as text: one line each with what is slower only through it, or one of them in full."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from specmine.analysis.wording.assertions import wrapped
from specmine.analysis.wording.levels import normal_range
from specmine.analysis.wording.violations import growth_of, has_open_cause, is_open, is_problem
from specmine.daemon.documents.violation_text import typeset
from specmine.model.text import age, cells, escaped, plural, shortened, three_digits

Entry = Mapping[str, Any]
"""One violation of ``specmine.violations/1``."""

_QUANTILES = {"p50": "median", "p90": "p90", "p99": "p99", "mean": "mean"}
_CAUSES = {"callee": "a callee", "wait": "waiting", "unknown": "not known"}
_DAY_S = 86_400
_GAP = "  "


def table(entries: Sequence[Entry], at: str | None, width: int, *, ascii_only: bool = False) -> list[str]:
    """Return a line for each violation that is no other's consequence, those below the one that explains them.

    Parameters
    ----------
    entries : sequence
        Violations in the order in which they are shown.
    at : str, optional
        Now, RFC 3339.
    width : int
        Columns of the terminal.
    ascii_only : bool
        Leave out letters that this terminal may not have.
    """
    corner = "`-" if ascii_only else "\N{BOX DRAWINGS LIGHT UP AND RIGHT}"
    rows: list[tuple[str, str, str, str]] = []
    shown: set[str] = set()
    for entry in entries:
        if id_of(entry) in shown or _has_cause(entry, entries):
            continue
        rows.append((_since(entry, at), name_of(entry), _change(entry), _cause_word(entry)))
        shown.add(id_of(entry))
        for below in entries:
            if is_open(below) and (below.get("because") or {}).get("key") == entry.get("key") and is_open(entry):
                rows.append(("", f"{corner} {escaped(str(below['function']))}", str(below["change"]), ""))
                shown.add(id_of(below))
    lines = _columns([("SINCE", "FUNCTION", "WHAT", "CAUSE"), *rows], width)
    if any(not row[0] for row in rows):
        lines += ["", f"{corner} before a name: slower only through the one above"]
    return lines if ascii_only else [typeset(line) for line in lines]


def short_of_cpu(document: Mapping[str, Any]) -> list[str]:
    """Return a line for each program that is short of CPU time: its clients wait, whatever its functions take."""
    at = document.get("at")
    return [
        f"Short of CPU time since {_since(each, at)}{lasted(each, at)}: {escaped(str(each['program']))}:"
        f" {escaped(str(each['text']))}."
        for each in document.get("short_of_cpu") or ()
        if each.get("since")
    ]


def portrait(entry: Entry, at: str | None, width: int, *, ascii_only: bool = False) -> list[str]:
    """Return everything about one violation."""
    head = f"{name_of(entry)}   {entry['change']} since {_since(entry, at)}{lasted(entry, at)}"
    state = str(entry["state"])
    lines = [f"{head}{' ' * max(3, width - cells(head) - len(state))}{state}"]
    lines += _quantiles(entry)
    cause = entry.get("cause") or {}
    for label, text in (
        ("where", _where(entry)),
        ("when", _when(entry, at)),
        ("cause", cause_words(entry)),
        ("", str(cause.get("text") or "")),
        ("", growth_of(entry)),
    ):
        if text:
            lines += wrapped(escaped(text), width, first=f"{label:8}", hang=" " * 8)
    for fact in cause.get("facts") or ():
        mark = ("*" if ascii_only else "\N{BLACK CIRCLE}") if fact["changed"] else "-"
        text = f"{mark} {_FACTS.get(str(fact['what']), str(fact['what'])):8} {fact['text']}"
        lines += wrapped(escaped(text), width, first=" " * 10, hang=" " * 21)
    for below in entry.get("explains") or ():
        lines.append(f"{'also':8}{escaped(str(below['function']))} {below['text']}")
    if entry.get("comment"):
        lines += wrapped(escaped(f"comment {entry['comment']}"), width, hang=" " * 8)
    return lines if ascii_only else [typeset(line) for line in lines]


_FACTS = {"wait": "waiting"}


def id_of(entry: Entry) -> str:
    """Return what names a violation."""
    return str(entry.get("id"))


def name_of(entry: Entry) -> str:
    """Return the function of a violation with its program: ``checksum (shop)``."""
    program = entry.get("program") or entry.get("module")
    name = shortened(str(entry.get("function")), 40)
    return escaped(f"{name} ({program})" if program else name)


def closed_line(number: int) -> str:
    """Return how many more are not shown; '' if there are none."""
    return f"{number} more closed: --all" if number else ""


def _has_cause(entry: Entry, entries: Sequence[Entry]) -> bool:
    key = (entry.get("because") or {}).get("key")
    return is_open(entry) and any(is_open(other) and other.get("key") == key for other in entries)


def _columns(rows: Sequence[tuple[str, str, str, str]], width: int) -> list[str]:
    """Return rows whose columns stand below each other; the last column goes first where there is no room."""
    sizes = [max(cells(row[at]) for row in rows) for at in range(4)]
    kept = 4 if sum(sizes) + 3 * len(_GAP) <= width else 3
    lines = []
    for row in rows:
        parts = [cell + " " * (size - cells(cell)) for cell, size in zip(row, sizes, strict=True)]
        lines.append(_GAP.join(parts[:kept]).rstrip())
    return lines


def _change(entry: Entry) -> str:
    """Return what changed, and whether it has closed: the cause, beside it, is left out where there is no room."""
    return str(entry["change"]) if is_open(entry) else f"{entry['change']}, {entry['state']}"


def _cause_word(entry: Entry) -> str:
    cause = entry.get("cause") or {}
    kind = str(cause.get("kind") or "unknown")
    if entry.get("because"):
        return f"through {escaped(str(entry['because']['function']))}"
    if kind == "unknown":
        return "not known"
    more = cause.get("more_samples") or {}
    where = "from" if more.get("is_caller") else "in"
    found = f" {where} {escaped(shortened(str(more['function']), 20))}" if more else ""
    return f"{_CAUSES.get(kind, kind)}{found}{'' if cause.get('proven') else ', likely'}"


def cause_words(entry: Entry) -> str:
    """Return the cause and how sure it is; of a consequence the function that explains it."""
    if entry.get("because"):
        return f"only through {entry['because']['function']}, which it calls"
    cause = entry.get("cause") or {}
    kind = str(cause.get("kind") or "unknown")
    if kind == "unknown":
        return "not known"
    return f"{_CAUSES.get(kind, kind)}, {'proven' if cause.get('proven') else 'likely'}"


def _quantiles(entry: Entry) -> list[str]:
    observed, expected = entry.get("observed") or {}, entry.get("expected") or {}
    rows = [("", "NOW", "NORMAL")]
    for name, word in _QUANTILES.items():
        if name in observed or name in expected:
            rows.append((word, _seconds(observed.get(name)), _range(expected.get(name))))
    if len(rows) == 1:
        return []
    sizes = [max(cells(row[at]) for row in rows) for at in range(3)]
    return [f"{row[0]:8}{row[1].rjust(sizes[1])}   {row[2].rjust(sizes[2])}".rstrip() for row in rows]


def _seconds(quantile: Any) -> str:
    return three_digits(float(quantile["seconds"])) if quantile else "-"


def _range(quantile: Any) -> str:
    """Return the normal range; of one so wide that it says nothing the quantile alone."""
    if not quantile:
        return "-"
    return normal_range({"p": quantile}, "p") or three_digits(float(quantile["seconds"]))


def _where(entry: Entry) -> str:
    expression = str(entry.get("expression") or "true")
    calls = "all its calls" if expression == "true" else f"calls if {expression}"
    callers = [str(each) for each in entry.get("callers") or ()]
    if callers and expression == "true":
        calls = f"{calls}; called by {' and '.join(shortened(each, 40) for each in callers)}"
    lost = float(entry.get("time_share") or 0.0)
    return f"{calls}; {100 * lost:.2g} % of the program's time" if lost >= 0.005 else calls


def _when(entry: Entry, at: str | None) -> str:
    parts = []
    build = entry.get("build_started")
    if build:
        parts.append(f"{build['text']}")
    parts.append(f"found {clock(str(entry['found']), at)}")
    if entry.get("closed"):
        who = f" by {entry['closed_by']}" if entry.get("closed_by") else ""
        parts.append(f"{entry['state']}{who} {clock(str(entry['closed']), at)}")
    return "; ".join(parts)


def _since(entry: Entry, at: str | None) -> str:
    return clock(str(entry["since"]), at)


def lasted(entry: Entry, at: str | None) -> str:
    """Return how long it has been open, or was, in brackets."""
    end = entry.get("closed") or at
    if not end:
        return ""
    seconds = (datetime.fromisoformat(str(end)) - datetime.fromisoformat(str(entry["since"]))).total_seconds()
    return f" ({age(seconds)})" if seconds >= 0 else ""


def clock(moment: str, at: str | None) -> str:
    """Return a time of day in UTC; with the date if it is a day ago or more."""
    then = datetime.fromisoformat(moment).astimezone(UTC)
    now = datetime.fromisoformat(at) if at else then
    if (now - then).total_seconds() >= _DAY_S:
        return then.strftime("%d %b %H:%M")
    return then.strftime("%H:%M:%S")


def summary(entries: Sequence[Entry]) -> str:
    """Return how many problems there are: the first line of what a person reads."""
    problems = [each for each in entries if is_problem(each) and not has_open_cause(each, entries)]
    others = [each for each in entries if is_open(each) and not is_problem(each)]
    said = [plural(len(problems), "problem")] if problems else []
    said += [plural(len(others), "other change")] if others else []
    return ", ".join(said)
