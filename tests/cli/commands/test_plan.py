"""``specmine plan`` says how many builds, restarts and calls a comparison needs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

Outcome = Callable[..., tuple[int, str, str]]


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Four builds with four runs each of two functions; the runs of one differ by 5 %."""
    rng = np.random.default_rng(1)
    lines = ["build,lifetime,duration_ns,function"]
    for build in "abcd":
        for number in range(4):
            for name, spread in (("steady", 0.002), ("restless", 0.05)):
                values = np.exp(rng.normal(0, spread)) * rng.lognormal(10, 0.1, 200)
                lines += [f"{build},{number},{value:.0f},{name}" for value in values]
    path = tmp_path / "d.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_plan_as_json(recording: Path, outcome: Outcome) -> None:
    """The function that varies more needs more runs; together they need as many as it."""
    code, out, err = outcome("plan", recording, "--precision", "2%", "--restart", "10s", "--format", "json")
    document = json.loads(out)
    assert (code, err, document["schema"]) == (0, "", "specmine.plan/1")
    assert [each["function"] for each in document["functions"]] == ["restless", "steady"], "by calls, then name"
    restless, steady = document["functions"]
    assert restless["variances"]["lifetime"] == pytest.approx(0.0025, rel=0.5)
    assert restless["variances"]["build"] is None, "builds of several versions differ by more than compiling"
    assert restless["plan"]["lifetimes"] > 3 * steady["plan"]["lifetimes"]
    assert document["plan"]["lifetimes"] == restless["plan"]["lifetimes"]
    assert all(each["plan"]["precision"] <= 0.02001 for each in document["functions"])


def test_json_is_sorted_by_calls_and_the_text_by_cost(tmp_path: Path, outcome: Outcome) -> None:
    """The function that needs most is first for people; programs get the order of all lists."""
    rng = np.random.default_rng(1)
    lines = ["build,lifetime,duration_ns,function"]
    for number in range(8):
        for name, spread, calls in (("restless", 0.05, 100), ("steady", 0.002, 200), ("calm", 0.001, 200)):
            values = np.exp(rng.normal(0, spread)) * rng.lognormal(10, 0.1, calls)
            lines += [f"a,{number},{value:.0f},{name}" for value in values]
    path = tmp_path / "d.csv"
    path.write_text("\n".join(lines) + "\n")
    document = json.loads(outcome("plan", path, "--format", "json")[1])
    assert [each["function"] for each in document["functions"]] == ["calm", "steady", "restless"]
    rows = [line.split()[0] for line in outcome("plan", path)[1].splitlines() if line.startswith(("c", "s", "r"))]
    assert rows[0] == "restless"


def test_costs_move_the_plan(recording: Path, outcome: Outcome) -> None:
    """Expensive restarts: longer runs. Cheap ones: more of them. Rebuilds are planned where they are asked for."""

    def calls(*options: str) -> int:
        out = outcome("plan", recording, "--function", "restless", "--format", "json", *options)[1]
        return int(json.loads(out)["functions"][0]["optimal"]["calls"])

    assert calls("--restart", "1m", "--call", "1ms") > 3 * calls("--restart", "1s", "--call", "1ms")
    assert calls("--warm-up", "1m", "--call", "1ms") > 3 * calls("--restart", "1s", "--call", "1ms")
    rebuilt = json.loads(outcome("plan", recording, "--rebuilds", "--build", "5m", "--format", "json")[1])
    assert all(each["variances"]["build"] is not None for each in rebuilt["functions"])
    assert rebuilt["build_seconds"] == 300


def test_a_plan_for_people(recording: Path, outcome: Outcome) -> None:
    """One sentence first, then a row a function."""
    code, out, _ = outcome("plan", recording, "--precision", "2%")
    assert code == 0
    assert out.startswith("For ±2 % of the median: ")
    assert "A restart costs 10 µs" in " ".join(outcome("plan", recording, "--restart", "0.00001")[1].split())
    assert [line.split()[0] for line in out.splitlines() if line.startswith(("restless", "steady"))] == [
        "restless", "steady",
    ]  # fmt: skip


def test_single_runs_are_not_enough(tmp_path: Path, outcome: Outcome) -> None:
    """One run of each build shows nothing of how runs differ: exit code 3, with the remedy."""
    path = tmp_path / "d.csv"
    path.write_text("build,lifetime,duration_ns\n" + "".join(f"{b},1,{1000 + n}\n" for b in "ab" for n in range(50)))
    code, out, _ = outcome("plan", path)
    assert code == 3
    assert "run each build at least twice" in out.lower()


def test_a_function_that_is_not_there_is_a_wrong_name(recording: Path, outcome: Outcome) -> None:
    """Exit code 2, also beside a name that is there, with what may be meant."""
    for more in ((), ("--function", "steady")):
        code, out, err = outcome("plan", recording, *more, "--function", "stedy")
        assert (code, out) == (2, "")
        assert "no function matches stedy; did you mean steady" in err
