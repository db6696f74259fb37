"""Runs become lifetimes, which are compared as any others."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from specmine.analysis.compare.comparing import compare_functions
from specmine.analysis.compare.document import document_of
from specmine.analysis.compare.sides import chosen_functions, read_sides
from specmine.fleet.lab.status import bench_document
from specmine.fleet.lab.verdict import comparisons, durations_csv, lifetimes_of
from specmine.mining.regression.comparison import Rule
from tests.support.labs import StoreLab, benchmark, result


def _done(path: Path, factor: float, **given: object) -> StoreLab:
    """Return a lab in which all runs are done; v2 takes that much longer."""
    lab = StoreLab(path)
    lab.plan(benchmark(**given))
    ledger, rng = lab.host("lab-1"), np.random.default_rng(1)
    while (claim := ledger.claim("b")) is not None:
        lab.pass_seconds(1)
        value = 10_000 * (factor if claim.run.build == "v2" else 1.0) * float(np.exp(rng.normal(0, 0.002)))
        assert ledger.finish("b", claim, result(value))
    return lab


def test_it_is_the_verdict_of_compare(tmp_path: Path) -> None:
    """The same durations as a file of ``specmine compare`` give the same function entries."""
    record = _done(tmp_path / "b.db", 1.03, lifetimes=8).record()
    csv = tmp_path / "d.csv"
    csv.write_text("".join(durations_csv(record)))
    sides = read_sides((str(csv), None), None, ("v1", "v2"), skip_bad=False, warmup=False)
    same = document_of(sides, compare_functions(sides, chosen_functions(sides, ()), Rule()), Rule(), fdr=False)
    (found,) = comparisons(record)
    assert found["functions"][0]["verdict"] == "worse"
    assert found["functions"] == same["functions"]
    assert found["order"]["interleaved"] is True


def test_several_makings_repeat_as_builds_do(tmp_path: Path) -> None:
    """The runs of one making count as one lifetime."""
    builds = {label: {"recipe": "x", "command": "y"} for label in ("v1", "v2")}
    record = _done(tmp_path / "b.db", 1.0, builds=builds, rebuilds=3, lifetimes=4).record()
    found, unread = lifetimes_of(record)
    assert sorted((each.build, each.lifetime) for each in found) == [
        (label, f"making-{number}") for label in ("v1", "v2") for number in (1, 2, 3)
    ]
    assert {each.sample.calls for each in found} == {200}
    assert unread == []


def test_progress_and_failures(tmp_path: Path) -> None:
    """While runs are left there is no comparison; what failed is listed with its reason."""
    lab = StoreLab(tmp_path / "b.db")
    lab.plan(benchmark(retries=0))
    ledger = lab.host("lab-1")
    ledger.hello("b", {"kernel": "6.1"})
    for at in range(3):
        claim = ledger.claim("b")
        assert claim is not None
        lab.pass_seconds(2)
        if at == 1:
            ledger.fail("b", claim, "exit status 1: no")
        else:
            ledger.finish("b", claim, result())
    document = bench_document(lab.record())
    assert document["schema"] == "specmine.bench/1" and not document["complete"]
    assert document["runs"] == {"total": 8, "done": 2, "running": 0, "waiting": 5, "failed": 1}
    assert document["left_seconds"] == 10.0
    assert [(each["host"], each["done"], each["silent"]) for each in document["hosts"]] == [("lab-1", 2, False)]
    assert [(each["run"], each["attempt"], each["reason"]) for each in document["failures"]] == [
        (2, 1, "exit status 1: no")
    ]
    assert document["comparisons"] == []
    lab.pass_seconds(100)
    assert bench_document(lab.record())["hosts"][0]["silent"]


def test_a_result_that_cannot_be_read_does_not_count(tmp_path: Path) -> None:
    """A host may hand in anything: it is named among the failures, and the others are compared."""
    lab = StoreLab(tmp_path / "b.db")
    lab.plan(benchmark())
    ledger = lab.host("lab-1")
    while (claim := ledger.claim("b")) is not None:
        lab.pass_seconds(1)
        ledger.finish("b", claim, b"lies" if claim.run.number == 0 else result(10_000 + claim.run.number))
    document = bench_document(lab.record())
    assert [each["run"] for each in document["failures"]] == [1]
    assert sum(document["comparisons"][0]["functions"][0]["lifetimes"]) == 7
