"""A comparison as a table: what became slower first, a row a function, and below it what else one must know."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from specmine.analysis.compare.rows import GROUPS, Row, counted, rows_of, worst_first
from specmine.analysis.documents import title
from specmine.mining.comparison.self_test import FEWEST_LIFETIMES
from specmine.mining.regression.comparison import Change
from specmine.model.text import cells, escaped, listed, plural, shortened

from .comparison_notes import code_lines, detail, fewer_runs, host_lines, left_out_lines, order_lines

_NARROWEST_NAME = 12
_NAMED = 8
"""Functions that are the same and are named without being asked for."""
Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Line:
    name: str
    row: Row
    sentences: Sequence[str]


def comparison_text(document: Mapping[str, Any], columns: int, *, everything: bool = False) -> str:
    """Return a comparison as a table: what changed first; ``everything`` lists also what is the same, and each part."""
    base, new, rule = document["base"], document["new"], document["rule"]
    entries = worst_first(document["functions"])
    numbers = counted(entries)
    slower, causes = (sum(test(each) for each in entries) for test in (_is_slower, lambda each: bool(each["cause"])))
    if 0 < causes < slower:
        numbers[0] += f" ({plural(causes, 'cause')})"
    runs = f"{_runs(base['lifetimes'])} against {new['lifetimes']}"
    lines = _apart(", ".join(numbers) or "No function was timed on both sides", runs, columns)
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
    groups: dict[str, list[_Line]] = {}
    for each in entries:
        own = shortened(each["function"] if len(modules) == 1 else title(each), 40)
        lines = groups.setdefault(GROUPS[Change(each["verdict"])], [])
        for at, row in enumerate(rows_of(each, everything=everything)):
            explained = at == 0 and (everything or not row.note)
            name = escaped(f"{own} {row.suffix}".rstrip())
            shown = replace(row, note=GROUPS[row.verdict]) if everything and at else row
            lines.append(_Line(name, shown, detail(each) if explained else []))
    every = [line for members in groups.values() for line in members]
    sides = [escaped(document[side]["name"].rsplit("/", 1)[-1]) for side in ("base", "new")]
    heads = [each if cells(each) <= 12 else each[:11] + "…" for each in sides]
    level = f"{100 * document['rule']['level']:.4g} % INTERVAL"
    size = [max(cells(head), *(cells(each.row.seconds[at]) for each in every)) for at, head in enumerate(heads)]
    size += [
        max(5, *(len(each.row.ratio) for each in every)),
        max(len(level), *(len(each.row.interval) for each in every)),
    ]
    first = 0 if columns >= _NARROWEST_NAME + sum(size) + 2 * len(size) + 2 else 2  # no room: without the durations
    room = columns - sum(size[first:]) - 2 * (len(size) - first) - 2
    width = min(max(_NARROWEST_NAME, room), max(cells(each.name) for each in every))

    def line(name: str, fields: Sequence[str]) -> str:
        parts = (field.rjust(wide) for field, wide in zip(fields[first:], size[first:], strict=True))
        return "  " + name + " " * (width - cells(name)) + "  " + "  ".join(parts)

    table = [line("", (*heads, "RATIO", level))]
    for group, members in groups.items():
        table.append(group)
        for member in members:
            table += _line(member, line, width, columns)
    return table


def _line(each: _Line, line: Callable[[str, Sequence[str]], str], width: int, columns: int) -> list[str]:
    """Return the lines of one row: the name above it if it is too long, its note below it if there is no room."""
    row, fits = each.row, cells(each.name) <= width
    lines = [] if fits else textwrap.wrap(each.name, columns, initial_indent="  ", subsequent_indent="    ")
    text = line(each.name if fits else "", (*row.seconds, row.ratio, row.interval))
    note = escaped(row.note)
    beside = bool(note) and cells(text) + 2 + cells(note) <= columns
    lines.append((f"{text}  {note}" if beside else text).rstrip())
    for sentence in ([] if beside or not note else [note]) + list(each.sentences):
        lines += textwrap.wrap(sentence, columns, initial_indent="      ", subsequent_indent="      ")
    return lines


def _is_slower(each: Entry) -> bool:
    return bool(each["verdict"] == Change.WORSE.value)


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


def _runs(number: int) -> str:
    return plural(number, "run")


def _apart(left: str, right: str, columns: int) -> list[str]:
    gap = columns - cells(left) - cells(right)
    return [f"{left}{' ' * gap}{right}"] if gap >= 2 else _wrapped([f"{left}; {right}"], columns)


def _wrapped(sentences: Sequence[str], columns: int) -> list[str]:
    return [line for each in sentences for line in textwrap.wrap(each, columns, subsequent_indent="    ")]
