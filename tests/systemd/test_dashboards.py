"""The dashboards ask only for what a scrape has, and a real Prometheus answers their queries."""

from __future__ import annotations

import json
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from specmine.daemon.metrics.dashboard_panels import panels
from specmine.daemon.metrics.dashboards import dashboards, text_of
from specmine.daemon.metrics.families import FAMILIES
from specmine.daemon.metrics.http import MetricsServer
from specmine.daemon.metrics.snapshot import FunctionSnapshot
from specmine.model.level import Level, Quantile
from tests.daemon.metrics.test_collector import reading, status
from tests.support.paths import ROOT
from tests.support.patience import patient
from tests.support.promtool import prometheus
from tests.systemd.test_prometheus import problem

_METRIC = re.compile(r"\bspecmine_\w+")
QUERIES = [query for panel in panels() for query, _ in panel.queries]
NAMES = {family.shown for family in FAMILIES}
LABELS = {label for family in FAMILIES for label in family.labels} | {"instance", "job"}
SCHEMAS = json.loads((Path(__file__).parent / "grafana_schema.json").read_text(encoding="utf-8"))
"""What Grafana itself publishes: of a dashboard, and of the options and the fields of each kind of panel."""
OF_PROMETHEUS = {"expr", "step", "textFormat", "titleFormat"}
"""Keys that its Prometheus plugin has in annotations, beside those of the schema; ``definition`` in variables."""
WITHOUT_DATA = ("specmine_experiment_value and",)
"""Queries about what the sample of the metrics does not have: a valid experiment."""


@pytest.mark.parametrize("name", dashboards())
def test_the_files_are_what_the_list_makes(name: str) -> None:
    """``python -m specmine.daemon.metrics.dashboards systemd`` writes them anew."""
    assert (ROOT / "systemd" / name).read_text(encoding="utf-8") == text_of(dashboards()[name])


@pytest.mark.parametrize("name", dashboards())
def test_grafana_knows_every_key(name: str) -> None:
    """A misspelt key would be left out in silence."""
    board = json.loads(text_of(dashboards()[name]))
    for annotation in board["annotations"]["list"]:
        for key in OF_PROMETHEUS & set(annotation):
            del annotation[key]
    for variable in board["templating"]["list"]:
        variable.pop("definition", None)
    assert problems_of("dashboard", board) == []
    for panel in board["panels"]:
        if panel["type"] != "row":
            assert f"{panel['type']}.options" in SCHEMAS
            assert problems_of(f"{panel['type']}.options", panel["options"]) == []
            custom = panel["fieldConfig"]["defaults"].get("custom", {})
            assert problems_of(f"{panel['type']}.custom", custom) == []


def test_a_key_that_grafana_does_not_know_is_found() -> None:
    """In a dashboard, in a panel, and in its options."""
    board = json.loads(text_of(dashboards()["specmine-cost.json"]))
    panel = next(each for each in board["panels"] if each["type"] == "timeseries")
    assert problems_of("timeseries.options", panel["options"] | {"legnd": {}})
    assert problems_of("timeseries.options", panel["options"] | {"legend": {"displayMode": "tabel"}})
    assert problems_of("dashboard", {"panels": [panel | {"descripton": "x"}]})
    assert problems_of("dashboard", {"titel": "x"})


def problems_of(part: str, found: object) -> list[str]:
    """Return what the schema of a part says against it; a kind of panel without fields of its own has no schema."""
    if part not in SCHEMAS:
        return [] if found == {} else [f"{part} has no schema"]
    return [error.message for error in jsonschema.Draft7Validator(SCHEMAS[part]).iter_errors(found)]


def test_queries_name_metrics_that_exist() -> None:
    """Also those of variables and annotations."""
    asked = [json.dumps([board["templating"], board["annotations"]]) for board in dashboards().values()]
    named = {name for query in (*QUERIES, *asked) for name in _METRIC.findall(query)}
    assert len(named) > 20
    assert named <= NAMES


def test_queries_name_labels_that_exist() -> None:
    """In selectors, and after by, on, ignoring and group_left."""
    for query in QUERIES:
        selected = re.findall(r"(\w+)\s*=~?\s*\"", query)
        grouped = [each for part in re.findall(r"(?:by|on|ignoring|group_left)\s*\(([^)]*)\)", query)
                   for each in part.replace(" ", "").split(",") if each]  # fmt: skip
        assert {*selected, *grouped} <= LABELS, query


def test_every_panel_is_a_question_with_a_description_and_a_place() -> None:
    """Panels do not overlap and are not wider than the screen."""
    for board in dashboards().values():
        taken: set[tuple[int, int]] = set()
        ids = [panel["id"] for panel in board["panels"]]
        assert len(set(ids)) == len(ids)
        for panel in board["panels"]:
            place = panel["gridPos"]
            cells = {
                (x, y)
                for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])
            }
            assert not cells & taken, panel["title"]
            assert place["x"] + place["w"] <= 24
            taken |= cells
            if panel["type"] != "row":
                assert panel["title"].endswith("?")
                assert panel["description"].endswith(".")
                assert panel["fieldConfig"]["defaults"]["unit"]


def answer(address: str, query: str) -> list[Any]:
    """Return the series of a query, with every variable of the dashboard set to all."""
    filled = re.sub(r"\$\w+", ".*", query)
    asked = f"http://{address}/api/v1/query?" + urllib.parse.urlencode({"query": filled})
    with urllib.request.urlopen(asked, timeout=patient(10)) as said:
        result: list[Any] = json.loads(said.read())["data"]["result"]
    return result


def levelled(function: FunctionSnapshot) -> FunctionSnapshot:
    """Return a function with levels and with calls that are split into running and waiting."""
    level = Level(p50=Quantile(ns=2e6, low_ns=1.9e6, high_ns=2.2e6))
    return replace(
        function,
        totals=replace(function.totals, running_ns=10**9, waiting_ns=10**8, blocked_ns=10**8),
        behaviours=tuple(replace(each, expected=level, observed=level) for each in function.behaviours),
    )


@pytest.mark.slow
def test_a_real_prometheus_answers_every_query(tmp_path: Path) -> None:
    """Each query parses, joins without a conflict, and has series where the sample has data."""
    functions = [problem("checksum"), problem("serve", because="checksum"), levelled(reading("parse"))]
    facts = {"functions": {"single": 3}, "refusals": {"vdso": 1}, "restarts": {"worker": 1}}
    server = MetricsServer(("127.0.0.1", 0), lambda: (functions, status() | facts), series=2000)
    try:
        with prometheus(tmp_path, server.address, "127.0.0.1:1") as address:
            empty = set(QUERIES)
            end = time.monotonic() + patient(30)
            while time.monotonic() < end and any(not each.startswith(WITHOUT_DATA) for each in empty):
                time.sleep(0.5)
                try:
                    empty -= {query for query in empty if answer(address, query)}
                except urllib.error.HTTPError as error:
                    raise AssertionError(error.read().decode()) from error
                except OSError:  # it is not listening yet
                    continue
    finally:
        server.close()
    assert [each for each in empty if not each.startswith(WITHOUT_DATA)] == []
