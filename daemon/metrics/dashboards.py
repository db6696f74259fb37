"""Dashboards for Grafana, made from ``dashboard_panels``. ``systemd/specmine-*.json`` are these.

``python -m specmine.daemon.metrics.dashboards FOLDER`` writes them. Grafana shows what happens over time;
distributions, callers and builds are on the page of ``specmine web``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .dashboard_panels import COST, GREY, PROBLEMS, WHERE, Panel, Rows

SLOW, BLUE = "#b0360c", "#2c6bb0"
_SOURCE = {"type": "prometheus", "uid": "${source}"}


def dashboards() -> dict[str, dict[str, Any]]:
    """Return every dashboard by the name of its file."""
    return {
        "specmine-problems.json": _dashboard(
            "specmine: what is wrong, and one function", "specmine-problems", PROBLEMS
        ),
        "specmine-cost.json": _dashboard("specmine: what watching costs, and where it is blind", "specmine-cost", COST),
    }


def text_of(dashboard: Mapping[str, Any]) -> str:
    """Return a dashboard as its file holds it."""
    return json.dumps(dashboard, indent=1, ensure_ascii=False) + "\n"


def _dashboard(title: str, uid: str, rows: Rows) -> dict[str, Any]:
    drawn: list[dict[str, Any]] = []
    top = 0
    for name, held in rows:
        drawn.append({"type": "row", "title": name, "collapsed": False, "panels": [], "id": len(drawn) + 1,
                      "gridPos": {"h": 1, "w": 24, "x": 0, "y": top}})  # fmt: skip
        top += 1
        left = height = 0
        for panel in held:
            if left + panel.width > 24:
                top, left, height = top + height, 0, 0
            place = {"h": panel.height, "w": panel.width, "x": left, "y": top}
            drawn.append(_panel(panel, len(drawn) + 1, place))
            left, height = left + panel.width, max(height, panel.height)
        top += height
    return {
        "title": title, "uid": uid, "tags": ["specmine"], "timezone": "utc", "schemaVersion": 38, "version": 1,
        "editable": True, "graphTooltip": 1, "refresh": "1m", "time": {"from": "now-6h", "to": "now"},
        "links": [{"title": "specmine", "type": "dashboards", "tags": ["specmine"], "asDropdown": False}],
        "annotations": {"list": [_annotation()]},
        "templating": {"list": list(_variables())},
        "panels": drawn,
    }  # fmt: skip


def _panel(panel: Panel, number: int, place: Mapping[str, int]) -> dict[str, Any]:
    custom: dict[str, Any] = {}
    if panel.kind == "timeseries":
        custom = {"lineWidth": 1, "fillOpacity": 40 if panel.stack else 0, "showPoints": "never",
                  "stacking": {"mode": "normal" if panel.stack else "none"},
                  "scaleDistribution": {"type": "log", "log": 10} if panel.log else {"type": "linear"}}  # fmt: skip
    steps: list[dict[str, Any]] = [{"color": GREY if panel.kind == "stat" else BLUE, "value": None}]
    if panel.red_from is not None:
        steps.append({"color": SLOW, "value": panel.red_from})
    table = panel.kind == "table"
    drawn: dict[str, Any] = {
        "id": number, "type": panel.kind, "title": panel.title, "description": panel.text, "gridPos": place,
        "datasource": _SOURCE,
        "fieldConfig": {
            "defaults": {"unit": panel.unit, "custom": custom, "thresholds": {"mode": "absolute", "steps": steps}},
            "overrides": list(panel.overrides),
        },
        "options": {},
        "targets": [
            {"refId": chr(ord("A") + at), "datasource": _SOURCE, "expr": query, "legendFormat": legend or "__auto",
             "instant": table, "range": not table, **({"format": "table"} if table else {})}
            for at, (query, legend) in enumerate(panel.queries)
        ],
    }  # fmt: skip
    if panel.kind == "timeseries":
        drawn["options"] = {"legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
                            "tooltip": {"mode": "multi", "sort": "desc"}}  # fmt: skip
    if table:
        hidden = ("Time", "__name__", "job", "module", "behaviour", "because", "text")
        drawn["transformations"] = [{"id": "organize", "options": {"excludeByName": dict.fromkeys(hidden, True)}}]
    return drawn


def _annotation() -> dict[str, Any]:
    return {"name": "violations", "datasource": _SOURCE, "enable": True, "iconColor": SLOW,
            "expr": 'specmine_violation{direction="slower", ' + WHERE + "} == 1", "step": "60s",
            "titleFormat": "{{program}}: {{function}}", "textFormat": "{{what}}, {{direction}}"}  # fmt: skip


def _variables() -> Iterator[dict[str, Any]]:
    yield {"name": "source", "type": "datasource", "query": "prometheus", "label": "Prometheus", "hide": 0}
    for name, query in (
        ("instance", "label_values(specmine_info, instance)"),
        ("program", 'label_values(specmine_program_chosen{instance=~"$instance"}, program)'),
        ("function", "label_values(specmine_function_calls_total{" + WHERE + "}, function)"),
    ):
        yield {"name": name, "type": "query", "datasource": _SOURCE, "query": {"query": query, "refId": name},
               "definition": query, "multi": True, "includeAll": True, "refresh": 2, "sort": 1, "hide": 0,
               "current": {"text": ["All"], "value": ["$__all"]}}  # fmt: skip


def main() -> None:
    """Write the files into a folder."""
    for name, dashboard in dashboards().items():
        (Path(sys.argv[1]) / name).write_text(text_of(dashboard), encoding="utf-8")


if __name__ == "__main__":
    main()
