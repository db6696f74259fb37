"""A report as one HTML page with its drawings inside: no script, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from specmine.analysis.compare.rows import GROUPS, suffix_of
from specmine.analysis.documents import title
from specmine.analysis.lifetimes.lifetime import FunctionLifetime
from specmine.mining.regression.comparison import Change, Rule
from specmine.model.text import duration, in_markup

from .latest_step import anchor, by_weight, latest_step, left_out_list
from .svg import COLOURS, intervals_svg, lag_svg, ratios_svg, sequence_svg

_MOST_SUSPECTS = 10
_SUMMED = {
    "mean": "Mean", "median": "Median", "trimmed": "Trimmed mean", "p90": "90 % quantile", "p99": "99 % quantile",
}  # fmt: skip


def page(document: Mapping[str, Any], observed: Sequence[FunctionLifetime], rule: Rule) -> str:
    """Return the report as HTML with its drawings inside."""
    labels = {each["build"]: each["label"] for each in document["builds"]}
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width, initial-scale=1'>",
        f"<title>specmine report</title><style>{_STYLE}</style></head><body>",
        *latest_step(document, labels, rule),
        *_all_builds(document, labels),
        _code_table(document),
    ]
    for entry in by_weight(document):
        group = [each for each in observed if each.key == (entry["function"], entry["module"])]
        parts += [
            f"<h2 id='{anchor(entry)}'>{in_markup(title(entry))}</h2>",
            _figure(
                _ratios(entry, rule),
                "New by old, of all its calls, each class of durations and each behaviour, with"
                " 95 % intervals. Within the grey field a change does not matter. Coloured: slower or faster.",
            ),
            _figure(
                intervals_svg(entry), f"{_SUMMED[rule.summary]} of all its calls in each build, with its interval."
            ),
            _figure(
                sequence_svg(group, document, rule),
                f"{_SUMMED[rule.summary]} of each run, in the order of time. A dashed line is where the build changes.",
            ),
            _steps_table(entry, document),
            _specialists(_within_table(entry) + lag_svg(group, document)),
        ]
    parts += [left_out_list(document, labels), _WORDS, "</body></html>"]
    return "\n".join(part for part in parts if part) + "\n"


def _figure(drawing: str, caption: str) -> str:
    return f"<figure>{drawing}<figcaption>{in_markup(caption)}</figcaption></figure>" if drawing else ""


def _ratios(entry: Mapping[str, Any], rule: Rule) -> str:
    """Return the ratios of the newest build to the one before it, drawn."""
    if not entry["steps"]:
        return ""
    step = entry["steps"][-1]
    return ratios_svg(step, ["all calls", *(suffix_of(part, step) for part in step["behaviours"])], rule.tolerance)


def _all_builds(document: Mapping[str, Any], labels: Mapping[str, str]) -> list[str]:
    """Return the table of all builds, if there are more than the two that were just compared."""
    if len(labels) < 3:
        return []
    heads = "".join(f"<th>{in_markup(label)}</th>" for label in labels.values())
    rows = []
    for entry in by_weight(document):
        steps = {step["new"]: step for step in entry["steps"]}
        cells = "".join(_cell(steps.get(build)) for build in labels)
        name = f"<a href='#{anchor(entry)}'>{in_markup(title(entry))}</a>"
        rows.append(f"<tr><th>{name}</th>{cells}{_cell(entry['drift'])}</tr>")
    return [
        "<h2>Over all builds</h2><p>Each build against the one before it; in the last column, the last against the"
        " first. = is the same, ? not decided.</p>",
        f"<div class='wide'><table><tr><th>function</th>{heads}<th>first to last</th></tr>",
        f"{''.join(rows)}</table></div>",
    ]


def _cell(step: Mapping[str, Any] | None) -> str:
    if step is None:
        return "<td></td>"
    verdict = Change(step["verdict"])
    if verdict in COLOURS:
        ratio = (step if step["decided_by"] is None else step["behaviours"][step["decided_by"]])["ratio"]
        return f"<td class='{verdict.value}'>{100 * (ratio - 1):+.2f} %</td>"
    return f"<td title='{in_markup(step['reason'])}'>{'=' if verdict is Change.EQUIVALENT else '?'}</td>"


def _specialists(content: str) -> str:
    return f"<details><summary>Single calls, for specialists</summary>{content}</details>" if content else ""


def _within_table(entry: Mapping[str, Any]) -> str:
    """Return how the calls of a lifetime depend on each other, a row a build."""
    rows = "".join(
        f"<tr><td>{in_markup(build['label'])}</td>"
        f"<td>{found['lifetimes_dependent']} of {found['lifetimes_in_order']}</td>"
        f"<td>{' '.join(f'{each:.2f}' for each in found['autocorrelation'][:5]) or '-'}</td>"
        f"<td>{_factor(found['impact_factor'])}</td><td>{_factor(found['impact_factor_centred'])}</td>"
        f"<td>{found['lifetimes_sampled']}</td></tr>"
        for build in entry["builds"]
        if (found := build["within"])["lifetimes_in_order"] or found["lifetimes_sampled"]
    )
    head = "".join(f"<th>{each}</th>" for each in (
        "build", "lifetimes whose calls depend on each other", "autocorrelation at 1 to 5 calls", "impact factor",
        "centred", "lifetimes sampled"))  # fmt: skip
    return f"<div class='wide'><table><tr>{head}</tr>{rows}</table></div>" if rows else ""


def _factor(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _steps_table(entry: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    """Return each step of a function with its parts: all calls, classes and behaviours."""
    labels = {each["build"]: each["label"] for each in document["builds"]}
    rows = "".join(
        _part_row(part, step, labels, at)
        for step in [*entry["steps"], *([entry["drift"]] if entry["drift"] else [])]
        for at, part in enumerate([{**step, "verdict": step["verdict_of_summary"]}, *step["behaviours"]])
    )
    head = "".join(
        f"<th>{each}</th>"
        for each in ("newer", "older", "calls", "verdict", "older", "newer", "ratio", "interval", "runs", "why")
    )
    table = f"<div class='wide'><table><tr>{head}</tr>{rows}</table></div>"
    return table if rows else "<p>Only one build was seen.</p>"


def _part_row(part: Mapping[str, Any], step: Mapping[str, Any], labels: Mapping[str, str], at: int) -> str:
    verdict = Change(part["verdict"])
    builds = (labels[step["new"]], labels[step["base"]]) if at == 0 else ("", "")
    calls = suffix_of(part, step) if at else "all"
    seconds = ["–" if each is None else duration(each) for each in part["seconds"]]
    why = _why(step) if at == 0 else part["reason"]
    fields = [
        *builds,
        calls,
        *seconds,
        _number(part["ratio"]),
        " .. ".join(map(_number, part["interval"] or ())) or "–",
        f"{part['lifetimes'][0]}, {part['lifetimes'][1]}",
        why,
    ]
    cells = [f"<td>{in_markup(each)}</td>" for each in fields]
    cells.insert(3, f"<td class='{verdict.value}'>{GROUPS[verdict]}</td>")
    return f"<tr>{''.join(cells)}</tr>"


def _why(step: Mapping[str, Any]) -> str:
    change = step["change"]
    return f"{step['reason']}; likely cause: {change['cause']} ({change['reason']})" if change else str(step["reason"])


def _code_table(document: Mapping[str, Any]) -> str:
    """Return the functions whose machine code differs from build to build, by rank."""
    labels = {each["build"]: each["label"] for each in document["builds"]}
    rows = "".join(
        f"<tr><td>{in_markup(labels[step['new']])}</td><td>{in_markup(labels[step['base']])}</td>"
        f"<td>{in_markup(title(one))}</td><td>{in_markup(_code(one))}</td></tr>"
        for step in document["machine_code"]
        for one in step["suspects"][:_MOST_SUSPECTS]
    )
    head = "".join(f"<th>{each}</th>" for each in ("newer", "older", "suspect", "why"))
    return f"<h2>Machine code</h2><div class='wide'><table><tr>{head}</tr>{rows}</table></div>" if rows else ""


def _code(one: Mapping[str, Any]) -> str:
    change = {"changed": "its code changed", "new": "reached in the newer build only"}.get(one["code"], "")
    parts = [change or f"calls {', '.join(one['through'][:3])}"]
    if None not in one["self_share"]:
        before, after = (100 * each for each in one["self_share"])
        parts.append(f"{before:.3g} % of the CPU time inside it became {after:.3g} %")
    if one["ratio"] is not None:
        parts.append(f"{one['ratio']:.4g} times as long a call")
    return "; ".join(parts)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


_WORDS = (
    "<h2>How to read this</h2><p><strong>Run</strong>: one start of the program. <strong>Ratio</strong>: new by old;"
    " 1.50× is half as long again. <strong>Interval</strong>: where the true ratio lies, judged by how runs differ, not"
    " calls. <strong>The same</strong>: the whole interval lies within the tolerance, for all calls, each class of"
    " durations and each behaviour. <strong>Not decided</strong>: it may be the same and it may not; more runs would"
    " show it. <strong>Code unchanged</strong>: neither the function's machine code nor that of what it calls differs"
    " between the builds.</p>"
)
_STYLE = (
    ":root{color-scheme:light dark}"
    "body{font:15px/1.45 system-ui,sans-serif;margin:2em auto;max-width:68em;padding:0 1em}"
    "table{border-collapse:collapse;margin:1em 0;font-variant-numeric:tabular-nums}"
    "td,th{padding:.25em .7em;border-bottom:1px solid #8884;text-align:left;vertical-align:baseline}"
    "figure{margin:.8em 0}figcaption{font-size:13px;opacity:.75;max-width:640px}"
    ".wide{overflow-x:auto}.r{text-align:right;white-space:nowrap}.mute{opacity:.7}"
    ".warn{border-left:4px solid #b0360c;padding:.3em .8em}"
    "svg{display:block;background:#fafafa;color:#222;margin:.6em 0;max-width:100%;height:auto}"
    "svg text{font:11px system-ui,sans-serif;fill:#333}"
    ".worse{color:#c04a1e;font-weight:600}.better{color:#158071;font-weight:600}"
)
