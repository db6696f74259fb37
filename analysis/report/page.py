"""A report as one HTML page with its drawings inside: no script, nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from specmine.analysis.documents import title
from specmine.analysis.lifetimes.lifetime import FunctionLifetime
from specmine.mining.regression.comparison import Change, Rule
from specmine.model.text import in_markup

from .svg import COLOURS, intervals_svg, lag_svg, sequence_svg

_MOST_SUSPECTS = 10


def page(document: Mapping[str, Any], observed: Sequence[FunctionLifetime], rule: Rule) -> str:
    """Return the report as HTML with its drawings inside."""
    labels = [each["label"] for each in document["builds"]]
    parts = [
        "<!doctype html><meta charset='utf-8'><title>specmine report</title>",
        f"<style>{_STYLE}</style>",
        "<h1>Changes over builds</h1>",
        f"<p>{in_markup(rule.summary)} of lifetimes, {100 * rule.level:g} % intervals, tolerance"
        f" {100 * rule.tolerance:g} %. Each build beside the one before, at last the whole way;"
        " = is equivalent, ? undecided.</p>",
        "<table><tr><th>function</th>"
        + "".join(f"<th>{in_markup(label)}</th>" for label in labels)
        + "<th>all</th></tr>",
    ]
    for entry in document["functions"]:
        steps = {step["new"]: step for step in entry["steps"]}
        cells = "".join(_cell(steps.get(each["build"])) for each in document["builds"])
        parts.append(
            f"<tr><th><a href='#{_anchor(entry)}'>{in_markup(title(entry))}</a></th>{cells}{_cell(entry['drift'])}</tr>"
        )
    parts.append("</table>")
    parts.append(_code_table(document))
    for entry in document["functions"]:
        group = [each for each in observed if each.key == (entry["function"], entry["module"])]
        parts += [
            f"<h2 id='{_anchor(entry)}'>{in_markup(title(entry))}</h2>",
            intervals_svg(entry),
            sequence_svg(group, document, rule),
            _steps_table(entry, document),
            _within_table(entry),
            lag_svg(group, document),
        ]
    return "\n".join(parts) + "\n"


def _cell(step: Mapping[str, Any] | None) -> str:
    if step is None:
        return "<td></td>"
    verdict = Change(step["verdict"])
    if verdict in COLOURS:
        return f"<td class='{verdict.value}'>{100 * (step['ratio'] - 1):+.2f} %</td>"
    return f"<td title='{in_markup(step['reason'])}'>{'=' if verdict is Change.EQUIVALENT else '?'}</td>"


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
    return f"<table><tr>{head}</tr>{rows}</table>" if rows else ""


def _factor(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _steps_table(entry: Mapping[str, Any], document: Mapping[str, Any]) -> str:
    labels = {each["build"]: each["label"] for each in document["builds"]}
    rows = "".join(
        f"<tr><td>{in_markup(labels[step['new']])}</td><td>{in_markup(labels[step['base']])}</td>"
        f"<td class='{step['verdict']}'>{step['verdict']}</td>"
        f"<td>{_number(step['ratio'])}</td>"
        f"<td>{' .. '.join(map(_number, step['interval'] or ())) or '-'}</td>"
        f"<td>{step['lifetimes'][0]}, {step['lifetimes'][1]}</td><td>{in_markup(_why(step))}</td></tr>"
        for step in [*entry["steps"], *([entry["drift"]] if entry["drift"] else [])]
    )
    head = "".join(
        f"<th>{each}</th>" for each in ("newer", "older", "verdict", "ratio", "interval", "lifetimes", "why")
    )
    return f"<table><tr>{head}</tr>{rows}</table>" if rows else "<p>Only one build was seen.</p>"


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
    return f"<h2>Machine code</h2><table><tr>{head}</tr>{rows}</table>" if rows else ""


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


def _anchor(entry: Mapping[str, Any]) -> str:
    return "f" + "".join(f"{letter:02x}" for letter in title(entry).encode())


_STYLE = (
    "body{font:15px/1.4 system-ui,sans-serif;margin:2em auto;max-width:60em;padding:0 1em}"
    "table{border-collapse:collapse;margin:1em 0;font-variant-numeric:tabular-nums}"
    "td,th{padding:.2em .7em;border-bottom:1px solid #ddd;text-align:left}"
    "svg{display:block;background:#fafafa;margin:.6em 0}svg text{font:11px system-ui,sans-serif}"
    ".worse{color:#b3261e;font-weight:600}.better{color:#1b7f3b;font-weight:600}"
)
