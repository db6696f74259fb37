"""The fleet's metrics are read by Prometheus' own parser, and its alert rules fire when they should."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from specmine.fleet.metrics import METRICS, metrics_text
from tests.support import promtool
from tests.support.paths import ROOT
from tests.support.promtool import Case

_RULES = ROOT / "systemd" / "specmine-fleet-alerts.yaml"
_STATUS: dict[str, Any] = {
    "hosts": {"active": 9, "silent": 1}, "inbox": {"pushes": 0, "oldest_seconds": None}, "functions": 4,
    "sharing": {"planner": True, "duties": {"panel": 30}, "stated": 3, "waiting_to_be_mined": 1},
    "bytes": 1 << 40, "levels": {"observation": {"partitions": 2, "bytes": 77}},
}  # fmt: skip
_LEVELS: dict[str, Any] = {
    "hosts_that_stand_out": [{"host": "h17", "factor": 2.3}],
    "hosts_that_changed": [{"host": "h9", "factor": 1.5}],
    "builds": [
        {"function": 'f"\\\n', "module": "app", "base": "v1", "new": "v2", "verdict": "worse", "ratio": 1.25},
        {"function": "g", "module": "app", "base": "v1", "new": "v2", "verdict": "undecided", "ratio": 1.1},
    ],
    "functions": [{"function": "g", "module": "app", "build": "v1", "between_hosts_ratio": 0.08}],
}


def test_the_file_is_what_prometheus_reads() -> None:
    """Each value with its labels, names that need escapes too."""
    text = metrics_text(_STATUS, _LEVELS, {"loaded": 7, "refused": 0, "rows": 1400}, 1.7e9)
    found = {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text) for sample in family.samples
    }  # fmt: skip
    assert found["specmine_fleet_hosts", ("silent",)] == 1
    assert found["specmine_fleet_bytes", ()] == 1 << 40
    assert found["specmine_fleet_assigned_duties", ("panel",)] == 30
    assert found["specmine_fleet_pushes_total", ("loaded",)] == 7
    assert found["specmine_fleet_outlier_host_factor_ratio", ("h17",)] == 2.3
    assert found["specmine_fleet_changed_host_factor_ratio", ("h9",)] == 1.5
    assert found["specmine_fleet_build_factor_ratio", ('f"\\\n', "app", "v1", "v2")] == 1.25
    assert ("specmine_fleet_build_factor_ratio", ("g", "app", "v1", "v2")) not in found
    assert {name for name, _ in found} == {each.name for each in METRICS}


def test_rules_name_what_exists() -> None:
    """Metrics and labels of every rule."""
    text = _RULES.read_text(encoding="utf-8")
    assert set(re.findall(r"\bspecmine_fleet_\w+", text)) <= {each.name for each in METRICS}
    labels = {label for each in METRICS for label in each.labels}
    assert set(re.findall(r"\$labels\.(\w+)", text)) | set(re.findall(r"\{(\w+)=\"", text)) <= labels
    page = (ROOT / "docs" / "fleet-operation.md").read_text(encoding="utf-8")
    rules = [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]
    assert [rule["alert"] for rule in rules if f"| `{rule['alert']}` |" not in page] == []
    assert [each.name for each in METRICS if f"`{each.name}" not in page] == []


_FIRES: dict[str, tuple[str, str, str]] = {
    "SpecmineFleetNotLoaded": ("specmine_fleet_updated_timestamp_seconds", "0+0x90", "0+30x90"),
    "SpecmineFleetInboxGrows": ("specmine_fleet_inbox_oldest_seconds", "1000+0x90", "800+0x90"),
    "SpecmineFleetHostsSilent": ('specmine_fleet_hosts{state="silent"}', "4+0x90", "0+0x90"),
    "SpecmineFleetRefused": ('specmine_fleet_pushes_total{outcome="refused"}', "0+1x90", "5+0x90"),
    "SpecmineFleetHostChanged": ('specmine_fleet_changed_host_factor_ratio{host="h9"}', "1.5+0x90", "1.2+0x90"),
    "SpecmineFleetHostStandsOut": ('specmine_fleet_outlier_host_factor_ratio{host="h17"}', "2.3+0x90", "1.2+0x90"),
    "SpecmineFleetBuildSlower": ('specmine_fleet_build_factor_ratio{function="f",new="v2"}', "1.3+0x90", "0.8+0x90"),
}


@pytest.mark.parametrize("alert", _FIRES)
def test_alerts_fire_as_they_should(alert: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """promtool evaluates each rule over series that are wrong, and over series that are fine."""
    monkeypatch.setattr(promtool, "RULES", _RULES)
    series, wrong, fine = _FIRES[alert]
    labels = dict(re.findall(r'(\w+)="(\w+)"', series))
    kept = {} if alert == "SpecmineFleetHostsSilent" else labels
    severity = {rule["alert"]: rule["labels"]["severity"] for group in yaml.safe_load(_RULES.read_text())["groups"]
                for rule in group["rules"]}[alert]  # fmt: skip
    for values, fires in ((wrong, True), (fine, False)):
        case = Case(alert=alert, name="", series={series: values}, fires={30: fires},
                    labels={**kept, "severity": severity})  # fmt: skip
        assert promtool.outcome(case, tmp_path) == ""
