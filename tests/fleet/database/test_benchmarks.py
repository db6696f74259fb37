"""Hosts of a fleet share a benchmark: blocks stay together, shares are equal, a host may speak for itself alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from specmine.fleet.database.benchmarks import FleetLedger, HostLogin, hosts_for
from specmine.fleet.database.connecting import Connection
from specmine.fleet.database.hosts import set_state
from specmine.fleet.lab.ledger import LedgerAway
from specmine.model.errors import InputError
from tests.support.fleets import enrolled
from tests.support.labs import FleetLab, benchmark, result
from tests.support.postgres import Postgres


@pytest.fixture
def lab(url: str, db: Connection) -> Iterator[FleetLab]:
    """Return two hosts."""
    made = FleetLab(url, db)
    made.enroll()
    yield made
    made.close()


def test_blocks_stay_on_a_host_and_shares_are_equal(lab: FleetLab) -> None:
    """One host asks twice as often: each block has both builds on one host, and each host the same number."""
    lab.plan(benchmark(lifetimes=8))
    fast, slow = lab.host("lab-1"), lab.host("lab-2")
    for each in (fast, slow):
        each.hello("b", {})
    while lab.record().complete is False:
        for ledger in (fast, fast, slow):
            claim = ledger.claim("b")
            if claim is not None:
                assert ledger.finish("b", claim, result())
    runs = lab.record().runs
    assert Counter(each.host for each in runs) == {"lab-1": 8, "lab-2": 8}
    for block in range(8):
        mine = [each for each in runs if each.run.block == block]
        assert len({each.host for each in mine}) == 1
        assert {each.run.build for each in mine} == {"v1", "v2"}


def test_two_runners_never_have_the_same_run(lab: FleetLab) -> None:
    """Leases are held at once by two hosts: all numbers differ."""
    lab.plan(benchmark(lifetimes=6))
    ledgers = [lab.host("lab-1"), lab.host("lab-2")]
    claims = [claim for _ in range(6) for each in ledgers if (claim := each.claim("b")) is not None]
    assert sorted(each.run.number for each in claims) == list(range(12))


def test_a_host_alone_takes_all(lab: FleetLab) -> None:
    """Hosts that never come, and hosts that are gone, leave nothing undone."""
    lab.plan(benchmark(lifetimes=4))
    gone, there = lab.host("lab-1"), lab.host("lab-2")
    gone.hello("b", {})
    there.hello("b", {})
    begun = gone.claim("b")
    assert begun is not None and gone.finish("b", begun, result())
    half = 0
    while (claim := there.claim("b")) is not None:
        half += 1
        there.finish("b", claim, result())
    assert half == 4, "the other half is the other host's while it is there"
    lab.pass_seconds(61)
    while (claim := there.claim("b")) is not None:
        there.finish("b", claim, result())
    record = lab.record()
    assert record.complete
    assert Counter(each.host for each in record.runs) == {"lab-1": 1, "lab-2": 7}


def test_a_host_waits_for_the_others(lab: FleetLab) -> None:
    """The first to come takes its share and no more, until a lease has passed without the other."""
    lab.plan(benchmark(lifetimes=4))
    early = lab.host("lab-1")
    early.hello("b", {"kernel": "6"})
    taken = 0
    while (claim := early.claim("b")) is not None:
        taken += 1
        early.finish("b", claim, result())
    assert taken == 4
    lab.pass_seconds(61)
    assert early.claim("b") is not None


def test_a_result_handed_in_twice_counts_once(lab: FleetLab) -> None:
    """The answer was lost: the same lease may say it again, and the first stays."""
    lab.plan(benchmark())
    ledger = lab.host("lab-1")
    claim = ledger.claim("b")
    assert claim is not None
    assert ledger.finish("b", claim, result(1.0)) and ledger.finish("b", claim, result(2.0))
    assert lab.record().runs[0].result == result(1.0)


def test_only_hosts_with_the_labels_run(lab: FleetLab) -> None:
    """Another is told so, as is one in quarantine or one that nobody enrolled."""
    lab.plan(benchmark(where={"role": "lab"}))
    lab.db.execute("UPDATE specmine.host SET labels = '{}' WHERE name = 'lab-2'")
    assert hosts_for(lab.db, {"role": "lab"}) == ["lab-1"]
    assert lab.host("lab-1").claim("b") is not None
    with pytest.raises(InputError, match="labels"):
        lab.host("lab-2").claim("b")
    set_state(lab.db, "lab-1", "quarantined")
    for name in ("lab-1", "nobody"):
        with pytest.raises(InputError, match="not enrolled"):
            lab.host(name).claim("b")


def test_a_certificate_speaks_for_its_host_alone(lab: FleetLab, postgres: Postgres, url: str, folder: Path) -> None:
    """Whatever name it gives; it has a run of its own, and cannot hand in that of another host."""
    lab.plan(benchmark())
    host = enrolled(postgres, url, folder, "lab-1")
    assert host.config.fleet.connect is not None
    ledger = FleetLedger(
        HostLogin(url=host.config.fleet.connect, host="lab-2", role=host.role, credentials=host.credentials)
    )
    try:
        mine, other = ledger.claim("b"), lab.host("lab-2").claim("b")
        assert mine is not None and other is not None
        assert not ledger.finish("b", other, result())
        assert not ledger.beat("b", other)
        ledger.fail("b", other, "no")
        assert ledger.finish("b", mine, result())
    finally:
        ledger.close()
    states = {each.run.number: (each.host, each.state) for each in lab.record().runs}
    assert states[mine.run.number] == ("lab-1", "done")
    assert states[other.run.number] == ("lab-2", "running")


def test_a_lost_connection_is_made_anew(lab: FleetLab) -> None:
    """It is an error that passes, and the next question is answered."""
    lab.plan(benchmark())
    ledger = lab.host("lab-1")
    ledger.benchmark("b")
    lab.db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    with pytest.raises(LedgerAway):
        ledger.claim("b")
    assert ledger.claim("b") is not None
