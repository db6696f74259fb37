"""What hosts sent becomes rows once; what is no push, or speaks of another host, harms nobody."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from specmine.fleet.database.connecting import Connection
from specmine.fleet.database.hosts import hosts
from specmine.fleet.folding import FoldedRow
from specmine.fleet.forwarding.main import forward
from specmine.fleet.push import Push, encode_push
from specmine.model.observation import Observation
from specmine.store import Host
from tests.support.fleets import EnrolledHost, digest, enrolled, load_all, place
from tests.support.postgres import Postgres
from tests.support.stored import SECOND, observation


@pytest.fixture
def pair(postgres: Postgres, url: str, folder: Path) -> tuple[EnrolledHost, EnrolledHost]:
    """Return two hosts."""
    return enrolled(postgres, url, folder, "honest"), enrolled(postgres, url, folder, "liar")


def _send(host: EnrolledHost, *payloads: bytes, boot_id: str = "", now_ns: int = 1000 * SECOND) -> None:
    with host.connection() as connection:
        stream = str(uuid.uuid4())
        for number, payload in enumerate(payloads, start=1):
            connection.push(stream, number, payload, boot_id or host.boot_id, now_ns)


def test_no_host_speaks_for_another(pair: tuple[EnrolledHost, EnrolledHost], url: str, db: Connection) -> None:
    """Rows, lifetimes and descriptions of a boot come from the host that has it; the rest is refused."""
    honest, liar = pair
    honest.observe(range(30))
    forward(honest.config)
    load_all(url)
    with place(url).opened() as store:
        before = digest(store.read(Observation)), store.read(Host)
    row = FoldedRow(observation=replace(observation(50), lifetime=honest.lifetime.id), windows=1)
    other = Host(boot_id=honest.boot_id, hostname="mine", utc_offset_ns=1)
    _send(liar, encode_push(Push(rows=(row,))), encode_push(Push(records=(other,))))
    _send(liar, encode_push(Push(records=(replace(honest.lifetime, build_id="evil"),))))
    served = load_all(url)
    assert (served.pushes, served.refused) == (3, 3)
    with place(url).opened() as store:
        assert (digest(store.read(Observation)), store.read(Host)) == before
    why = [row["why"] for row in db.execute("SELECT why FROM specmine.refused")]
    assert all("another host" in each for each in why)


def test_a_liar_calls_itself_by_its_own_name(pair: tuple[EnrolledHost, EnrolledHost], url: str, db: Connection) -> None:
    """Whatever host name it sends, it is shown by the name under which it was enrolled."""
    honest, liar = pair
    honest.observe(range(3))
    forward(honest.config)
    _send(liar, encode_push(Push(records=(Host(boot_id="other", hostname="honest", utc_offset_ns=0),))))
    load_all(url)
    with place(url).opened() as store:
        assert {each.boot_id: each.hostname for each in store.read(Host)} == {
            honest.boot_id: "honest", "other": "liar",
        }  # fmt: skip


def test_garbage_goes_to_quarantine_and_stops_nobody(
    pair: tuple[EnrolledHost, EnrolledHost], url: str, db: Connection
) -> None:
    """Five pushes in an hour that are none; what another host sent after them is loaded."""
    honest, liar = pair
    _send(liar, *(b"garbage %d" % number for number in range(5)))
    honest.observe(range(3))
    forward(honest.config)
    served = load_all(url)
    assert served.refused == 5
    assert served.rows > 0
    assert {each.name: each.state for each in hosts(db)} == {"honest": "active", "liar": "quarantined"}


def test_times_are_the_databases(pair: tuple[EnrolledHost, EnrolledHost], url: str, db: Connection) -> None:
    """A row's age counts, not the host's wall clock; what says that it is older than two weeks counts as so old."""
    host, liar = pair
    row = FoldedRow(observation=replace(observation(50), lifetime=f"{host.boot_id}:1:1"), windows=1)
    wrong = Host(boot_id=host.boot_id, hostname="honest", utc_offset_ns=12345)  # its clock says 1970
    _send(host, encode_push(Push(records=(wrong,), rows=(row,))), now_ns=row.observation.end_ns + 600 * SECOND)
    old = FoldedRow(observation=replace(observation(50), lifetime="old:1:1"), windows=1)
    past = Host(boot_id="old", hostname="liar", utc_offset_ns=-(1 << 70))
    _send(liar, encode_push(Push(records=(past,), rows=(old,))))
    load_all(url)
    ages = [
        each["age"]
        for each in db.execute("SELECT now() - ends_at AS age FROM specmine.observation ORDER BY ends_at DESC")
    ]
    assert abs(ages[0] - timedelta(seconds=600)) < timedelta(seconds=60)
    assert timedelta(days=13.9) < ages[1] < timedelta(days=14.1)


def test_what_the_database_refuses_is_refused_alone(
    pair: tuple[EnrolledHost, EnrolledHost], url: str, db: Connection
) -> None:
    """A push that fails inside the database, as by a new rule of it, does not hold up the others."""
    honest, liar = pair
    db.execute("ALTER TABLE specmine.function ADD CHECK (key <> 'evil+0x1')")
    row = FoldedRow(observation=replace(observation(50, key="evil+0x1"), lifetime="mine:1:1"), windows=1)
    _send(liar, encode_push(Push(rows=(row,))))
    honest.observe(range(3))
    forward(honest.config)
    served = load_all(url)
    assert served.refused == 1
    with place(url).opened() as store:
        assert {each.lifetime for each in store.read(Observation)} == {honest.lifetime.id}
