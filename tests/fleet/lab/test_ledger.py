"""Claims, leases and results mean the same in a store and in a fleet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from specmine.fleet.lab.ledger import DONE, FAILED, RUNNING, WAITING, NoBenchmark
from specmine.model.errors import InputError
from tests.support.labs import FleetLab, Lab, StoreLab, benchmark, result


@pytest.fixture(params=["store", "fleet"])
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lab]:
    """Return a lab in a store, and one in a fleet."""
    if request.param == "store":
        yield StoreLab(tmp_path / "b.db")
        return
    made = FleetLab(request.getfixturevalue("url"), request.getfixturevalue("db"))
    made.enroll()
    yield made
    made.close()


def test_all_runs_are_taken_once_in_their_order(lab: Lab) -> None:
    """Each has one result, by the host that took it; then nothing is left."""
    lab.plan(benchmark(), hosts=1)
    ledger = lab.host("lab-1")
    ledger.hello("b", {"kernel": "6"})
    assert ledger.benchmark("b") == benchmark()
    taken = []
    while (claim := ledger.claim("b")) is not None:
        taken.append(claim.run.number)
        assert ledger.finish("b", claim, result(claim.run.number + 1.0))
    assert taken == list(range(8))
    record = lab.record()
    assert ledger.left("b") == 0 and record.complete
    assert [each.state for each in record.runs] == [DONE] * 8
    assert [each.result for each in record.runs] == [result(at + 1.0) for at in range(8)]
    assert {each.host for each in record.runs} == {"lab-1"}
    assert [(each.host, dict(each.facts)) for each in record.hosts] == [("lab-1", {"kernel": "6"})]


def test_a_run_whose_runner_died_is_taken_again_and_counts_once(lab: Lab) -> None:
    """After the lease another has it; what the first hands in then does not count."""
    lab.plan(benchmark())
    first, second = lab.host("lab-1"), lab.host("lab-2")
    lost = first.claim("b")
    assert lost is not None and first.beat("b", lost)
    lab.pass_seconds(61)
    taken = []
    while (claim := second.claim("b")) is not None:
        taken.append(claim)
        assert second.finish("b", claim, result(2.0))
    again = next(each for each in taken if each.run == lost.run)
    assert again.attempt == 2
    assert not first.beat("b", lost)
    assert not first.finish("b", lost, result(1.0))
    record = lab.record()
    assert len(taken) == 8 and record.complete
    assert record.runs[lost.run.number].host == "lab-2"
    assert record.runs[lost.run.number].result == result(2.0)
    assert [(each.number, each.host) for each in record.failures] == [(lost.run.number, "lab-1")]
    assert "not heard of" in record.failures[0].reason


def test_signs_of_life_keep_a_lease(lab: Lab) -> None:
    """For as long as they come nobody else has the run."""
    lab.plan(benchmark(lifetimes=2))
    first, second = lab.host("lab-1"), lab.host("lab-2")
    mine = first.claim("b")
    assert mine is not None
    for _ in range(3):
        lab.pass_seconds(50)
        assert first.beat("b", mine)
    others = []
    while (claim := second.claim("b")) is not None:
        others.append(claim.run.number)
        second.finish("b", claim, result())
    assert mine.run.number not in others
    assert first.finish("b", mine, result())


def test_a_run_fails_for_good_after_its_retries(lab: Lab) -> None:
    """Each reason is kept; an attempt that its runner gave back does not count."""
    lab.plan(benchmark(retries=1, lifetimes=2))
    ledger = lab.host("lab-1")
    states = []
    for counts in (True, False, True):
        claim = ledger.claim("b")
        assert claim is not None and claim.run.number == 0
        ledger.fail("b", claim, f"exit status 3: {counts}", counts=counts)
        states.append(lab.record().runs[0].state)
    assert states == [WAITING, WAITING, FAILED]
    assert [each.reason for each in lab.record().failures] == [f"exit status 3: {each}" for each in (True, False, True)]
    claim = ledger.claim("b")
    assert claim is not None and claim.run.number == 1
    assert ledger.left("b") == 3
    assert lab.record().runs[1].state == RUNNING


def test_a_lease_that_runs_out_too_often_is_a_failure(lab: Lab) -> None:
    """A program that takes its host down with it is not run for ever."""
    lab.plan(benchmark(retries=1, lifetimes=2))
    ledger = lab.host("lab-1")
    numbers = []
    for _ in range(3):
        claim = ledger.claim("b")
        assert claim is not None
        numbers.append(claim.run.number)
        lab.pass_seconds(61)
    assert numbers == [0, 0, 1]
    assert lab.record().runs[0].state == FAILED


def test_names_that_are_not_there_or_there_already(lab: Lab) -> None:
    """One line that says so."""
    lab.plan(benchmark())
    with pytest.raises(InputError, match="already"):
        lab.plan(benchmark())
    with pytest.raises(NoBenchmark):
        lab.host("lab-1").benchmark("other")
    with pytest.raises(NoBenchmark, match="there are b"):
        lab.record("other")
