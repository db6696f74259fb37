"""A fleet from the command line: made, a host enrolled, served, shown, forgotten."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import yaml

from specmine.daemon.config.loader import load_config
from specmine.fleet.certificates import issue
from specmine.fleet.database.connecting import FleetError
from specmine.fleet.database.pushing import Credentials, HostConnection
from tests.support.command_line import Outcome
from tests.support.fleets import enrolled
from tests.support.postgres import Postgres
from tests.support.product import wait_until


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


def test_a_revoked_certificate_opens_nothing(
    postgres: Postgres, url: str, folder: Path, outcome: Callable[..., Outcome]
) -> None:
    """Of a host that was enrolled anew, the old one is refused and the new one is not; then that one is, too."""
    host = enrolled(postgres, url, folder, "web-1")
    old = Credentials(certificate=folder / "old.crt", key=folder / "old.key", authority=host.credentials.authority)
    old.certificate.write_bytes(host.credentials.certificate.read_bytes())
    old.key.write_bytes(host.credentials.key.read_bytes())
    old.key.chmod(0o600)
    issue(postgres.authority, host.role, host.folder)
    assert host.config.fleet.connect is not None

    def opens(credentials: Credentials) -> bool:
        try:
            with HostConnection(host.config.fleet.connect or "", host.role, credentials):
                return True
        except FleetError:
            return False

    assert opens(old)
    assert opens(host.credentials)
    arguments = ("fleet", "revoke", "web-1", "--database", url, "--authority", postgres.authority)
    code, out, _ = outcome(*arguments, "--keep-newest")
    assert (code, out.partition(" revoked")[0]) == (0, "1 certificate of web-1")
    wait_until(lambda: not opens(old), "the server to read its list")
    assert opens(host.credentials)
    assert outcome(*arguments)[0] == 0
    wait_until(lambda: not opens(host.credentials), "the server to read its list")
