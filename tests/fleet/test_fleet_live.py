"""Two hosts with a real specmined each, on a real program: what they learned is in one fleet."""

from __future__ import annotations

import json
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from examples.fleet.host import DemoHost, compiled
from specmine.daemon.socket.client import ask
from specmine.fleet.database.centre.serving import ROLES, serve
from specmine.fleet.database.connecting import connected
from specmine.fleet.database.schema import initialize
from specmine.fleet.database.sharing import statement_entries
from specmine.model.observation import Observation
from specmine.store import StoreError, read_store
from tests.support.fleets import FOR_EVER, load_all, place
from tests.support.postgres import Postgres
from tests.support.product import PATIENCE_S, specmine, wait_until

pytestmark = pytest.mark.kernel
_NAMES = {"parse", "lookup", "render", "pack"}


def _seen(host: DemoHost) -> set[str]:
    """Return the functions that a host has observed."""
    try:
        with read_store(host.store) as store:
            return {each.function for each in store.read(Observation)}
    except StoreError:  # the daemon is making it
        return set()


def _shared(fleet: list[DemoHost], url: str) -> bool:
    """Let each host send another row of each function, plan and mine; return whether both state something together."""
    before = {each.name: each.windows() for each in fleet}
    wait_until(lambda: all(each.windows() > before[each.name] for each in fleet), "more windows", step_s=0.3)
    for each in fleet:
        each.forward()
    for _ in range(2):  # planned, mined, planned with what was mined
        assert serve(url, FOR_EVER, once=True, tell=print, roles=ROLES).refused == 0
    with connected(url, autocommit=True) as db:
        return any(each["state"] == "stated" and each["hosts"] == len(fleet) for each in statement_entries(db))


def _told(host: DemoHost) -> dict[str, Any]:
    """Return what the fleet asks a host for, as its daemon says."""
    found: dict[str, Any] = ask(host.folder / "socket", {"command": "status"})["fleet"]
    return found


def test_two_hosts_learn_into_one_fleet(postgres: Postgres, tmp_path: Path) -> None:
    """From probes over stores, certificates and the loader to the commands that read; each host is itself.

    And back: duties and statements mined from both go down to the daemons that run.
    """
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
        wait_until(partial(_shared, fleet, url), "a statement of both hosts", step_s=0.0)
        for each in fleet:
            each.forward()
            wait_until(lambda each=each: _told(each)["statements"] > 0, f"statements on {each.name}", step_s=0.3)  # type: ignore[misc]
            told = _told(each)
            assert told["in_force"]
            assert sum(told["duties"].values()) >= len(_NAMES)
            each.close()
            each.forward()
    served = load_all(url)
    assert served.refused == 0
    stated = json.loads(specmine("fleet", "statements", "--database", url, "--format", "json").stdout)["statements"]
    assert {each["function"] for each in stated} <= _NAMES
    assert any(each["state"] == "stated" and each["hosts"] == 2 for each in stated)
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
