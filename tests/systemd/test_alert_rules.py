"""The alert rules that are shipped speak of metrics and labels that exist."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
import yaml

from specmine.daemon.metrics.families import FAMILIES
from tests.support.paths import ROOT

RULES = ROOT / "systemd" / "specmine-alerts.yaml"


def test_rules_name_metrics_and_labels_that_exist() -> None:
    """Every metric of an expression, and every label it or its texts use, is one of ours."""
    labels = {family.shown: set(family.labels) for family in FAMILIES}
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    assert len(group["rules"]) == 3
    for rule in group["rules"]:
        (metric,) = set(re.findall(r"specmine_\w+", rule["expr"]))
        used = set(re.findall(r"(\w+)=\"", rule["expr"]))
        used |= set(re.findall(r"\$labels\.(\w+)", " ".join(rule["annotations"].values())))
        assert used <= labels[metric]


def test_promtool_takes_the_rules() -> None:
    """Prometheus' own checker, where it is installed."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (package prometheus)")
    subprocess.run([promtool, "check", "rules", str(RULES)], check=True, capture_output=True)
