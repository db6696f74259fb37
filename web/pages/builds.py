"""Builds: what became slower or faster from one to the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from specmine.model.text import count, three_digits
from specmine.web.charts.bars import ratio_bar
from specmine.web.documents import Documents

from .frame import frame

_GROUPS = (("worse", "Slower", "slow"), ("better", "Faster", "fast"), ("undecided", "Not decided", "past"),
           ("equivalent", "The same", "past"))  # fmt: skip
TOLERANCE = 0.02


def page(
    documents: Documents,
    comparison: Mapping[str, Any] | None,
    builds: Sequence[tuple[str, str]],
    chosen: tuple[str, str],
    problem: str,
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
    """
    entries = comparison["functions"] if comparison is not None else list(documents.status.get("changes") or ())
    tolerance = float(((comparison or {}).get("rule") or {}).get("tolerance") or TOLERANCE)
    groups = [_group(verdict, text, kind, entries, tolerance) for verdict, text, kind in _GROUPS]
    return {
        **frame(documents, "/builds", "Builds"),
        "headline": _headline(groups, chosen if comparison is not None else ("", ""), dict(builds)),
        "groups": [each for each in groups if each["rows"]],
        "builds": [{"id": build, "name": name} for build, name in builds],
        "old": chosen[0],
        "new": chosen[1],
        "sides": [(comparison or {}).get(side) for side in ("base", "new") if comparison is not None],
        "problem": problem,
        "from_store": comparison is not None,
    }


def _headline(groups: Sequence[Mapping[str, Any]], chosen: tuple[str, str], names: Mapping[str, str]) -> str:
    numbers = {each["verdict"]: len(each["rows"]) for each in groups}
    if not any(numbers.values()):
        return "No two builds have been compared yet"
    kinds = (("worse", "slower"), ("better", "faster"), ("undecided", "not decided"))
    told = ", ".join(f"{count(numbers[verdict])} {word}" for verdict, word in kinds)
    if chosen[1]:
        return f"{names.get(chosen[1], chosen[1])} against {names.get(chosen[0], chosen[0])}: {told}"
    return told


def _group(
    verdict: str, text: str, kind: str, entries: Sequence[Mapping[str, Any]], tolerance: float
) -> dict[str, Any]:
    rows = [row for each in entries if each.get("verdict") == verdict for row in _rows(each, kind, tolerance)]
    return {"verdict": verdict, "text": text, "kind": kind, "rows": rows}


def _rows(entry: Mapping[str, Any], kind: str, tolerance: float) -> list[dict[str, Any]]:
    own = _row(entry, str(entry.get("function")), "", kind, tolerance)
    parts = [
        _row(each, "", str(each.get("expression") or each.get("name") or ""), kind, tolerance)
        for each in entry.get("behaviours") or ()
        if each.get("verdict") == entry.get("verdict") and entry.get("verdict") in ("worse", "better")
    ]
    return [own, *parts]


def _row(entry: Mapping[str, Any], name: str, condition: str, kind: str, tolerance: float) -> dict[str, Any]:
    ratio, interval = entry.get("ratio"), entry.get("interval")
    bounds = (float(interval[0]), float(interval[1])) if interval and None not in interval else None
    needed = entry.get("needed_lifetimes")
    return {
        "entry": entry,
        "name": name,
        "condition": condition,
        "ratio": f"{ratio:.2f}×" if isinstance(ratio, int | float) else "–",
        "interval": f"{bounds[0]:.2f}–{bounds[1]:.2f}" if bounds else "",
        "kind": kind,
        "picture": ratio_bar(float(ratio), bounds, tolerance, kind) if isinstance(ratio, int | float) else "",
        "note": _note(entry, needed),
        "summary": str(entry.get("summary") or "median"),
        "old": _seconds(entry, 0),
        "new": _seconds(entry, 1),
    }


def _note(entry: Mapping[str, Any], needed: Any) -> str:
    if isinstance(needed, int | float) and needed:
        return f"some {count(needed)} runs a side would decide"
    reason = entry.get("reason")
    if isinstance(reason, Mapping):
        return str(reason.get("text") or "")
    return str(reason or "")


def _seconds(entry: Mapping[str, Any], side: int) -> str:
    known = (entry.get("seconds") or (None, None))[side]
    return three_digits(float(known)) if known is not None else ""
