"""A fleet under SIGKILL: database, loader and forwarders die at random moments amid traffic."""

from __future__ import annotations

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

from specmine.fleet.database.connecting import FleetError, connected
from specmine.model.observation import Observation
from specmine.store import open_store
from tests.support.fleets import EnrolledHost, digest, enrolled, load_all, place
from tests.support.paths import ROOT
from tests.support.postgres import Postgres

_LOADER = "import sys; from tests.support.fleets import FOR_EVER; from specmine.fleet.database.serving import serve;" \
    " serve(sys.argv[1], FOR_EVER, once=False, tell=lambda _: None)"  # fmt: skip


@dataclass(slots=True)
class KilledFleet:
    """Some hosts, a loader and a database."""

    postgres: Postgres
    url: str
    folder: Path
    seed: int
    kills: Counter[str] = field(default_factory=Counter)
    _loader: subprocess.Popen[bytes] | None = None
    _second: int = 0

    def run(self, hosts: int, kills: int) -> tuple[dict[str, str], dict[str, str]]:
        """Kill so often, each of the three in turn; return the digests of what was observed and of what arrived."""
        rng = random.Random(self.seed)
        members = [enrolled(self.postgres, self.url, self.folder, f"h{number}") for number in range(hosts)]
        self._start_loader()
        try:
            while sum(self.kills.values()) < kills:
                what = ("database", "loader", "forwarder")[sum(self.kills.values()) % 3]
                self._round(members, what, rng)
            self._finish(members)
        finally:
            self._stop_loader()
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
        forwarders = [_forwarder(each) for each in members]
        time.sleep(rng.uniform(0.0, 0.9))
        self.kills[what] += 1
        if what == "forwarder":
            forwarders[0].kill()
        elif what == "loader":
            self._stop_loader(signal.SIGKILL)
            self._start_loader()
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

    def _start_loader(self) -> None:
        self._loader = subprocess.Popen([sys.executable, "-c", _LOADER, self.url], cwd=ROOT, env=_environment())

    def _stop_loader(self, number: int = signal.SIGTERM) -> None:
        assert self._loader is not None
        self._loader.send_signal(number)
        self._loader.wait()


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}


def _forwarder(host: EnrolledHost) -> subprocess.Popen[bytes]:
    fleet, store = host.config.fleet, host.config.store
    path = host.folder / "specmined.yaml"
    if not path.exists():
        path.write_text(
            f"store: {{path: {store.path}}}\nfleet:\n  connect: {fleet.connect}\n  role: '{fleet.role}'\n"
            f"  certificate: {fleet.certificate}\n  private_key: {fleet.private_key}\n  authority: {fleet.authority}\n"
            f"  spool_folder: {fleet.spool_folder}\n"
        )
    return subprocess.Popen(
        [sys.executable, "-m", "specmine.fleet.forwarding.main", "--config", path], cwd=ROOT, env=_environment(),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
