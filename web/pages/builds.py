"""Builds: what became slower or faster from one to the next."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from specmine.analysis.charts.bars import ratio_axis, ratio_bar
from specmine.analysis.compare.rows import worst_first
from specmine.analysis.report.changes import (
    KINDS,
    ChangeGroup,
    ChangeRow,
    change_groups,
    lead_sentence,
    verdict_sentence,
)
from specmine.analysis.report.portrait import Portrait
from specmine.mining.regression.comparison import Change
from specmine.model.text import count, plural
from specmine.web.documents import Documents

from .frame import frame

TOLERANCE = 0.02
_ROWS = 200
_DRAWN = 3
Entry = Mapping[str, Any]


def page(
    documents: Documents,
    comparison: Mapping[str, Any] | None,
    builds: Sequence[tuple[str, str]],
    chosen: tuple[str, str],
    problem: str,
    portrait: Callable[[Entry], Portrait] | None = None,
) -> dict[str, Any]:
    """Return the values of the template ``builds.html``.

    Parameters
    ----------
    documents : Documents
    comparison : mapping, optional
        ``specmine.comparison/1``; None where no store is read: then the daemon's own comparisons are shown.
    builds : sequence of (str, str)
        Build-ids with what they are called, the oldest first.
    chosen : (str, str)
        Old and new build.
    problem : str
        Why there is no comparison, '' if there is one.
    portrait : callable, optional
        Draws a function of the comparison.
    """
    names = dict(builds)
    values: dict[str, Any] = {
        **frame(documents, "/builds", "Builds"),
        "builds": [{"id": build, "name": name} for build, name in builds],
        "old": chosen[0],
        "new": chosen[1],
        "old_name": names.get(chosen[0], "Old"),
        "new_name": names.get(chosen[1], "New"),
        "axis": ratio_axis(),
        "problem": problem,
        "from_store": comparison is not None,
    }
    if comparison is None:
        return values | _of_daemon(
            list(documents.status.get("changes") or ()), str((documents.status.get("store") or {}).get("path") or "")
        )
    entries = worst_first(comparison["functions"])
    tolerance = float(comparison["rule"].get("tolerance") or TOLERANCE)
    changed = [each for each in entries if Change(each["verdict"]) in (Change.WORSE, Change.BETTER)]
    return values | {
        "headline": f"{values['new_name']} against {values['old_name']}: {verdict_sentence(entries)}",
        "lead": lead_sentence(entries, tolerance),
        "groups": change_groups(entries, tolerance, most=_ROWS),
        "drawn": [
            {"entry": each, "kind": KINDS[Change(each["verdict"])], "shown": portrait(each)}
            for each in (changed or entries)[:_DRAWN]
        ]
        if portrait is not None
        else [],
        "sides": [_side(comparison[side]) for side in ("base", "new") if comparison.get(side)],
        "left_out": _left_out(entries),
        "warning": str((comparison.get("order") or {}).get("warning") or ""),
        "remedy": str((comparison.get("order") or {}).get("remedy") or ""),
    }


def _of_daemon(entries: Sequence[Entry], store: str) -> dict[str, Any]:
    """Return the daemon's own comparisons: of each function its newest build with the one before."""
    groups = []
    for verdict, text in (
        ("worse", "Slower"),
        ("better", "Faster"),
        ("undecided", "Not decided"),
        ("equivalent", "The same"),
    ):
        rows = [_row(each, KINDS[Change(verdict)]) for each in entries if each.get("verdict") == verdict]
        if rows:
            groups.append(ChangeGroup(text=text, functions=len(rows), rows=rows))
    told = ", ".join(f"{count(each.functions)} {each.text.lower()}" for each in groups)
    return {"headline": told or "No two builds have been compared yet", "groups": groups, "store": store}


def _row(entry: Entry, kind: str) -> ChangeRow:
    ratio, interval = entry.get("ratio"), entry.get("interval")
    bounds = (float(interval[0]), float(interval[1])) if interval and None not in interval else None
    known = isinstance(ratio, int | float)
    reason = entry.get("reason")
    return ChangeRow(
        entry=entry,
        name=str(entry.get("function")),
        suffix="",
        seconds=("", ""),
        ratio=f"{ratio:.2f}×" if known else "–",
        interval=f"{bounds[0]:.2f}–{bounds[1]:.2f}" if bounds else "",
        picture=ratio_bar(float(ratio or 0.0), bounds, TOLERANCE, kind)
        if known
        else ratio_bar(1.0, None, TOLERANCE, kind),
        note=str(reason.get("text") or "") if isinstance(reason, Mapping) else str(reason or ""),
        kind=kind,
    )


def _side(side: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": side["name"],
        "hosts": len(side["hosts"]),
        "runs": side["lifetimes"],
        "seen": side.get("lifetimes_seen"),
    }


def _left_out(entries: Sequence[Entry]) -> str:
    """Return how many runs were not used, and why."""
    reasons: dict[str, set[tuple[str, str]]] = {}
    for each in entries:
        for one in each["lifetimes_left_out"]:
            reasons.setdefault(str(one["reason"]["text"]), set()).add((str(one["host"]), str(one["lifetime"])))
    told = [f"{plural(len(runs), 'run')} for some functions: {why}" for why, runs in sorted(reasons.items())]
    return f"Left out: {'; '.join(told)}." if told else ""
