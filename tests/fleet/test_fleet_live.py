"""Two hosts with a real specmined each, on a real program: what they learned is in one fleet."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from examples.fleet.host import DemoHost, compiled
from specmine.fleet.database.schema import initialize
from specmine.model.observation import Observation
from specmine.store import read_store
from tests.support.fleets import load_all, place
from tests.support.postgres import Postgres
from tests.support.product import PATIENCE_S, specmine, wait_until

pytestmark = pytest.mark.kernel
_NAMES = {"parse", "lookup", "render", "pack"}


def _seen(host: DemoHost) -> set[str]:
    """Return the functions that a host has observed."""
    if not host.store.exists():
        return set()
    with read_store(host.store) as store:
        return {each.function for each in store.read(Observation)}


def test_two_hosts_learn_into_one_fleet(postgres: Postgres, tmp_path: Path) -> None:
    """From probes over stores, certificates and the loader to the commands that read; each host is itself."""
    name = postgres.new_database("fleet1")
    url = postgres.url(name)
    initialize(url)
    build = compiled(tmp_path, "shop")
    fleet = [DemoHost(name=each, folder=tmp_path / each) for each in ("web-1", "web-2")]
    with ExitStack() as stack:
        for each in fleet:
            stack.callback(each.close)
            each.enroll(url, postgres.tls_url(name), postgres.authority)
            each.install(build)
            each.restart_program()
            each.start_daemon()
        for each in fleet:
            each.wait_for_store(PATIENCE_S)
            wait_until(lambda each=each: len(_seen(each)) == len(_NAMES), f"all functions of {each.name}", step_s=0.5)  # type: ignore[misc]
        for each in fleet:
            each.close()
            each.forward()
    served = load_all(url)
    assert served.refused == 0
    with place(url).opened() as store:
        seen = store.read(Observation)
    assert len({each.function for each in seen}) == len(_NAMES)
    assert {each.lifetime.partition(":")[0] for each in seen} == {
        (each.folder / "boot_id").read_text(encoding="ascii").strip() for each in fleet
    }
    assert sum(each.timed for each in seen) > 0
    hosts = json.loads(specmine("fleet", "hosts", "--database", url, "--format", "json").stdout)["hosts"]
    assert [(each["host"], each["seen_at"] is not None) for each in hosts] == [("web-1", True), ("web-2", True)]
    levels = json.loads(specmine("fleet", "levels", "--database", url, "--format", "json").stdout)
    assert {each["function"]: each["hosts"] for each in levels["functions"]} == dict.fromkeys(_NAMES, 2)
