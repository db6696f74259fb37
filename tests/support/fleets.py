"""What tests of the fleet share: a host with its certificate, its store, and what a fleet holds as one value."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from specmine.daemon.config.tree import Config, FleetSettings, StoreSettings
from specmine.fleet.certificates import issue
from specmine.fleet.database.centre.serving import serve
from specmine.fleet.database.centre.turns import Served
from specmine.fleet.database.connecting import Connection, connected
from specmine.fleet.database.hosts import enroll, host_named
from specmine.fleet.database.levels import FleetRetention
from specmine.fleet.database.pushing import Credentials, HostConnection
from specmine.fleet.place import FleetPlace, fleet_place
from specmine.fleet.push import Push, pushes_of
from specmine.model.batch import Lifetime
from specmine.model.observation import Observation
from specmine.model.pooling import pooled
from specmine.store import Document, Host, Writes, open_store
from tests.support.postgres import Postgres
from tests.support.stored import FUNCTION, SECOND, UTC, observation

FOR_EVER = FleetRetention(
    observations=FleetRetention().fleet_hours * 20, host_hours=FleetRetention().fleet_hours * 20, limit_bytes=1 << 50
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnrolledHost:
    """A host of a test, with a store of its own."""

    name: str
    role: str
    folder: Path
    config: Config

    @property
    def credentials(self) -> Credentials:
        """Its certificate."""
        fleet = self.config.fleet
        return Credentials(
            certificate=Path(fleet.certificate), key=Path(fleet.private_key), authority=Path(fleet.authority)
        )

    def connection(self) -> HostConnection:
        """Connect as it."""
        assert self.config.fleet.connect is not None
        return HostConnection(self.config.fleet.connect, self.role, self.credentials)

    @property
    def boot_id(self) -> str:
        """Of the boot that its store speaks of."""
        return f"boot-{self.name}"

    @property
    def lifetime(self) -> Lifetime:
        """Of the program in its store."""
        return Lifetime(id=f"{self.boot_id}:7:99", pid=7, executable="/bin/app", build_id="ab", start_ns=5, processes=2)

    def observe(self, seconds: Iterable[int], *, document: dict[str, object] | None = None) -> None:
        """Write windows of some seconds into its store, and a specification."""
        windows = [replace(observation(second, names=("b", "?")), lifetime=self.lifetime.id) for second in seconds]
        host = Host(boot_id=self.boot_id, hostname=self.name, utc_offset_ns=UTC, facts={"kernel": "6.18"})
        documents = (Document(name="specification", document=document),) if document is not None else ()
        with open_store(self.config.store.path) as store:
            store.write(Writes((host, self.lifetime, FUNCTION, *windows, *documents)), UTC + 100 * SECOND)


def enrolled(postgres: Postgres, url: str, folder: Path, name: str, **labels: str) -> EnrolledHost:
    """Enrol a host, and make its certificate in a folder."""
    with connected(url, autocommit=True) as db:
        role = enroll(db, name, labels)
        database = db.info.dbname
    issue(postgres.authority, role, folder / name)
    at = folder / name
    config = Config(
        store=StoreSettings(path=str(at / "store.db")),
        fleet=FleetSettings(
            connect=postgres.tls_url(database), role=role, certificate=str(at / "host.crt"),
            private_key=str(at / "host.key"), authority=str(at / "ca.crt"), spool_folder=str(at / "spool"),
        ),
    )  # fmt: skip
    return EnrolledHost(name=name, role=role, folder=at, config=config)


def load_all(url: str, retention: FleetRetention = FOR_EVER) -> Served:
    """Load all that waits."""
    return serve(url, retention, once=True, tell=print)


def place(url: str, labels: tuple[str, ...] = (), host: str | None = None, since: str | None = None) -> FleetPlace:
    """Return a part of a fleet."""
    return fleet_place(url, labels, host, since)


def digest(observations: Iterable[Observation]) -> dict[str, str]:
    """Return a hash of all that some observations hold of each lifetime, however they are cut into rows."""
    groups: dict[str, list[Observation]] = {}
    for each in observations:
        groups.setdefault(f"{each.function} {each.lifetime} {each.kind}", []).append(each)
    return {key: _digest(pooled(group)) for key, group in groups.items()}


def _digest(seen: Observation) -> str:
    paths = [[[frame.name for frame in one.path.frames], one.histogram.pairs] for one in seen.paths]
    split = seen.split
    parts = [] if split is None else [split.waiting_ns.pairs, split.blocked_ns.pairs, split.on_cpu.pairs]
    numbers = [seen.start_ns, seen.end_ns, seen.calls, seen.watched_ns, seen.inner, seen.censored, seen.uncertainty_ns]
    return hashlib.sha256(json.dumps([numbers, seen.histogram.pairs, paths, parts]).encode()).hexdigest()


def imported(db: Connection, name: str, push: Push) -> None:
    """Let a push wait in the inbox as one of a host, which is enrolled if it is not; it needs no certificate."""
    enroll(db, name, {})
    host = host_named(db, name)
    stream = uuid.uuid5(uuid.NAMESPACE_DNS, name)
    there = db.execute("SELECT accepted FROM specmine.stream WHERE stream = %s", (stream,)).fetchone()
    first = 1 + (there["accepted"] if there is not None else 0)
    for number, payload in enumerate(pushes_of(push), start=first):
        db.execute(
            "SELECT * FROM specmine.import_push(%s, %s, %s, %s, %s)",
            (host.host_id, stream, number, payload, hashlib.sha256(payload).digest()),
        )
