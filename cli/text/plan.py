"""A plan of a comparison for people: what to run, then a row a function."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from specmine.analysis.documents import title
from specmine.model.text import age, cells, count, duration, escaped, plural, shortened

from .comparison_notes import in_plain_words

_HEADS = ("CALLS", "RUNS", "RUNS ±", "CALLS ±", "ONE SIDE")
_MOST = 20


def plan_text(document: Mapping[str, Any], columns: int) -> str:
    """Return the plan: one sentence on all functions, a table, the most expensive first, and what it rests on."""
    whole = document["plan"]
    wanted = f"±{100 * document['precision']:.3g} % of the {document['summary']}"
    lines = []
    if whole is None:
        lines += textwrap.wrap(f"No plan gives {wanted}.", columns)
    else:
        builds = f"{plural(whole['builds'], 'build')} with " if document["rebuilds"] else ""
        each = " each" if document["rebuilds"] else ""
        lines += textwrap.wrap(
            f"For {wanted}: {builds}{plural(whole['lifetimes'], 'run')}{each} a side, each of"
            f" {_time(whole['lifetime_seconds'])}; {_time(whole['seconds'])} for one side. Let both sides take turns.",
            columns,
        )
    entries = sorted(document["functions"], key=_cheapness)[:_MOST]
    names = [escaped(shortened(title(each), 40)) for each in entries]
    heads = (*(("BUILDS",) if document["rebuilds"] else ()), *_HEADS)
    rows = [_row(each, rebuilds=document["rebuilds"]) for each in entries]
    sizes = [max(len(head), *(cells(row[at]) for row in rows)) for at, head in enumerate(heads)]
    name_width = max(8, *(cells(name) for name in names))
    lines += ["", "FUNCTION".ljust(name_width) + "".join(f"  {h.rjust(s)}" for h, s in zip(heads, sizes, strict=True))]
    for name, row, each in zip(names, rows, entries, strict=True):
        fields = "".join(f"  {cell.rjust(size)}" for cell, size in zip(row, sizes, strict=True))
        lines.append((name + " " * (name_width - cells(name)) + fields).rstrip())
        if each["reason"]:
            lines += textwrap.wrap(in_plain_words(f"{each['reason'][:1].upper()}{each['reason'][1:]}."), columns,
                                   initial_indent="    ", subsequent_indent="    ")  # fmt: skip
    if len(document["functions"]) > _MOST:
        lines.append(f"{count(len(document['functions']) - _MOST)} more are in --format json.")
    lines.append("")
    costs = f"A restart costs {_time(document['restart_seconds'])}"
    if document["rebuilds"]:
        costs += f", a build {_time(document['build_seconds'])}"
    else:
        costs += "; what rebuilding changes is not in the plan (--rebuilds)"
    lines += textwrap.wrap(
        f"Calls of each run after its warm-up, runs a side; ±: how far they differ (standard deviation). {costs}.",
        columns,
    )
    return "\n".join(lines) + "\n"


def _cheapness(each: Mapping[str, Any]) -> tuple[bool, float, str]:
    plan = each["plan"]
    return plan is None, -plan["seconds"] if plan is not None else 0.0, each["function"]


def _row(each: Mapping[str, Any], *, rebuilds: bool) -> list[str]:
    plan, found = each["plan"], each["variances"]
    spread = ["–", "–"]
    if found is not None:
        spread = [_percent(max(0.0, found[name]) ** 0.5) for name in ("lifetime", "call")]
    if plan is None:
        return [*(["–"] if rebuilds else []), "–", "–", *spread, "–"]
    counts = [*([count(plan["builds"])] if rebuilds else []), count(plan["calls"]), count(plan["lifetimes"])]
    return [*counts, *spread, _time(plan["seconds"])]


def _percent(part: float) -> str:
    return f"{100 * part:.2g} %" if part < 0.095 else f"{100 * part:.0f} %"


def _time(seconds: float) -> str:
    return age(seconds) if seconds >= 1.0 else duration(seconds)
