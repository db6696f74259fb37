"""A comparison as a table: what became slower first, a row a function, and below it what else one must know."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from specmine.analysis.documents import title
from specmine.mining.comparison.self_test import FEWEST_LIFETIMES
from specmine.mining.regression.comparison import Change
from specmine.model.text import cells, count, duration, escaped, listed, plural, shortened

from .comparison_notes import code_lines, detail, fewer_runs, host_lines, left_out_lines, order_lines

_GROUPS = {
    Change.WORSE: "slower",
    Change.BETTER: "faster",
    Change.UNDECIDED: "not decided",
    Change.EQUIVALENT: "the same",
}
"""Verdicts as people read them, in the order in which they matter."""
_NAMED = 8
"""Functions that are the same and are named without being asked for."""
Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    seconds: tuple[str, str]
    ratio: str
    interval: str
    note: str


def comparison_text(document: Mapping[str, Any], columns: int, *, everything: bool = False) -> str:
    """Return a comparison as a table: what changed first; ``everything`` lists also what is the same, and each part."""
    base, new, rule = document["base"], document["new"], document["rule"]
    entries = sorted(
        document["functions"],
        key=lambda each: (list(_GROUPS).index(Change(each["verdict"])), bool(each["explained_by"]), -_size(each),
                          -each["calls"], each["function"]),
    )  # fmt: skip
    verdicts = Counter(Change(each["verdict"]) for each in entries)
    counted = [f"{verdicts[each]} {name}" for each, name in _said_first() if verdicts[each]]
    causes = sum(each["cause"] for each in entries)
    if 0 < causes < verdicts[Change.WORSE]:
        counted[0] += f" ({plural(causes, 'cause')})"
    runs = f"{_runs(base['lifetimes'])} against {new['lifetimes']}"
    lines = [_apart(", ".join(counted) or "No function was timed on both sides", runs, columns)]
    lines += _wrapped(order_lines(document), columns)
    lines += _wrapped(host_lines(document["environment"]), columns)
    shown = [each for each in entries if everything or each["verdict"] != Change.EQUIVALENT.value]
    if shown:
        lines += ["", *_table(shown, document, columns, everything=everything)]
    lines += _wrapped(_same(entries, rule, everything=everything), columns)
    lines += ["", *_wrapped(_footer(document, entries), columns)]
    lines += _wrapped(code_lines(document["machine_code"]), columns)
    return "\n".join(lines) + "\n"


def self_test_text(document: Mapping[str, Any]) -> str:
    """Return the rate of false alarms, by function and in all."""
    splits, alarms = document["splits"], document["alarms"]
    lines = [
        f"{escaped(title(each))}, {each['side']}: {each['alarms']} of {each['splits']} splits"
        for each in document["functions"]
    ]
    whole = (
        f"{alarms} of {splits} splits of unchanged lifetimes were called a change: {100 * alarms / splits:.2g} %,"
        f" at most {100 * document['nominal_rate']:.3g} % are to be expected."
        if splits
        else f"No function has {FEWEST_LIFETIMES} lifetimes on one side: nothing to split."
    )
    return "\n".join([*lines, whole]) + "\n"


def _table(entries: Sequence[Entry], document: Mapping[str, Any], columns: int, *, everything: bool) -> list[str]:
    modules = {each["module"] for each in entries}
    groups: list[tuple[str, list[tuple[_Row, list[str]]]]] = []
    for each in entries:
        name = _GROUPS[Change(each["verdict"])]
        if not groups or groups[-1][0] != name:
            groups.append((name, []))
        own = escaped(shortened(each["function"] if len(modules) == 1 else title(each), 40))
        first, *others = _rows(each, own, everything=everything)
        groups[-1][1].append((first, detail(each) if everything or not first.note else []))
        groups[-1][1].extend((other, []) for other in others)
    every = [row for _, members in groups for row, _ in members]
    sides = [escaped(document[side]["name"].rsplit("/", 1)[-1]) for side in ("base", "new")]
    heads = [each if cells(each) <= 12 else each[:11] + "…" for each in sides]
    level = f"{100 * document['rule']['level']:.4g} % INTERVAL"
    size = [max(cells(head), *(cells(row.seconds[at]) for row in every)) for at, head in enumerate(heads)]
    ratio, interval = max(5, *(len(row.ratio) for row in every)), max(len(level), *(len(row.interval) for row in every))
    room = max(12, columns - sum(size) - ratio - interval - 4 * 2 - 2)
    width = min(room, max(cells(row.name) for row in every))

    def line(name: str, cols: Sequence[str]) -> str:
        parts = (part.rjust(size) for part, size in zip(cols, (*size, ratio, interval), strict=True))
        return "  " + name + " " * (width - cells(name)) + "  " + "  ".join(parts)

    lines = [line("", (*heads, "RATIO", level))]
    for name, members in groups:
        lines.append(name)
        for row, sentences in members:
            if cells(row.name) > width:
                lines += textwrap.wrap(row.name, columns, initial_indent="  ", subsequent_indent="    ")
            text = line(row.name if cells(row.name) <= width else "", (*row.seconds, row.ratio, row.interval))
            if row.note and cells(text) + 2 + cells(row.note) <= columns:
                text, note = f"{text}  {row.note}", ""
            else:
                note = row.note
            lines.append(text.rstrip())
            for sentence in ([note] if note else []) + sentences:
                lines += textwrap.wrap(sentence, columns, initial_indent="      ", subsequent_indent="      ")
    return lines


def _rows(each: Entry, name: str, *, everything: bool) -> list[_Row]:
    """Return the row of all calls, and those of parts that say more."""
    parts = each["behaviours"]
    note = _note(each)
    whole = _row(each, name, note)
    if everything:
        return [
            whole,
            *(_row(part, f"{name} {_suffix(part, each)}", _GROUPS[Change(part["verdict"])]) for part in parts),
        ]
    if each["decided_by"] is None:
        unsure = [part for part in parts if part["verdict"] == Change.UNDECIDED.value]
        if each["verdict"] == each["verdict_of_summary"] or not unsure:
            return [whole]
        return [_row(unsure[0], f"{name} {_suffix(unsure[0], each)}", note)]
    part = parts[each["decided_by"]]
    suffixed = f"{name} {_suffix(part, each)}"
    also = [_row(each, name, "")] if each["verdict_of_summary"] == each["verdict"] else []
    return [_row(part, suffixed, note), *also]


def _row(one: Entry, name: str, note: str) -> _Row:
    seconds = ["–" if each is None else duration(each) for each in one["seconds"]]
    interval = one["interval"]
    return _Row(
        name,
        (seconds[0], seconds[1]),
        "–" if one["ratio"] is None else _ratio(one["ratio"]),
        "–" if interval is None else f"{_digits(interval[0])}–{_digits(interval[1])}",
        note,
    )


def _note(each: Entry) -> str:
    """Return the one thing to know about a function."""
    verdict, needed = Change(each["verdict"]), each["needed_lifetimes"]
    if verdict is Change.UNDECIDED and needed is not None:
        return f"{plural(max(1, needed - min(each['lifetimes'])), 'more run')} a side"
    if verdict in (Change.UNDECIDED, Change.EQUIVALENT):
        return ""
    if each["explained_by"]:
        return f"through {escaped(listed([one.split(' (')[0] for one in each['explained_by'][:2]]))}"
    if each["machine_code"] == "changed" or each["code_unchanged"]:
        return "code changed" if each["machine_code"] == "changed" else "code unchanged"
    cause = (each["change"] or {}).get("cause")
    return {"host": "the host explains it", "load": "another load"}.get(str(cause), "")


def _suffix(part: Entry, each: Entry) -> str:
    """Return what a part adds to the name of its function."""
    if part["expression"] is not None:
        caller = re.fullmatch(r"([^ `]+)->([^ `]+)", part["expression"])
        alone = caller is not None and caller[2] == each["function"]
        return escaped(f"by {caller[1]}" if alone and caller is not None else f"if {part['expression']}")
    if part["class"] is None:
        return {"mean": "on average", "median": "by the median"}.get(part["summary"], f"at {part['summary']}")
    lower, upper = part["class"]["lower_seconds"], part["class"]["upper_seconds"]
    if upper is None:
        return f"over {duration(lower)}"
    return f"up to {duration(upper)}" if lower <= 0 else f"from {duration(lower)} to {duration(upper)}"


def _same(entries: Sequence[Entry], rule: Mapping[str, Any], *, everything: bool) -> list[str]:
    same = [each for each in entries if each["verdict"] == Change.EQUIVALENT.value]
    if everything or not same:
        return []
    names = listed([escaped(shortened(each["function"], 40)) for each in same]) if len(same) <= _NAMED else ""
    more = "" if names else "; --all lists them"
    return [f"the same, within {100 * rule['tolerance']:.3g} %: {names or plural(len(same), 'function')}{more}"]


def _footer(document: Mapping[str, Any], entries: Sequence[Entry]) -> list[str]:
    summary = document["rule"]["summary"]
    what = {"median": "Medians", "mean": "Means", "trimmed": "Trimmed means"}.get(summary, summary)
    lines = [f"{what} of runs unless said; each run counts once."] if entries else []
    lines += fewer_runs(document) + left_out_lines(document)
    for side in ("base", "new"):
        names = document[f"only_{side}"]
        if names:
            shown = listed([escaped(each) for each in names[:3]]) + (" and others" if len(names) > 3 else "")
            lines.append(f"Timed in {escaped(document[side]['name'])} only: {plural(len(names), 'function')}, {shown}.")
    if document["skipped_lines"]:
        lines.append(f"{plural(document['skipped_lines'], 'bad line')} skipped.")
    return lines


def _said_first() -> list[tuple[Change, str]]:
    order = (Change.WORSE, Change.BETTER, Change.EQUIVALENT, Change.UNDECIDED)
    return [(each, _GROUPS[each]) for each in order]


def _size(each: Entry) -> float:
    """Return by how much the part of a function changed that decided."""
    return _distance(each if each["decided_by"] is None else each["behaviours"][each["decided_by"]])


def _distance(one: Entry) -> float:
    """Return how far a ratio is from 1 in either direction."""
    ratio = one["ratio"]
    return abs(ratio - 1.0 if ratio >= 1.0 else 1.0 / ratio - 1.0) if ratio else 0.0


def _ratio(value: float) -> str:
    return f"{_digits(value)}×"


def _digits(value: float) -> str:
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else count(value)


def _runs(number: int) -> str:
    return plural(number, "run")


def _apart(left: str, right: str, columns: int) -> str:
    gap = columns - cells(left) - cells(right)
    return f"{left}{' ' * gap}{right}" if gap >= 2 else f"{left}; {right}"


def _wrapped(sentences: Sequence[str], columns: int) -> list[str]:
    return [line for each in sentences for line in textwrap.wrap(each, columns, subsequent_indent="    ")]
