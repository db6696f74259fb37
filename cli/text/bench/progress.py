"""How far a benchmark is as text, and what came out."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from specmine.cli.text.comparison import comparison_text
from specmine.model.text import count, escaped, listed, plural

from .planned import time_text

_MOST_FAILURES = 5


def status_text(document: Mapping[str, Any], columns: int) -> str:
    """Return ``specmine.bench/1``: the progress, failures, and at the end each comparison."""
    runs = document["runs"]
    head = f"{escaped(document['name'])}: {runs['done']} of {plural(runs['total'], 'run')} done"
    parts = [f"{count(runs[name])} {name}" for name in ("running", "waiting", "failed") if runs[name]]
    left = document["left_seconds"]
    parts += [f"{time_text(left)} left"] if left else []
    lines = textwrap.wrap(", ".join([head, *parts]) + ".", columns)
    hosts = [
        f"{escaped(each['host'] or 'a forgotten host')} {each['done']} done{', silent' if each['silent'] else ''}"
        for each in document["hosts"]
    ]
    if len(hosts) > 1 or any(each["silent"] for each in document["hosts"]):
        lines += textwrap.wrap(f"Hosts: {'; '.join(hosts)}.", columns, subsequent_indent="    ")
    elif not hosts and not document["complete"]:
        lines += textwrap.wrap(f"No runner yet: specmine bench run {escaped(document['name'])}.", columns)
    lines += _failures(document, columns)
    for each in document["comparisons"]:
        names = f"{escaped(each['base']['name'])} against {escaped(each['new']['name'])}"
        lines += ["", *([f"{names}:"] if len(document["comparisons"]) > 1 else [])]
        lines += comparison_text(each, columns, everything=True).rstrip("\n").split("\n")
    return "\n".join(lines) + "\n"


def _failures(document: Mapping[str, Any], columns: int) -> list[str]:
    failures = document["failures"]
    if not failures:
        return []
    reasons: dict[str, list[str]] = {}
    for each in failures:
        reasons.setdefault(each["reason"], []).append(f"run {each['run']} ({each['build']})")
    lines = textwrap.wrap(f"{plural(document['failures_total'], 'attempt')} failed:", columns)
    for reason, which in list(reasons.items())[-_MOST_FAILURES:]:
        shown = listed(which[:3]) + (f" and {len(which) - 3} more" if len(which) > 3 else "")
        lines += textwrap.wrap(f"{escaped(shown)}: {escaped(reason)}", columns, initial_indent="    ",
                               subsequent_indent="        ")  # fmt: skip
    return lines
