"""Runs Prometheus' own tools on the alert rules: a case says which series there are, and which alerts fire when."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from tests.support.paths import ROOT

RULES = ROOT / "systemd" / "specmine-alerts.yaml"
INTERVAL_S = 30


@dataclass(frozen=True, kw_only=True)
class Case:
    """Series in promtool's notation, one value each 30 s, and whether one alert fires at some minutes."""

    alert: str
    name: str
    series: Mapping[str, str]
    fires: Mapping[int, bool]
    """Minute to whether the alert fires then."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Of the alert that fires, without its name."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Those annotations that are looked at."""


def tool(name: str) -> str:
    """Return the path of a tool; the test is skipped where it is not installed."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed (packages prometheus and prometheus-alertmanager)")
    return found


def outcome(case: Case, folder: Path) -> str:
    """Return what promtool says of a case, '' if all is as expected; the folder takes its files."""
    rules = yaml.safe_load(RULES.read_text(encoding="utf-8"))
    for rule in (rule for group in rules["groups"] for rule in group["rules"]):
        if "alert" in rule:  # promtool compares all annotations
            rule["annotations"] = {name: text for name, text in rule["annotations"].items() if name in case.texts}
    (folder / "rules.yaml").write_text(json.dumps(rules), encoding="utf-8")
    expected = {"exp_labels": dict(case.labels), "exp_annotations": dict(case.texts)}
    tests = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": f"{INTERVAL_S}s",
        "tests": [
            {
                "interval": f"{INTERVAL_S}s",
                "input_series": [{"series": name, "values": values} for name, values in case.series.items()],
                "alert_rule_test": [
                    {"eval_time": f"{minute}m", "alertname": case.alert, "exp_alerts": [expected] if fires else []}
                    for minute, fires in case.fires.items()
                ],
            }
        ],
    }
    (folder / "case.yaml").write_text(json.dumps(tests), encoding="utf-8")
    command = [tool("promtool"), "test", "rules", "case.yaml"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


@contextmanager
def prometheus(folder: Path, target: str, receiver: str) -> Iterator[str]:
    """Run Prometheus with the shipped rules, a scrape and an evaluation each second; yield its address."""
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(RULES)],
        "scrape_configs": [{"job_name": "specmine", "static_configs": [{"targets": [target]}]}],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [receiver]}]}]},
    }
    file = folder / "prometheus.yaml"
    file.write_text(json.dumps(config), encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [
        tool("prometheus"),
        f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=error",
    ]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield f"127.0.0.1:{port}"
    finally:
        child.kill()
        child.wait()
