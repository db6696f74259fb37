"""A comparison as a table with sentences: what changed, where in the program, and what may have caused it."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from specmine.analysis.documents import title
from specmine.mining.regression.comparison import Change
from specmine.mining.regression.self_test import FEWEST_LIFETIMES
from specmine.mining.regression.self_vs_callees import Part
from specmine.model.text import cells, count, duration, escaped, listed, plural

_HEADS = (("VERDICT", 10), ("RATIO", 7), ("INTERVAL", 16), ("LIFETIMES", 9), ("DETECTABLE", 10))
_GAP = 2
_RANK = {Change.WORSE: 0, Change.BETTER: 1, Change.UNDECIDED: 2, Change.EQUIVALENT: 3}
MOST_SUSPECTS = 10


def comparison_text(document: Mapping[str, Any], columns: int) -> str:
    """Return a comparison as a table: what changed first, and below each row what it means."""
    entries = sorted(
        document["functions"],
        key=lambda each: (_RANK[Change(each["verdict"])], bool(each["explained_by"]), -each["calls"], each["function"]),
    )
    base, new, rule = document["base"], document["new"], document["rule"]
    lines = textwrap.wrap(
        f"{escaped(new['name'])} against {escaped(base['name'])}: {rule['summary']} of"
        f" {new['lifetimes']} and {base['lifetimes']} lifetimes, {100 * rule['level']:.4g} % intervals,"
        f" tolerance {100 * rule['tolerance']:.3g} %.",
        columns,
    )
    if document["skipped_lines"]:
        lines.append(f"{plural(document['skipped_lines'], 'bad line')} skipped.")
    for sentence in _hosts(document["environment"]):
        lines += textwrap.wrap(sentence, columns, subsequent_indent="    ")
    if not entries:
        return "\n".join([*lines, "No function was seen on both sides."]) + "\n"
    names = [escaped(title(each)) for each in entries]
    room = columns - sum(size + _GAP for _, size in _HEADS)
    name_width = max(8, min(room, max(cells(name) for name in names)))
    lines += ["", _row("FUNCTION", [head for head, _ in _HEADS], name_width)]
    for name, each in zip(names, entries, strict=True):
        facts = _facts(each)
        if cells(name) <= name_width:
            lines.append(_row(name, facts, name_width))
        else:
            lines += [*textwrap.wrap(name, columns, subsequent_indent="  ", break_on_hyphens=False)]
            lines.append(_row("", facts, name_width))
        for sentence in _sentences(each):
            lines += textwrap.wrap(sentence, columns, initial_indent="    ", subsequent_indent="    ")
    verdicts = [each["verdict"] for each in entries]
    counted = [f"{verdicts.count(each.value)} {each.value}" for each in _RANK if each.value in verdicts]
    causes = sum(each["cause"] for each in entries)
    if 0 < causes < verdicts.count(Change.WORSE.value):
        counted[0] += f" ({plural(causes, 'cause')})"
    lines += ["", f"{plural(len(entries), 'function')}: {', '.join(counted)}."]
    for sentence in _machine_code(document["machine_code"]):
        lines += textwrap.wrap(sentence, columns, subsequent_indent="    ")
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


def _facts(each: Mapping[str, Any]) -> list[str]:
    interval, detectable = each["interval"], each["smallest_detectable_ratio"]
    return [
        each["verdict"],
        "-" if each["ratio"] is None else f"{each['ratio']:.4f}"[:7],
        "-" if interval is None else f"{interval[0]:.4f}..{interval[1]:.4f}"[:16],
        f"{each['lifetimes'][0]}, {each['lifetimes'][1]}",
        "-" if detectable is None else f"{100 * (detectable - 1):.3g} %",
    ]


def _sentences(each: Mapping[str, Any]) -> list[str]:
    sentences = [f"{each['reason'][:1].upper()}{each['reason'][1:]}."] if each["verdict"] != "equivalent" else []
    if each["needed_lifetimes"] is not None:
        sentences.append(f"Needed: {count(each['needed_lifetimes'])} lifetimes a side.")
    if each["explained_by"]:
        sentences.append(f"Explained by {escaped(listed(each['explained_by']))}.")
    elif each["explains"]:
        sentences.append(f"Explains {escaped(listed(each['explains']))}.")
    place = _part_changed(each)
    if place:
        sentences.append(escaped(place))
    if each["change"] is not None:
        kinds = ", ".join(each["change"]["kinds"]) or "no class alone"
        sentences.append(f"{kinds}; likely cause: {each['change']['cause']} ({each['change']['reason']}).")
    elif each["host"] and each["host"]["explained"]:
        sentences.append(f"The host explains it: {each['host']['reason']}.")
    return sentences


def _row(name: str, facts: Sequence[str], name_width: int) -> str:
    line = name + " " * (name_width - cells(name))
    for at, (fact, (_, size)) in enumerate(zip(facts, _HEADS, strict=True)):
        line += " " * _GAP + (fact.ljust(size) if at == 0 else fact.rjust(size))
    return line.rstrip()


def _part_changed(each: Mapping[str, Any]) -> str:
    """Return in words where in a function its change is, '' if that is not known."""
    where = each["where"]
    if where is None or where["part"] == Part.UNKNOWN.value:
        return ""
    through = f" ({where['through'][0]} first)" if where["through"] else ""
    probed = ", and in callees without a probe" if where["by"] == "probes" else ""
    return {
        Part.SELF.value: f"The change is in its own time{probed}.",
        Part.CALLEES.value: f"The change is in what it calls{through}.",
        Part.BOTH.value: f"The change is in its own time{probed} and in what it calls{through}.",
    }[where["part"]]


def _machine_code(document: Mapping[str, Any]) -> Sequence[str]:
    """Return one sentence on all code and one on each suspect."""
    counts = document["counts"]
    compared = sum(counts[kind] for kind in ("changed", "moved", "same"))
    if not compared:
        return []
    lines = [
        f"Machine code: of {plural(compared, 'function')} reached in both {counts['changed']} changed,"
        f" {counts['moved']} only moved."
    ]
    shown = document["suspects"][:MOST_SUSPECTS]
    lines += [f"{number}. {_suspect(each)}" for number, each in enumerate(shown, 1)]
    more = len(document["suspects"]) - len(shown)
    return [*lines, f"{more} more changed functions are in --format json."] if more > 0 else lines


def _suspect(each: Mapping[str, Any]) -> str:
    name = escaped(title(each))
    parts = [
        {
            "changed": "its code changed",
            "new": "reached in the new build only",
        }.get(each["code"], f"its code is as it was; it calls {escaped(listed(each['through'][:3]))}")
    ]
    before, after = each["self_share"]
    if before is not None and after is not None and max(before, after) >= 0.005:
        parts.append(f"{100 * before:.3g} % of the CPU time inside it became {100 * after:.3g} %")
    elif after is not None and after >= 0.005:
        parts.append(f"{100 * after:.3g} % of the CPU time inside it")
    if each["ratio"] is not None:
        parts.append(f"its calls take {each['ratio']:.4g} times as long")
    return f"{name}: {'; '.join(parts)}."


def _hosts(document: Mapping[str, Any]) -> list[str]:
    """Return a sentence about hosts that differ in what both are known for, [] if they do not."""
    known = [each for each in document["differences"] if each["base"] is not None and each["new"] is not None]
    if not known:
        return []
    facts = ", ".join(f"{_word(each['property'])} {_value(each, 'new')}, not {_value(each, 'base')}" for each in known)
    return [f"The hosts differ: {facts}."]


def _word(name: str) -> str:
    return name.removesuffix("_seconds").replace("_", " ")


def _value(each: Mapping[str, Any], side: str) -> str:
    value = each[side]
    if isinstance(value, str):
        return escaped(value)
    return duration(value) if each["property"].endswith("_seconds") else f"{value:.3g}"
