"""How one function's durations went, and what is normal beside what is now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from specmine.analysis.charts.distribution import distribution
from specmine.analysis.charts.drawing import Drawing
from specmine.analysis.charts.marks import Marks
from specmine.analysis.charts.trend import Change, Point, Start, Strip, trend
from specmine.analysis.normal_and_now import normal_and_now
from specmine.analysis.wording.levels import asserted, normal_range, seconds
from specmine.analysis.wording.typesetting import moment_of
from specmine.analysis.wording.violations import is_open
from specmine.model.text import count
from specmine.web.documents import Entry

QUANTILES = {"p50": "Median", "p90": "p90", "p99": "p99"}
RANGES = {2: "2 hours", 24: "24 hours", 168: "7 days"}


def trend_figure(known: Mapping[str, Any], entry: Entry, violations: Sequence[Entry]) -> Drawing:
    """Return the strips of the three quantiles; '' without windows.

    Parameters
    ----------
    known : mapping
        ``specmine.trend/1``, or {}.
    entry : mapping
        The function.
    violations : sequence
        All that are known of it.
    """
    if not known.get("points"):
        return Drawing("")
    begin, end = _moment(known["begin"]), _moment(known["end"])
    first = _moment(known["points"][0]["begin"])
    if first - begin > (end - begin) / 2:  # it has not been watched for so long
        begin = first
    normal = asserted(entry)
    strips = [
        Strip(key=key, name=name, normal=_span(normal, key), normal_text=normal_range(normal, key))
        for key, name in QUANTILES.items()
    ]
    points = [
        Point(
            at=_moment(each["begin"]) + (_moment(each["end"]) - _moment(each["begin"])) / 2,
            seconds={key: float(each[key]) for key in QUANTILES if each.get(key)},
        )
        for each in known["points"]
    ]
    spans = [
        (_moment(each["since"]), _moment(each["closed"]) if each.get("closed") else end, _kind(each))
        for each in violations
        if each.get("since")
    ]
    changes = [Change(begin=max(begin, since), end=until, kind=kind) for since, until, kind in spans if until > begin]
    starts = [
        Start(at=max(begin, at), text=_started(each))
        for each in known["starts"]
        if (at := _moment(each["at"])) >= begin - timedelta(minutes=1)
    ]
    title = f"{entry.get('function')}: median, p90 and p99 over time, {len(points)} points"
    return trend(points, strips, starts, changes, (begin, end), title)


def before_and_now(known: Mapping[str, Any], violation: Entry) -> Drawing:
    """Return both sides drawn for a violation; '' where one of them holds too few calls."""
    normal, now = normal_and_now(known, {})
    if not normal:
        return Drawing("")
    seen, expected = violation.get("observed") or {}, violation.get("expected") or {}
    marks = Marks(
        median=float(seen["p50"]["seconds"]) if seen.get("p50") else None,
        tail=float(seen["p99"]["seconds"]) if seen.get("p99") else None,
        normal=_span(expected, "p50") if expected.get("p50") else None,
    )
    return distribution(
        now, marks, f"Durations of {violation.get('function')}: normal in grey, now in blue", normal, ticks=5
    )


def sides(known: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return what the legend says of the normal time and of now."""
    return [
        {
            "kind": kind,
            "name": name,
            "calls": count(known[kind]["calls"]),
            "cells": ", ".join(
                f"{QUANTILES[key].lower()} {text}"
                for key in ("p50", "p99")
                if (text := seconds(known[kind]["quantiles"], key)) not in ("", "-")
            ),
        }
        for kind, name in (("normal", "normal"), ("now", "now"))
    ]


def _started(entry: Mapping[str, Any]) -> str:
    build = entry.get("label") or f"build {str(entry.get('build_id') or '')[:8]}"
    return f"{entry.get('program') or ''} {build} started {moment_of(_moment(entry['at']))}".strip()


def _kind(violation: Entry) -> str:
    if not is_open(violation):
        return "past"
    return "fast" if violation.get("direction") == "faster" else "slow"


def _span(normal: Mapping[str, Any], key: str) -> tuple[float, float] | None:
    return (float(normal[key]["low"]), float(normal[key]["high"])) if normal_range(normal, key) else None


def _moment(text: Any) -> datetime:
    return datetime.fromisoformat(str(text)).astimezone(UTC)
