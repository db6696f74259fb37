"""A report as one HTML page with its drawings and its style inside: no script, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from specmine import __version__
from specmine.analysis.charts.bars import ratio_axis
from specmine.analysis.charts.drawing import Drawing
from specmine.analysis.charts.sheet import style_sheet
from specmine.analysis.compare.rows import worst_first
from specmine.analysis.documents import title
from specmine.analysis.lifetimes.lifetime import FunctionLifetime
from specmine.analysis.lifetimes.selection import RecordedLifetimes
from specmine.analysis.wording.typesetting import day_of, typeset
from specmine.mining.regression.comparison import Change, Rule
from specmine.model.text import count, in_markup, listed, plural, shortened

from .all_builds import all_builds_table, code_table
from .behaviours import Stated
from .changes import KINDS, ChangeRow, change_groups, lead_sentence, verdict_sentence
from .left_out import left_out_list
from .one_build import one_build
from .portrait import SUMMED, portrait
from .specialists import specialists

MOST_DRAWN = 60
"""Functions with a section of their own, those that changed first."""
_MOST_ROWS = 200
"""Rows of a verdict."""
Observed = Sequence[FunctionLifetime]


def page(document: Mapping[str, Any], recorded: RecordedLifetimes, rule: Rule) -> str:
    """Return the report on what was recorded as HTML."""
    observed, stated = recorded.observed, Stated(recorded)
    labels = {each["build"]: each["label"] for each in document["builds"]}
    compared = bool(document["steps"]) and any(each["steps"] for each in document["functions"])
    head, main = (
        _two_builds(document, observed, labels, rule, stated)
        if compared
        else one_build(document, observed, labels, stated)
    )
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{in_markup(head)} · specmine report</title>",
        f"<style>{style_sheet()}</style></head><body>",
        '<main id="main">',
        f'<p class="crumb">specmine report · {in_markup(str(document["source"]))}</p>',
        f"<h1>{in_markup(head)}</h1>",
        *main,
        "</main>",
        f"<footer>specmine {in_markup(__version__)} · times UTC · no script and nothing loaded from elsewhere: "
        f"this file "
        "can be mailed and archived</footer>",
        "</body></html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _two_builds(
    document: Mapping[str, Any], observed: Observed, labels: Mapping[str, str], rule: Rule, stated: Stated
) -> tuple[str, list[str]]:
    last = document["steps"][-1]
    pair = last["base"], last["new"]
    entries = worst_first(_entries(document, pair))
    old, new = labels[pair[0]], labels[pair[1]]
    drawn = entries[:MOST_DRAWN]
    parts = [
        f'<p class="lead">{_words(lead_sentence(entries, rule.tolerance))}</p>',
        _data(document, [each for each in observed if each.build in pair], f"{plural(len(pair), 'build')} compared"),
        _warning(last["order"]),
        "<h2>All changes</h2>",
        _changes_table(entries, (old, new), rule, {_key(each) for each in drawn}, stated),
    ]
    groups: dict[tuple[str, str], list[FunctionLifetime]] = {}
    for each in observed:
        groups.setdefault(each.key, []).append(each)
    for entry in drawn:
        parts += _section(entry, groups.get(_key(entry), []), pair, labels, rule, document, stated)
    if len(entries) > len(drawn):
        parts.append(f'<p class="hint">{count(len(entries) - len(drawn))} more functions are in the table only.</p>')
    parts += [
        all_builds_table(document, labels, entries),
        code_table(document, labels),
        _how_to_read(rule),
        left_out_list(entries, {"base": old, "new": new}),
    ]
    return f"{new} against {old}: {verdict_sentence(entries)}", parts


def _entries(document: Mapping[str, Any], pair: tuple[str, str]) -> list[Mapping[str, Any]]:
    return [step for each in document["functions"] for step in each["steps"] if (step["base"], step["new"]) == pair]


def _key(entry: Mapping[str, Any]) -> tuple[str, str]:
    return entry["function"], entry["module"]


def _data(document: Mapping[str, Any], observed: Observed, what: str) -> str:
    """Return what the report rests on, and the command that makes it again."""
    runs = len({(each.build, each.host, each.lifetime) for each in observed})
    calls = sum(each.sample.calls for each in observed)
    hosts = sorted({each.host for each in observed if each.host})
    named = f" on {listed(hosts[:4])}{f' and {count(len(hosts) - 4)} more' if len(hosts) > 4 else ''}" if hosts else ""
    dates = [each.start_ns for each in observed if each.start_ns > 0]
    days = (
        list(dict.fromkeys(day_of(datetime.fromtimestamp(ns / 1e9, UTC)) for ns in (min(dates), max(dates))))
        if dates
        else []
    )
    seen = f", {' to '.join(days)}" if days and not days[0].endswith(" 1970") else ""
    rows = (
        ("Data", f"{what}: {plural(runs, 'run')}{named}, {plural(calls, 'call')} timed{seen}"),
        ("Repeat it", Drawing(f"<code>specmine report {in_markup(str(document['source']))}</code>")),
    )
    told = "".join(
        f"<div><dt>{name}</dt><dd>{text if isinstance(text, Drawing) else _words(text)}</dd></div>"
        for name, text in rows
    )
    return f'<dl class="facts">{told}</dl>'


def _warning(order: Mapping[str, Any] | None) -> str:
    if not order or not order["warning"]:
        return ""
    text = f"{order['warning']}. Remedy: {order['remedy']}.".replace("lifetimes", "runs")
    return f'<p class="note">{in_markup(text[:1].upper() + text[1:])}</p>'


def _changes_table(
    entries: Sequence[Mapping[str, Any]],
    sides: tuple[str, str],
    rule: Rule,
    drawn: set[tuple[str, str]],
    stated: Stated,
) -> str:
    if not entries:
        return "<p>No function was timed in both builds.</p>"
    bodies = []
    for group in change_groups(entries, rule.tolerance, most=_MOST_ROWS):
        rows = "".join(_row(row, drawn, stated) for row in group.rows)
        bodies.append(
            f'<tbody><tr class="group"><th colspan="6" scope="rowgroup">{group.text} · '
            f"{count(group.functions)}</th></tr>"
            f"{rows}</tbody>"
        )
    head = "".join(f'<th scope="col" class="r h1">{in_markup(each)}</th>' for each in sides)
    caption = (
        f"{SUMMED[rule.summary]} of runs unless said. Ratio: new by old, with its {100 * rule.level:g} % interval; "
        f"the grey "
        f"strip, ±{100 * rule.tolerance:g} %, counts as the same."
    )
    return (
        f'<div class="scroll"><table><caption>{_words(caption)}</caption><thead><tr><th scope="col">Function</th>{head}'
        f'<th scope="col" class="r">Ratio</th><th scope="col" class="picture">{ratio_axis()}</th>'
        f'<th scope="col" class="h2">Note</th></tr></thead>{"".join(bodies)}</table></div>'
    )


def _row(row: ChangeRow, drawn: set[tuple[str, str]], stated: Stated) -> str:
    name = in_markup(stated.title(_key(row.entry))) if row.name else ""
    if name and _key(row.entry) in drawn:
        name = f'<a class="f" href="#{anchor(row.entry)}">{name}</a>'
    suffix = f' <span class="sub">{_words(row.suffix)}</span>' if row.suffix else ""
    colour = row.kind if row.kind != "past" else ""
    cells = "".join(f'<td class="r h1">{typeset(in_markup(each))}</td>' for each in row.seconds)
    return (
        f'<tr><th scope="row">{name}{suffix}</th>{cells}<td class="r"><span class="{colour}">{row.ratio}</span> '
        f'<span class="was">{row.interval}</span></td><td class="picture">{row.picture}</td>'
        f'<td class="h2">{_words(row.note)}</td></tr>'
    )


def _section(
    entry: Mapping[str, Any],
    group: Observed,
    pair: tuple[str, str],
    labels: Mapping[str, str],
    rule: Rule,
    document: Mapping[str, Any],
    stated: Stated,
) -> list[str]:
    found = portrait(entry, group, pair, labels, rule.summary, rule.level, stated)
    field = ", the field is the asserted range of the median" if stated.normal(_key(entry), pair[1]) else ""
    colour = KINDS[Change(entry["verdict"])]
    colour = colour if colour != "past" else "mute"
    figures = [
        (found.distribution, f"Durations of its calls, as shares of each build's own: {labels[pair[0]]} in grey, "
         f"{labels[pair[1]]} in blue. Strokes are median and p99 of {labels[pair[1]]}{field}. {found.facts}."),
        (found.behaviours, f"The same for each behaviour: {labels[pair[0]]} in grey, {labels[pair[1]]} in colour."),
        (found.runs, f"{found.which}, a dot a run; the stroke is their mean."),
    ]  # fmt: skip
    drawn = "".join(
        f'<figure>{drawing}<figcaption class="cap">{_words(caption)}</figcaption></figure>'
        for drawing, caption in figures
        if drawing
    )
    return [
        f'<h2 id="{anchor(entry)}"><span class="f">{in_markup(shortened(stated.title(_key(entry)), 60))}</span> '
        f'<span class="{colour}">{_words(found.change)}</span></h2>',
        f"<p>{_words(found.sentence)}</p>",
        f'<div class="two">{drawn}</div>' if drawn else "",
        specialists(entry, group, document, rule, labels),
    ]


def anchor(entry: Mapping[str, Any]) -> str:
    """Return the place of a function on the page."""
    return "f" + "".join(f"{letter:02x}" for letter in title(entry).encode("utf-8", "surrogateescape"))


def _words(text: str) -> str:
    return typeset(in_markup(text))


def _how_to_read(rule: Rule) -> str:
    return (
        "<h2>How to read this</h2>"
        "<p><strong>Run</strong>: one start of the program. Calls of one run are not independent, so runs are what "
        "is compared. "
        "<strong>Median, p90, p99</strong>: half, nine tenths, 99 of 100 calls take at most so long. "
        "<strong>Ratio</strong>: new by "
        "old; 1.50× "
        f"is half as long again. <strong>Interval</strong>: where the true ratio lies, with "
        f"{100 * rule.level:g}&nbsp;% "
        f"confidence. "
        f"<strong>The same</strong>: the whole interval lies within ±{100 * rule.tolerance:g}&nbsp;%, for all "
        f"calls, each "
        f"class of "
        "durations and each behaviour. <strong>Not decided</strong>: it may be the same and it may not; more runs "
        "would show it. "
        "<strong>Behaviour</strong>: calls that come by the same callers, as <i>by db_get</i>; "
        "<strong>class</strong>: calls of about "
        "the same "
        "duration, as <i>over 36&nbsp;µs</i>.</p>"
    )
