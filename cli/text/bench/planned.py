"""The plan of a benchmark as text."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from specmine.model.text import age, duration, escaped, plural


def planned_text(document: Mapping[str, Any], columns: int) -> str:
    """Return ``specmine.bench_plan/1``: what will be run, and why so much."""
    plan = document["plan"]
    makings = f"{plural(plan['builds'], 'making')} of each build with " if plan["builds"] > 1 else ""
    calls = f", each of {plural(plan['calls'], 'call')}" if plan["calls"] else ""
    warm_up = f" after {plural(plan['warmup_calls'], 'call')} of warm-up" if plan["warmup_calls"] else ""
    hosts = f" on {plural(plan['hosts'], 'host')}" if plan["hosts"] > 1 else ""
    takes = f"; {time_text(plan['seconds'] / plan['hosts'])} in all" if plan["seconds"] else ""
    each = f"{makings}{plural(plan['lifetimes'], 'run')} of each{' of them' if makings else ' build'}"
    lines = textwrap.wrap(f"{escaped(document['name'])}: {each}{calls}{warm_up}{hosts}{takes}.", columns)
    if plan["functions"]:
        one = plan["decided_by"]
        which = one["part"] if one["function"] == "all" else f"{escaped(one['function'])}, {one['part']}"
        alone = next(each for each in plan["functions"] if each["function"] == one["function"])
        fewer = "" if alone == one else f" Its {alone['part']} alone asks for {plural(alone['lifetimes'], 'run')}."
        lines += textwrap.wrap(
            f"That gives ±{100 * plan['precision']:.3g} %; {which} asks for most.{fewer} A run costs"
            f" {time_text(one['restart_seconds'])} and {time_text(one['call_seconds'])} a call, as"
            f" {plural(plan['pilot_runs'], 'run')} of a pilot showed.",
            columns,
        )
    for note in plan["notes"]:
        lines += textwrap.wrap(f"{note[0].upper()}{note[1:]}.", columns)
    return "\n".join(lines) + "\n"


def time_text(seconds: float) -> str:
    """Return a duration for people."""
    return age(seconds) if seconds >= 1.0 else duration(seconds)
