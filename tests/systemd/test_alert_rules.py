"""The alert rules that are shipped fire when they should, and only then; a real Prometheus agrees."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from specmine.daemon.metrics.families import FAMILIES
from tests.support.alert_cases import CASES
from tests.support.paths import ROOT
from tests.support.promtool import RULES, Case, outcome, tool

RECORDED = {"specmine:problem_factor": "specmine_violation_factor_ratio"}


def rules() -> list[dict[str, Any]]:
    """Return all rules, those that record too."""
    return [rule for group in yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"] for rule in group["rules"]]


def test_rules_name_metrics_and_labels_that_exist() -> None:
    """Every metric of an expression or a text, and every label that they use, is one of ours."""
    labels = {family.shown: set(family.labels) for family in FAMILIES}
    every = set[str]().union(*labels.values()) | {"job", "instance", "severity"}
    for rule in rules():
        texts = " ".join(rule.get("annotations", {}).values())
        metrics = set(re.findall(r"\bspecmine_\w+", f"{rule['expr']} {texts}"))
        assert metrics <= labels.keys()
        recorded = set(re.findall(r"specmine:\w+", rule["expr"]))
        assert recorded <= RECORDED.keys()
        used = set(re.findall(r"(\w+)=~?\"", rule["expr"])) | set(re.findall(r"(\w+)=%q", texts))
        used |= set(re.findall(r"\$labels\.(\w+)", texts)) | set(re.findall(r"label \"(\w+)\"", texts))
        assert used <= every


def test_every_alert_has_a_severity_a_text_and_a_runbook() -> None:
    """The runbook has a section of the alert's name with the four parts that one looks for."""
    runbook = (ROOT / "docs" / "alerts.md").read_text(encoding="utf-8")
    sections = {text.split("\n")[0]: text for text in re.split(r"^## ", runbook, flags=re.MULTILINE)}
    for rule in (rule for rule in rules() if "alert" in rule):
        assert rule["labels"]["severity"] in {"page", "ticket", "info"}
        assert {"summary", "description", "runbook_url"} == rule["annotations"].keys()
        assert rule["annotations"]["runbook_url"].endswith(f"alerts.md#{rule['alert'].lower()}")
        parts = re.findall(r"^\*\*(\w+)\.\*\*", sections[rule["alert"]], flags=re.MULTILINE)
        assert parts == ["Meaning", "Impact", "Diagnosis", "Mitigation"]


def test_every_alert_has_cases_that_fire_and_that_do_not() -> None:
    """So that no rule is shipped that never fires, or always."""
    alerts = {rule["alert"] for rule in rules() if "alert" in rule}
    assert {case.alert for case in CASES if any(case.fires.values())} == alerts
    assert {case.alert for case in CASES if not any(case.fires.values())} == alerts


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.alert}: {case.name}")
def test_alerts_fire_as_they_should(case: Case, tmp_path: Path) -> None:
    """promtool evaluates the rules over the series of the case."""
    assert outcome(case, tmp_path) == ""


def rendered(template: str, status: str, hosts: int, folder: Path) -> str:
    """Return what Alertmanager writes of one alert on several hosts."""
    alert = {
        "annotations": {"summary": "redis: qsort_r 34x slower", "description": "Figures.", "runbook_url": "https://r"}
    }
    alerts = [alert | {"labels": {"instance": f"shop-{number:02}"}} for number in range(1, hosts + 1)]
    data = folder / "data.json"
    data.write_text(json.dumps({"status": status, "alerts": alerts}), encoding="utf-8")
    command = [
        tool("amtool"),
        "template",
        "render",
        f"--template.glob={RULES.with_name('specmine-alertmanager.tmpl')}",
        f'--template.text={{{{ template "{template}" . }}}}',
        f"--template.data={data}",
    ]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_a_message_names_the_hosts(tmp_path: Path) -> None:
    """One message for the hosts of a deployment; of many the first eight."""
    assert rendered("specmine.title", "firing", 1, tmp_path) == "redis: qsort_r 34x slower"
    assert rendered("specmine.title", "resolved", 3, tmp_path) == "[resolved] redis: qsort_r 34x slower, 3 hosts"
    assert rendered("specmine.text", "firing", 1, tmp_path) == "Figures.\nRunbook: https://r"
    few = rendered("specmine.text", "firing", 2, tmp_path)
    assert few == "Figures.\nOn shop-01, shop-02.\nRunbook: https://r"
    many = rendered("specmine.text", "firing", 12, tmp_path)
    assert "shop-08 and others." in many and "shop-09" not in many


def test_prometheus_and_alertmanager_take_the_files() -> None:
    """Their own checkers, where they are installed."""
    for command in (
        [tool("promtool"), "check", "rules", str(RULES)],
        [tool("amtool"), "check-config", str(RULES.with_name("specmine-alertmanager.yaml"))],
    ):
        subprocess.run(command, check=True, capture_output=True)
