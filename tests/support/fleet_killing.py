"""A fleet under SIGKILL: database, loader, forwarders, planner and analyst die at random moments amid traffic."""

from __future__ import annotations

import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from specmine.fleet.codec import inflated
from specmine.fleet.database.centre.serving import ROLES, serve
from specmine.fleet.database.connecting import FleetError, connected
from specmine.fleet.database.sharing import duty_entries, statement_entries
from specmine.model.observation import Observation
from specmine.store import open_store
from tests.support.fleets import FOR_EVER, EnrolledHost, digest, enrolled, load_all, place
from tests.support.paths import ROOT
from tests.support.postgres import Postgres

_LOADER = "import sys; from tests.support.fleets import FOR_EVER;" \
    " from specmine.fleet.database.centre.serving import serve;" \
    " serve(sys.argv[1], FOR_EVER, once=False, tell=lambda _: None)"  # fmt: skip


_PLANNER = _LOADER.replace("tell=lambda _: None", "tell=lambda _: None, roles=('plan',), plan_s=0.2")
_ANALYST = _PLANNER.replace("'plan'", "'mine'")
KINDS = ("database", "loader", "forwarder", "planner", "analyst")
"""What is killed in turn."""


@dataclass(slots=True)
class KilledFleet:
    """Some hosts, a loader, a planner and a database."""

    postgres: Postgres
    url: str
    folder: Path
    seed: int
    kills: Counter[str] = field(default_factory=Counter)
    _loader: subprocess.Popen[bytes] | None = None
    _planner: subprocess.Popen[bytes] | None = None
    _analyst: subprocess.Popen[bytes] | None = None
    _second: int = 0

    def run(self, hosts: int, kills: int, seconds: float = math.inf) -> tuple[dict[str, str], dict[str, str]]:
        """Kill so often, or for so long, each kind in turn; return digests of what was observed and of what arrived."""
        until = time.monotonic() + seconds
        rng = random.Random(self.seed)
        members = [enrolled(self.postgres, self.url, self.folder, f"h{number}") for number in range(hosts)]
        self._loader, self._planner = _serving(_LOADER, self.url), _serving(_PLANNER, self.url)
        self._analyst = _serving(_ANALYST, self.url)
        try:
            while sum(self.kills.values()) < kills and time.monotonic() < until:
                what = KINDS[sum(self.kills.values()) % len(KINDS)]
                self._round(members, what, rng)
            self._finish(members)
        finally:
            _stop(self._loader, signal.SIGTERM)
            _stop(self._planner, signal.SIGTERM)
            _stop(self._analyst, signal.SIGTERM)
        load_all(self.url)
        expected: list[Observation] = []
        for each in members:
            with open_store(each.config.store.path, read_only=True) as store:
                expected += store.read(Observation)
        with place(self.url).opened() as far:
            return digest(expected), digest(far.read(Observation))

    def _round(self, members: list[EnrolledHost], what: str, rng: random.Random) -> None:
        """Let all hosts observe and send, and kill something meanwhile."""
        for each in members:
            each.observe(range(self._second, self._second + 6))
        self._second += 6
        self._want_mined()
        forwarders = [_forwarder(each) for each in members]
        time.sleep(rng.uniform(0.0, 0.9))
        self.kills[what] += 1
        if what == "forwarder":
            forwarders[0].kill()
        elif what == "loader":
            _stop(self._loader, signal.SIGKILL)
            self._loader = _serving(_LOADER, self.url)
        elif what == "planner":
            _stop(self._planner, signal.SIGKILL)
            self._planner = _serving(_PLANNER, self.url)
        elif what == "analyst":
            _stop(self._analyst, signal.SIGKILL)
            self._analyst = _serving(_ANALYST, self.url)
        else:
            self.postgres.kill()
            self.postgres.start()
        for forwarder in forwarders:
            forwarder.wait()

    def _finish(self, members: list[EnrolledHost]) -> None:
        for each in members:
            for _ in range(20):
                if _forwarder(each).wait() == 0:
                    break
                time.sleep(0.1)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with suppress(FleetError), connected(self.url, autocommit=True) as db:
                row = db.execute("SELECT count(*) AS left FROM specmine.inbox").fetchone()
                if row is not None and not row["left"]:
                    return
            time.sleep(0.1)

    def planned(self) -> bool:
        """Plan and mine once more; return whether what hosts are told is what the tables of duties and models say."""
        with connected(self.url, autocommit=True) as db:
            db.execute("UPDATE specmine.job SET leased_until = NULL")  # as when the leases of the killed have run out
        serve(self.url, FOR_EVER, once=True, tell=print, roles=ROLES)
        with connected(self.url, autocommit=True) as db:
            told = {
                (row["name"], each["function"], each["purpose"])
                for row in db.execute(
                    "SELECT h.name, a.document FROM specmine.assignment a JOIN specmine.host h USING (host_id)"
                )
                for each in json.loads(inflated(bytes(row["document"]))).get("duties", ())
            }
            duties = {(each["host"], each["key"], each["purpose"]) for each in duty_entries(db) if not each["missed"]}
            left = db.execute("SELECT count(*) AS jobs FROM specmine.job").fetchone()
            mined = statement_entries(db)
        return told == duties and left == {"jobs": 0} and len(mined) > 0

    def _want_mined(self) -> None:
        """Let the one function be mined again, so that the analyst has something to do."""
        with suppress(FleetError), connected(self.url, autocommit=True) as db:
            db.execute(
                "INSERT INTO specmine.job(function_id) SELECT function_id FROM specmine.function ON CONFLICT DO NOTHING"
            )


def _serving(program: str, url: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", program, url], cwd=ROOT, env=_environment())


def _stop(process: subprocess.Popen[bytes] | None, number: int) -> None:
    if process is not None:
        process.send_signal(number)
        process.wait()


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}


def configured(host: EnrolledHost) -> Path:
    """Return the configuration of a host, which is written at its first use."""
    fleet, store = host.config.fleet, host.config.store
    path = host.folder / "specmined.yaml"
    if not path.exists():
        path.write_text(
            f"store: {{path: {store.path}}}\nfleet:\n  connect: {fleet.connect}\n  role: '{fleet.role}'\n"
            f"  certificate: {fleet.certificate}\n  private_key: {fleet.private_key}\n  authority: {fleet.authority}\n"
            f"  spool_folder: {fleet.spool_folder}\n"
        )
    return path


def _forwarder(host: EnrolledHost) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "specmine.fleet.forwarding.main", "--config", configured(host)], cwd=ROOT,
        env=_environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
