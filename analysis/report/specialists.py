"""What only specialists ask of a function: each part compared, runs in their order, how calls depend on each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from specmine.analysis.charts.drawing import Drawing
from specmine.analysis.charts.lag import lag_plot, sequence
from specmine.analysis.compare.rows import GROUPS, suffix_of
from specmine.analysis.lifetimes.lifetime import FunctionLifetime
from specmine.mining.regression.comparison import Change, Rule
from specmine.mining.regression.sample import SUMMARIES
from specmine.mining.regression.within_lifetime import FEWEST_IN_A_ROW
from specmine.model.text import duration, in_markup

_HEADS = ("New", "Old", "Calls", "Verdict", "Old", "New", "Ratio", "Interval", "Runs", "Why")
Entry = Mapping[str, Any]
Group = Sequence[FunctionLifetime]


def specialists(entry: Entry, group: Group, document: Entry, rule: Rule, labels: Mapping[str, str]) -> str:
    """Return a list that opens.

    Parameters
    ----------
    entry : mapping
        The newest comparison of the function.
    group : sequence of FunctionLifetime
        All its lifetimes.
    document : mapping
        ``specmine.report/1``.
    rule : Rule
    labels : mapping
        Build to what it is called, in the order of time.
    """
    known = next(
        (
            each
            for each in document["functions"]
            if (each["function"], each["module"]) == (entry["function"], entry["module"])
        ),
        None,
    )
    if known is None:
        return ""
    order = list(labels)
    ordered = sorted(group, key=lambda each: (order.index(each.build), each.start_ns))
    values = [1e-9 * SUMMARIES[rule.summary](each.sample) for each in ordered if each.sample.calls]
    turns = [at for at, (one, other) in enumerate(pairwise(ordered), 1) if one.build != other.build]
    said = f"The {rule.summary} of each run, by build and time. A dashed line is where the build changes."
    content = [
        _parts_table(known, labels),
        _figure(sequence(values, turns, "Runs in their order"), said),
        _within_table(known),
        _lag(ordered, labels),
    ]  # fmt: skip
    return f"<details><summary>More numbers, for specialists</summary>{''.join(content)}</details>"


def _figure(drawing: Drawing, caption: str) -> str:
    return f'<figure>{drawing}<figcaption class="cap">{in_markup(caption)}</figcaption></figure>' if drawing else ""


def _parts_table(known: Entry, labels: Mapping[str, str]) -> str:
    """Return each step of a function with its parts: all calls, classes and behaviours."""
    rows = "".join(
        _part_row(part, step, labels, at)
        for step in [*known["steps"], *([known["drift"]] if known["drift"] else [])]
        for at, part in enumerate([{**step, "verdict": step["verdict_of_summary"]}, *step["behaviours"]])
    )
    head = "".join(f'<th scope="col">{each}</th>' for each in _HEADS)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _part_row(part: Entry, step: Entry, labels: Mapping[str, str], at: int) -> str:
    verdict = Change(part["verdict"])
    builds = (labels[step["new"]], labels[step["base"]]) if at == 0 else ("", "")
    interval = part["interval"] or ()
    fields = [
        *builds,
        suffix_of(part, step) if at else "all",
        GROUPS[verdict],
        *("–" if each is None else duration(each) for each in part["seconds"]),
        _number(part["ratio"]),
        " .. ".join(map(_number, interval)) or "–",
        f"{part['lifetimes'][0]}, {part['lifetimes'][1]}",
        _why(step) if at == 0 else str(part["reason"]),
    ]
    return f"<tr>{''.join(f'<td>{in_markup(each)}</td>' for each in fields)}</tr>"


def _why(step: Entry) -> str:
    change = step["change"]
    return f"{step['reason']}; likely cause: {change['cause']} ({change['reason']})" if change else str(step["reason"])


def _within_table(known: Entry) -> str:
    """Return how the calls of a run depend on each other, a row a build."""
    rows = "".join(
        f"<tr><td>{in_markup(build['label'])}</td>"
        f"<td>{found['lifetimes_dependent']} of {found['lifetimes_in_order']}</td>"
        f"<td>{' '.join(f'{each:.2f}' for each in found['autocorrelation'][:5]) or '–'}</td>"
        f"<td>{_factor(found['impact_factor'])}</td><td>{_factor(found['impact_factor_centred'])}</td>"
        f"<td>{found['lifetimes_sampled']}</td></tr>"
        for build in known["builds"]
        if (found := build["within"])["lifetimes_in_order"] or found["lifetimes_sampled"]
    )
    if not rows:
        return ""
    head = "".join(f'<th scope="col">{each}</th>' for each in (
        "Build", "Runs whose calls depend on each other", "Autocorrelation at 1 to 5 calls", "Impact factor",
        "Centred", "Runs sampled"))  # fmt: skip
    caption = (
        "Impact factor: the spread of single calls over all runs, by that inside one run; 1 is no difference. "
        "Centred: the "
        "same after the mean of its run is taken off each call."
    )
    return (
        f"<div "
        f'class="scroll"><table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
        "</div>"
    )


def _lag(ordered: Group, labels: Mapping[str, str]) -> str:
    found = [each for each in ordered if each.first_ns is not None and len(each.first_ns) >= FEWEST_IN_A_ROW]
    if not found or found[-1].first_ns is None:
        return ""
    newest = found[-1]
    assert newest.first_ns is not None
    run = f"{labels[newest.build]} {newest.lifetime}"
    drawing = lag_plot((1e-9 * newest.first_ns).tolist(), run)
    return _figure(drawing, f"Each of {len(newest.first_ns)} calls in a row over the one before it, in {run}.")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def _factor(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
