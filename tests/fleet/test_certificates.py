"""A fleet from the command line: made, a host enrolled, served, shown, forgotten."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import yaml

from specmine.daemon.config.loader import load_config
from tests.support.command_line import Outcome


def test_a_host_from_enrolment_to_its_end(url: str, folder: Path, outcome: Callable[..., Outcome]) -> None:
    """Each command says what it did; the configuration that it writes is one."""
    at = ("--database", url)
    authority = ("--authority", folder / "ca")
    assert outcome("fleet", "enroll", "web-1", *at, *authority)[0] == 2, "there is no authority yet"
    code, out, _ = outcome("fleet", "init", *at, *authority)
    assert code == 0
    assert "hostssl" in out
    assert str(folder / "ca" / "ca.crt") in out
    code, out, _ = outcome(
        "fleet", "enroll", "web-1", *at, *authority, "--label", "role=web", "--output", folder / "web-1"
    )
    assert code == 0
    assert sorted(os.listdir(folder / "web-1")) == ["ca.crt", "fleet.yaml", "host.crt", "host.key"]
    assert (folder / "web-1" / "host.key").stat().st_mode & 0o777 == 0o600
    config = load_config(folder / "web-1" / "fleet.yaml")
    assert config.fleet.role == "specmine:web-1"
    assert "dbname=" in str(config.fleet.connect)
    assert yaml.safe_load((folder / "web-1" / "fleet.yaml").read_text())["fleet"]["role"] == "specmine:web-1"
    assert outcome("fleet", "serve", "--once", *at)[0] == 0
    code, out, _ = outcome("fleet", "hosts", *at, "--format", "json")
    (host,) = json.loads(out)["hosts"]
    assert (host["host"], host["labels"], host["state"], host["seen_at"]) == ("web-1", {"role": "web"}, "active", None)
    code, out, _ = outcome("fleet", "status", *at)
    assert "1 never seen" in out
    assert outcome("fleet", "quarantine", "web-1", *at)[0] == 0
    assert "quarantined" in outcome("fleet", "hosts", *at)[1]
    assert outcome("fleet", "forget", "web-1", *at)[0] == 0
    assert outcome("fleet", "forget", "web-1", *at)[0] == 2
    assert outcome("fleet", "enroll", "no such; name", *at, *authority)[0] == 2
