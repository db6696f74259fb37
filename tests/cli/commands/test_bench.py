"""``specmine bench``: plan, run, status, on one host with a store."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.labs import PRINTS

Outcome = Callable[..., tuple[int, str, str]]


@pytest.fixture
def plan(tmp_path: Path, outcome: Outcome, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    """Return what plans a benchmark of two builds."""
    monkeypatch.delenv("SPECMINE_FLEET", raising=False)

    def make(factor: float, *options: object) -> tuple[int, str, str]:
        return outcome("bench", "plan", "sort", "--command", f"v1={PRINTS} 1.0 {{calls}}",
                       "--command", f"v2={PRINTS} {factor} {{calls}}", "--store", tmp_path / "b.db",
                       "--folder", tmp_path / "work", *options)  # fmt: skip

    return make


def test_from_a_pilot_to_the_verdict(plan: Outcome, tmp_path: Path, outcome: Outcome) -> None:
    """The counts are planned, the runs made, the slower build found: exit code 1, as compare has it."""
    code, out, err = plan(1.1, "--pilot", "3", "--pilot-calls", "200", "--tolerance", "5%", "--format", "json")
    assert code == 0, err
    planned = json.loads(out)
    assert planned["schema"] == "specmine.bench_plan/1"
    assert planned["runs"] == 2 * planned["plan"]["lifetimes"] >= 8
    assert planned["plan"]["calls"] >= 30
    store = tmp_path / "b.db"
    assert outcome("bench", "status", "sort", "--store", store)[0] == 3
    report = tmp_path / "sort.html"
    code, out, err = outcome(
        "bench", "run", "sort", "--store", store, "--folder", tmp_path / "work", "--report", report
    )
    assert code == 1, err
    assert "1 slower" in out and "code" in out
    assert "v2" in report.read_text()
    durations = tmp_path / "d.csv"
    code, out, _ = outcome("bench", "status", "sort", "--store", store, "--durations", durations, "--format", "json")
    document = json.loads(out)
    assert (code, document["complete"], document["runs"]["done"]) == (1, True, planned["runs"])
    assert document["comparisons"][0]["schema"] == "specmine.comparison/1"
    assert document["hosts"][0]["environment"]["cpus"] >= 1
    assert outcome("compare", durations, "--base", "v1", "--new", "v2")[0] == 1
    assert outcome("bench", "status", "--store", store)[1] == "sort\n"


def test_equal_builds_are_equivalent(plan: Outcome, tmp_path: Path, outcome: Outcome) -> None:
    """With counts that were given: exit code 0, and 3 for one that is too small to say."""
    assert plan(1.0, "--lifetimes", "8", "--calls", "400", "--tolerance", "4%")[0] == 0
    code, out, err = outcome("bench", "run", "sort", "--store", tmp_path / "b.db", "--folder", tmp_path / "work")
    assert code == 0, out + err
    assert "1 the same" in out


def test_mistakes_are_one_line(plan: Outcome, tmp_path: Path, outcome: Outcome) -> None:
    """A name that is taken, no place, both places, a program that is not there, a benchmark that is not."""
    assert plan(1.0, "--lifetimes", "4", "--calls", "10")[0] == 0
    for code, out, err in (
        plan(1.0, "--lifetimes", "4", "--calls", "10"),
        outcome("bench", "plan", "x", "--command", "a=b", "--command", "c=d"),
        outcome("bench", "status", "x", "--store", "a", "--fleet", "postgresql://x"),
        outcome("bench", "run", "other", "--store", tmp_path / "b.db", "--folder", tmp_path / "work"),
        outcome("bench", "plan", "x", "--command", "nothing", "--store", tmp_path / "c.db"),
        outcome("bench", "run", "x", "--store", tmp_path / "none.db", "--folder", tmp_path / "work"),
    ):
        assert (code, out, err.count("\n")) == (2, "", 1), err
    missing = outcome("bench", "plan", "y", "--command", "a=/no/such", "--command", "b=/no/such",
                      "--store", tmp_path / "c.db", "--folder", tmp_path / "work")  # fmt: skip
    assert missing[0] == 3 and "/no/such" in missing[2]


def test_a_file_and_a_key_that_nobody_knows(tmp_path: Path, outcome: Outcome) -> None:
    """Named in one line; options come above the file."""
    file = tmp_path / "b.yaml"
    file.write_text("builds: {v1: x, v2: y}\ncalls: 5\nlifetimes: 4\nrounds: 3\n")
    code, _, err = outcome("bench", "plan", "sort", "--file", file, "--store", tmp_path / "b.db")
    assert code == 2 and "'rounds'" in err
    file.write_text("builds: {v1: x, v2: y}\ncalls: 5\nlifetimes: 4\n")
    code, out, err = outcome(
        "bench", "plan", "sort", "--file", file, "--lifetimes", "6", "--store", tmp_path / "b.db", "--format", "json"
    )
    assert code == 0, err
    assert json.loads(out)["runs"] == 12
