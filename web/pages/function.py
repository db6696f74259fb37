"""One function: what is asserted beside what is observed, its distribution, who calls it, how it was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from specmine.analysis.charts.behaviours import Strip, behaviour_strips
from specmine.analysis.charts.call_paths import call_paths
from specmine.analysis.charts.distribution import distribution
from specmine.analysis.charts.drawing import Drawing
from specmine.analysis.charts.inside import inside_bar
from specmine.analysis.charts.marks import Marks
from specmine.analysis.charts.spread import spread_tree_chart
from specmine.analysis.normal_and_now import behaviour_calls, normal_and_now
from specmine.analysis.wording.assertions import assertion, class_names, condition
from specmine.analysis.wording.call_rate import call_rate
from specmine.analysis.wording.detectable import sentence as found_when
from specmine.analysis.wording.inside import OWN, not_timed, rows
from specmine.analysis.wording.levels import asserted, normal_range, present, seconds, sentence, uncertainty_of
from specmine.analysis.wording.reasons import why
from specmine.analysis.wording.spread_tree import branches
from specmine.analysis.wording.states import words as state_words
from specmine.analysis.wording.typesetting import or_dash, typeset
from specmine.analysis.wording.violations import is_open
from specmine.analysis.wording.waits import WaitRow, wait_rows, waits_head
from specmine.model.text import age, count, duration, share, three_digits
from specmine.web import words
from specmine.web.documents import Documents, Entry

from .frame import frame
from .trend import QUANTILES, RANGES, sides, trend_figure
from .violation_card import card

_TEXT_WIDTH = 110


def found(documents: Documents, query: Mapping[str, str]) -> list[Entry]:
    """Return the entries that an address names; more than one where two builds have the function."""
    wanted = {"function": query.get("name"), "module": query.get("module"), "program": query.get("program")}
    asked = {key: value for key, value in wanted.items() if value}
    return [
        each for each in documents.functions if all(str(each.get(key) or "") == value for key, value in asked.items())
    ]


def chosen_hours(query: Mapping[str, str]) -> int:
    """Return how many hours an address asks for; two where it asks for none that are offered."""
    asked = query.get("hours", "")
    return int(asked) if asked.isdecimal() and int(asked) in RANGES else next(iter(RANGES))


def page(
    documents: Documents, entry: Entry, others: Sequence[Entry], known: Mapping[str, Any], hours: int
) -> dict[str, Any]:
    """Return the values of the template ``function.html``.

    Parameters
    ----------
    documents : Documents
    entry : mapping
        The function in its newest build.
    others : sequence
        The same function in other builds.
    known : mapping
        ``specmine.trend/1`` of the last hours; {} where there are no windows.
    hours : int
        How many.
    """
    now = documents.at
    violations = [
        each
        for each in documents.violations["violations"]
        if each.get("key") == entry.get("key") and each.get("program") in (None, entry.get("program"))
    ]
    standing = [card(each, now) for each in violations if is_open(each)]
    shown, normal = present(entry), asserted(entry)
    before, bins = normal_and_now(known, entry)
    drawn = known["now"]["quantiles"] if before else shown
    title = f"Durations of {entry.get('function')}: {sentence(drawn, uncertainty_of(entry))}"
    return {
        **frame(documents, "/functions", f"{entry.get('function')}, {state_words(entry)}"),
        "entry": entry,
        "state": state_words(entry),
        "kind": "slow" if any(each["kind"] == "slow" for each in standing) else "fast" if standing else "",
        "why": [] if standing else [*why(entry), *filter(None, [found_when(entry)])],
        "cards": standing,
        "earlier": [card(each, now) for each in violations if not is_open(each)],
        "facts": [*_facts(entry), *([f"host {documents.host}"] if documents.host else [])],
        "rows": [_quantile_row("all calls", entry, None, entry), *_behaviours(entry)],
        "has_classes": len(entry.get("classes") or ()) > 1,
        "quantiles": QUANTILES,
        "distribution": distribution(bins, _marks(entry, drawn, normal), typeset(title), before),
        "sides": sides(known) if before else [],
        "behaviours": behaviour_figure(known, entry),
        "trend": trend_figure(known, entry, violations),
        "ranges": [
            {"name": name, "hours": each, "chosen": each == hours, "link": words.function_address(entry, hours=each)}
            for each, name in RANGES.items()
        ],
        "classes": _classes(entry),
        "inside": _inside(entry),
        "spread": spread_tree_chart(str(entry.get("function")), branches(entry, documents.functions)),
        "waits_head": waits_head(entry),
        "waits": [{"row": row, "share": share(row.share), "note": _note(row)} for row in wait_rows(entry.get("waits"))],
        "not_timed": not_timed(entry.get("classes") or []),
        "paths": call_paths(entry),
        "assertion": typeset("\n".join(assertion(entry, _TEXT_WIDTH))),
        "measured": _measured(entry),
        "others": [{"build": str(each.get("build_id"))[:12], "state": state_words(each)} for each in others],
    }


def behaviour_figure(known: Mapping[str, Any], entry: Entry) -> Drawing:
    """Return the calls of each behaviour, a strip each; '' where there is one, or none is known by itself."""
    calls = sum(int(each.get("calls") or 0) for each in entry.get("behaviours") or ())
    strips = [
        Strip(
            name=condition(each.behaviour["expression"]),
            share=int(each.behaviour["calls"]) / calls if calls and each.behaviour.get("calls") else None,
            bins=each.now,
            before=each.before,
            marks=_marks(entry, each.quantiles, asserted(each.behaviour)),
        )
        for each in behaviour_calls(known, entry)
    ]
    return behaviour_strips(strips, f"Durations of {entry.get('function')} by behaviour")


def _marks(entry: Entry, shown: Mapping[str, Any], normal: Mapping[str, Any]) -> Marks:
    median, tail = shown.get("p50"), shown.get("p99")
    span = normal.get("p50") if normal_range(normal, "p50") else None
    return Marks(
        median=float(median["seconds"]) if median else None,
        tail=float(tail["seconds"]) if tail else None,
        normal=(float(span["low"]), float(span["high"])) if span else None,
        borders=tuple(map(float, entry.get("borders_seconds") or ())),
    )


def _facts(entry: Entry) -> list[str]:
    parts = [f"program {entry.get('program') or entry.get('module') or ''}"]
    if entry.get("build_id"):
        parts.append(f"build {str(entry['build_id'])[:12]}")
    if entry.get("rate_per_second"):
        parts.append(f"{call_rate(entry)} calls/s")
    if entry.get("time_share"):
        parts.append(f"{share(entry['time_share'])} of its wall-clock time")
    return parts


def _behaviours(entry: Entry) -> list[dict[str, Any]]:
    parts = [each for each in entry.get("behaviours") or [] if each.get("expression") not in (None, "true")]
    return [_quantile_row(str(each["expression"]), each, number, entry) for number, each in enumerate(parts, 1)]


def _quantile_row(name: str, part: Entry, number: int | None, entry: Entry) -> dict[str, Any]:
    shown, normal, known_to = present(part), asserted(part), uncertainty_of(entry)
    return {
        "name": name,
        "number": number,
        "calls": count(part["calls"]) if number is not None and part.get("calls") is not None else "",
        "cells": [
            {"now": or_dash(seconds(shown, key, known_to)), "normal": normal_range(normal, key)} for key in QUANTILES
        ],
        "shares": ", ".join(share(float(each)) for each in part.get("shares") or ()) if number is not None else "",
    }


def _classes(entry: Entry) -> list[dict[str, str]]:
    classes = entry.get("classes") or []
    if len(classes) < 2:
        return []
    rows, low = [], None
    for each in classes:
        upper = each.get("upper_seconds")
        name = f"up to {duration(upper)}" if upper is not None else f"over {duration(low or 0.0)}"
        if upper is not None and low is not None:
            name = f"{duration(low)} to {duration(upper)}"
        spent = [
            f"{share(float(each[key]))} {text}"
            for key, text in (("running", "on CPU"), ("waiting", "waiting for a CPU"), ("blocked", "blocked"))
            if isinstance(each.get(key), int | float) and each[key] >= 0.005
        ]
        rows.append({"name": name, "share": share(float(each.get("share") or 0)), "spent": ", ".join(spent)})
        low = upper
    return rows


def _inside(entry: Entry) -> list[dict[str, Any]]:
    """Return what the calls of each class consist of, drawn and in words."""
    classes = entry.get("classes") or []
    told = []
    for name, each in zip(class_names(classes), classes, strict=True):
        parts = rows(each)
        if parts:
            told.append(
                {
                    "name": name,
                    "mean": duration(float(each["inside_mean_seconds"])),
                    "calls": count(each["inside_calls"]),
                    "bar": inside_bar(name, parts),
                    "parts": [{"row": row, "own": row.name == OWN, "share": share(row.share)} for row in parts],
                }
            )
    return told


def _note(row: WaitRow) -> str:
    return ", ".join(filter(None, (row.note, f"in {row.within}" if row.within else "")))


def _measured(entry: Entry) -> list[str]:
    told = []
    if entry.get("timed"):
        told.append(
            f"{count(entry['timed'])} of {count(entry.get('calls') or 0)} calls timed, in "
            f"{count(entry.get('observations') or 0)} samples."
        )
    if entry.get("bias_seconds"):
        told.append(
            f"The probes' own {three_digits(entry['bias_seconds'])} are taken off; durations are known to "
            f"±{three_digits(entry.get('uncertainty_seconds') or 0.0)}."
        )
    if isinstance(entry.get("watched_seconds"), int | float):
        told.append(f"It was watched for {age(entry['watched_seconds'])}.")
    if entry.get("spent_seconds"):
        told.append(f"Watching it took {three_digits(entry['spent_seconds'])} of the program's CPU time.")
    return told
