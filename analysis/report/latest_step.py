"""What a report begins with: the newest build against the one before it, the worst first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from specmine.analysis.compare.rows import GROUPS, Row, counted, rows_of, worst_first
from specmine.analysis.documents import title
from specmine.mining.regression.comparison import Change, Rule
from specmine.model.text import in_markup, plural

_MOST_SAME = 200


def latest_step(document: Mapping[str, Any], labels: Mapping[str, str], rule: Rule) -> list[str]:
    """Return headline, warning and table."""
    steps = document["steps"]
    if not steps:
        return [f"<h1>{in_markup(' '.join(labels.values()))}: only one build was seen</h1>"]
    last = steps[-1]
    entries = worst_first(_entries(document, last))
    base, new = (in_markup(labels[last[side]]) for side in ("base", "new"))
    said = ", ".join(counted(entries)) or "no function was timed in both"
    lines = [f"<h1>{new} against {base}: {said}</h1>"]
    seen = last["lifetimes_seen"]
    runs = f"{plural(seen[1], 'run')} against {seen[0]}; " if seen else ""
    lines.append(
        f"<p class='mute'>{runs}{in_markup(rule.summary)} of runs unless said, {100 * rule.level:g} % intervals;"
        f" the same is within {100 * rule.tolerance:g} %.</p>"
    )
    order = last["order"]
    if order and order["warning"]:
        text = f"{order['warning']}. Remedy: {order['remedy']}.".replace("lifetimes", "runs")
        lines.append(f"<p class='warn'>{in_markup(text[:1].upper() + text[1:])}</p>")
    if not entries:
        return lines
    rows = "".join(
        _row(each, row, first=at == 0) for each in entries[:_MOST_SAME] for at, row in enumerate(rows_of(each))
    )
    head = "".join(f"<th class='r'>{each}</th>" for each in (base, new, "ratio", f"{100 * rule.level:g} % interval"))
    table = f"<table><tr><th>function</th><th></th>{head}<th></th></tr>{rows}</table>"
    return [*lines, f"<div class='wide'>{table}</div>"]


def by_weight(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the functions of a report, those first that the newest step shows worst; others behind."""
    newest = {}
    if document["steps"]:
        entries = worst_first(_entries(document, document["steps"][-1]))
        newest = {(each["function"], each["module"]): at for at, each in enumerate(entries)}
    return sorted(document["functions"], key=lambda each: newest.get((each["function"], each["module"]), len(newest)))


def left_out_list(document: Mapping[str, Any], labels: Mapping[str, str]) -> str:
    """Return the runs that the newest step could not use, with the reason; '' if it used all."""
    if not document["steps"]:
        return ""
    last = document["steps"][-1]
    found: dict[tuple[str, str, str, str], list[str]] = {}
    for each in _entries(document, last):
        for one in each["lifetimes_left_out"]:
            run = labels[last[one["side"]]], one["host"], one["start"] or one["lifetime"], one["reason"]["text"]
            found.setdefault(run, []).append(title(each))
    if not found:
        return ""
    rows = "".join(
        f"<tr>{''.join(f'<td>{in_markup(field)}</td>' for field in run)}<td>{in_markup(_named(names))}</td></tr>"
        for run, names in sorted(found.items())
    )
    head = "".join(f"<th>{each}</th>" for each in ("build", "host", "run", "why", "functions"))
    return (
        f"<details><summary>Runs left out ({len({run[:3] for run in found})})</summary>"
        f"<div class='wide'><table><tr>{head}</tr>{rows}</table></div></details>"
    )


def anchor(entry: Mapping[str, Any]) -> str:
    """Return the place of a function on the page."""
    return "f" + "".join(f"{letter:02x}" for letter in title(entry).encode())


def _entries(document: Mapping[str, Any], last: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    pair = last["base"], last["new"]
    return [step for each in document["functions"] for step in each["steps"] if (step["base"], step["new"]) == pair]


def _row(each: Mapping[str, Any], row: Row, *, first: bool) -> str:
    name = f"<a href='#{anchor(each)}'>{in_markup(title(each))}</a>" if first else in_markup(title(each))
    colour = f" {row.verdict.value}" if row.verdict in (Change.WORSE, Change.BETTER) else ""
    fields = "".join(f"<td class='r'>{each}</td>" for each in row.seconds)
    return (
        f"<tr><td>{name} {in_markup(row.suffix)}</td><td class='{colour.strip()}'>{GROUPS[row.verdict]}</td>{fields}"
        f"<td class='r{colour}'>{row.ratio}</td><td class='r'>{row.interval}</td><td>{in_markup(row.note)}</td></tr>"
    )


def _named(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
