"""``specmine compare`` says worse, better, equivalent or undecided, and never more than lifetimes tell."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Outcome = Callable[..., tuple[int, str, str]]
Compared = Callable[..., tuple[int, dict[str, Any]]]
Row = tuple[object, ...]


def lifetimes(
    build: str,
    factor: float,
    count: int = 5,
    *,
    seed: int = 1,
    calls: int = 60,
    spread: float = 0.01,
    function: str = "f",
) -> list[Row]:
    """Return rows of lifetimes that differ by ``spread`` from each other."""
    rng = np.random.default_rng(seed)
    return [
        (build, number, f"{duration:.1f}", function)
        for number in range(count)
        for duration in factor * np.exp(rng.normal(0, spread)) * rng.lognormal(10, 0.05, calls)
    ]


@pytest.fixture
def table(tmp_path: Path) -> Callable[..., Path]:
    """Return what writes a CSV."""

    def write(*groups: Iterable[Row], header: str = "build,lifetime,duration_ns,function", end: str = "\n") -> Path:
        path = tmp_path / "d.csv"
        rows = [",".join(map(str, row)) for group in groups for row in group]
        path.write_bytes((end.join([header, *rows]) + end).encode())
        return path

    return write


def test_a_slower_build_is_worse(table: Callable[..., Path], compared: Compared) -> None:
    """Ten per cent are found, with an interval that holds them, and exit code 1."""
    path = table(lifetimes("a", 1.0), lifetimes("b", 1.1, seed=2))
    code, document = compared(path, "--base", "a", "--new", "b")
    (found,) = document["functions"]
    assert (code, document["schema"], found["verdict"]) == (1, "specmine.comparison/1", "worse")
    assert found["interval"][0] <= 1.1 <= found["interval"][1]
    assert found["ratio"] == pytest.approx(1.1, abs=0.03)
    assert (found["level"], found["summary"], found["lifetimes"]) == (0.95, "median", [5, 5])
    assert found["needed_lifetimes"] is None


def test_code_that_is_not_known_is_not_unchanged(table: Callable[..., Path], compared: Compared) -> None:
    """A CSV says nothing of machine code: a worse function gives exit code 1, with --strict and without."""
    path = table(lifetimes("a", 1.0), lifetimes("b", 1.1, seed=2))
    for strict in ((), ("--strict",)):
        code, document = compared(path, "--base", "a", "--new", "b", *strict)
        (found,) = document["functions"]
        assert (code, found["verdict"], found["code_unchanged"]) == (1, "worse", None)


@pytest.mark.parametrize(
    ("factor", "options", "verdict", "expected"),
    [
        (0.9, (), "better", 0),
        (1.0, ("--tolerance", "10%"), "equivalent", 0),
        (1.1, ("--tolerance", "50%"), "equivalent", 0),
        (1.0, ("--tolerance", "0"), "undecided", 3),
        (1.1, ("--summary", "mean"), "worse", 1),
        (1.1, ("--summary", "trimmed"), "worse", 1),
        (1.1, ("--summary", "p90"), "worse", 1),
        (1.1, ("--summary", "p99"), "undecided", 3),
    ],
)
def test_verdicts_and_exit_codes(
    table: Callable[..., Path],
    compared: Compared,
    factor: float,
    options: Sequence[str],
    verdict: str,
    expected: int,
) -> None:
    """Equivalence wins over worse; p99 of sixty calls is not known; each verdict has its exit code."""
    path = table(lifetimes("a", 1.0), lifetimes("b", factor, seed=2))
    code, document = compared(path, "--base", "a", "--new", "b", *options)
    assert (code, document["functions"][0]["verdict"]) == (expected, verdict)


def test_one_lifetime_a_side_decides_nothing(table: Callable[..., Path], compared: Compared) -> None:
    """However many calls, a single restart cannot be told from a change: undecided, and how many are needed."""
    path = table(lifetimes("a", 1.0, 1, calls=5000), lifetimes("b", 2.0, 1, calls=5000))
    code, document = compared(path, "--base", "a", "--new", "b")
    (found,) = document["functions"]
    assert (code, found["verdict"], found["lifetimes"]) == (3, "undecided", [1, 1])
    assert found["needed_lifetimes"] >= 2
    assert "restart" in found["reason"]


def test_restarts_that_differ_are_no_change(table: Callable[..., Path], compared: Compared) -> None:
    """Lifetimes 30 % apart, 2,000 calls each: what pooled calls would call a change is undecided."""
    groups = [lifetimes(build, 1.0, 4, seed=seed, calls=2000, spread=0.3) for build, seed in (("a", 1), ("b", 5))]
    code, document = compared(table(*groups), "--base", "a", "--new", "b")
    (found,) = document["functions"]
    assert (code, found["verdict"]) == (3, "undecided")
    assert found["needed_lifetimes"] > 4


def test_functions_are_sorted_by_calls_then_name(table: Callable[..., Path], compared: Compared) -> None:
    """The list is sorted; one worse function makes the whole exit code 1."""
    groups = [
        lifetimes(build, factor, function=name, calls=calls, seed=seed)
        for name, calls, slow in (("z", 50, 1.2), ("b", 30, 1.0), ("a", 30, 1.0))
        for build, factor, seed in (("x", 1.0, 1), ("y", slow, 2))
    ]
    code, document = compared(table(*groups), "--base", "x", "--new", "y")
    assert [each["function"] for each in document["functions"]] == ["z", "a", "b"]
    assert code == 1


def test_an_undecided_function_asked_for_by_name_is_exit_3(table: Callable[..., Path], compared: Compared) -> None:
    """Undecided functions matter only if nothing is decided, or they were asked for."""
    groups = [
        *(lifetimes(build, 1.0, function="steady", seed=seed) for build, seed in (("a", 1), ("b", 2))),
        *(lifetimes(build, 1.0, function="wild", seed=seed, spread=0.5) for build, seed in (("a", 3), ("b", 4))),
    ]
    path = table(*groups)
    chosen = (path, "--base", "a", "--new", "b", "--tolerance", "10%")
    code, document = compared(*chosen)
    assert {each["function"]: each["verdict"] for each in document["functions"]} == {
        "steady": "equivalent",
        "wild": "undecided",
    }
    assert code == 0
    assert compared(*chosen, "--function", "wi*")[0] == 3
    assert compared(*chosen, "--function", "steady")[0] == 0


def test_each_name_must_name_a_function(table: Callable[..., Path], outcome: Outcome) -> None:
    """A misspelt name beside a good one is not passed over."""
    path = table(lifetimes("a", 1.0), lifetimes("b", 1.0, seed=2))
    code, out, err = outcome("compare", path, "--base", "a", "--new", "b", "--function", "f", "--function", "nosuch")
    assert (code, out) == (2, "")
    assert "no function matches nosuch" in err


def test_columns_in_any_order_with_bom_and_crlf(tmp_path: Path, compared: Compared) -> None:
    """Order of columns, a byte order mark, other line ends and unknown columns change nothing."""
    rows = [*lifetimes("a", 1.0), *lifetimes("b", 1.1, seed=2)]
    text = "note,duration_ns,host,lifetime,build\r\n" + "".join(f'"x,y",{d},h,{n},{b}\r\n' for b, n, d, _ in rows)
    path = tmp_path / "d.csv"
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    code, document = compared(path, "--base", "a", "--new", "b")
    (found,) = document["functions"]
    assert (code, found["function"], found["verdict"]) == (1, "all", "worse")
    assert document["base"]["hosts"] == ["h"]


def test_hosts_are_compared_each_with_itself(table: Callable[..., Path], compared: Compared) -> None:
    """A host twice as slow with more lifetimes of the new build is no regression."""
    header = "build,lifetime,duration_ns,function,host"
    groups = [
        [(*row, host) for row in lifetimes(build, speed, count, seed=seed)]
        for build, host, speed, count, seed in (
            ("a", "fast", 1.0, 6, 1), ("a", "slow", 2.0, 2, 2), ("b", "fast", 1.0, 2, 3), ("b", "slow", 2.0, 6, 4),
        )
    ]  # fmt: skip
    code, document = compared(table(*groups, header=header), "--base", "a", "--new", "b", "--tolerance", "5%")
    (found,) = document["functions"]
    assert (code, found["verdict"], found["unit"]) == (0, "equivalent", "within-hosts")


def test_different_hosts_are_not_a_change_of_build(table: Callable[..., Path], compared: Compared) -> None:
    """Base on one host and new on another: undecided whatever the difference, and said why."""
    header = "build,lifetime,duration_ns,function,host"
    groups = [[(*row, build) for row in lifetimes(build, factor)] for build, factor in (("a", 1.0), ("b", 1.5))]
    code, document = compared(table(*groups, header=header), "--base", "a", "--new", "b")
    (found,) = document["functions"]
    assert (code, found["verdict"]) == (3, "undecided")
    assert "hosts" in found["reason"]


def test_slow_starts_are_no_change(table: Callable[..., Path], compared: Compared) -> None:
    """Fifty slow first calls in short lifetimes against long ones: the warm-up is left out."""

    def rows(build: str, calls: int, seed: int) -> list[Row]:
        rng = np.random.default_rng(seed)
        return [
            (build, number, f"{d:.1f}", "f")
            for number in range(5)
            for d in rng.normal(1000, 20, calls) * np.where(np.arange(calls) < 50, 3.0, 1.0)
        ]

    path = table(rows("a", 200, 1), rows("b", 2000, 2))
    code, document = compared(path, "--base", "a", "--new", "b", "--summary", "mean")
    assert (code, document["functions"][0]["verdict"]) == (0, "equivalent")
    assert all(250 <= cut <= 350 for cut in document["functions"][0]["warmup_calls"])
    code, document = compared(path, "--base", "a", "--new", "b", "--summary", "mean", "--keep-warmup")
    assert document["functions"][0]["verdict"] == "better"


def two_paths(*, slow: float, count: int = 6) -> list[Row]:
    """Return rows of a function with a fast and a slow path, the slow one three calls in ten."""
    rng = np.random.default_rng(11)
    rows: list[Row] = []
    for build, factor in (("a", 1.0), ("b", slow)):
        for number in range(count):
            for at in range(400):
                caller, duration = ("db_get", 160e3 * factor) if rng.random() < 0.3 else ("cache_get", 10e3)
                rows.append(
                    (build, number, f"{duration * rng.lognormal(0, 0.1):.0f}", "load", f"main;{caller};load", at)
                )
    return rows


PATHS = "build,lifetime,duration_ns,function,path,time_ns"


def test_three_calls_in_ten_that_became_half_as_slow_again_are_worse(
    table: Callable[..., Path], compared: Compared, outcome: Outcome
) -> None:
    """The median of all calls does not move; the class and the behaviour that did are named, exit code 1."""
    path = table(two_paths(slow=1.5), header=PATHS)
    code, document = compared(path, "--base", "a", "--new", "b")
    (found,) = document["functions"]
    assert (code, found["verdict"]) == (1, "worse")
    assert found["ratio"] == pytest.approx(1.0, abs=0.02), "that of all calls by their median"
    parts = {(each["kind"], each["expression"], each["summary"]): each for each in found["behaviours"]}
    (slow,) = [
        each for each in found["behaviours"] if each["kind"] == "class" and each["class"]["upper_seconds"] is None
    ]
    (fast,) = [each for each in found["behaviours"] if each["kind"] == "class" and each["class"]["upper_seconds"]]
    assert (slow["verdict"], slow["ratio"]) == ("worse", pytest.approx(1.5, abs=0.05))
    assert (fast["verdict"] in ("equivalent", "undecided"), fast["ratio"]) == (True, pytest.approx(1.0, abs=0.03))
    assert parts["all", None, "mean"]["verdict"] == "worse"
    by_path = {each["expression"]: each["verdict"] for each in found["behaviours"] if each["kind"] == "behaviour"}
    assert len(by_path) == 2
    assert sorted(by_path.values())[-1] == "worse"
    fields = {"verdict", "ratio", "interval", "level", "summary", "lifetimes", "lifetimes_left_out",
              "smallest_detectable_ratio", "needed_lifetimes", "reason"}  # fmt: skip
    assert all(fields <= set(each) for each in [found, *found["behaviours"]])
    out = outcome("compare", path, "--base", "a", "--new", "b")[1]
    assert out.startswith("1 slower")
    assert "1.5" in next(line for line in out.splitlines() if line.startswith("  load "))


def test_every_lifetime_left_out_is_listed_with_the_reason(
    table: Callable[..., Path], compared: Compared, outcome: Outcome
) -> None:
    """A run without the function, and one with too few calls for the summary."""
    rows = [*lifetimes("a", 1.0, 5, calls=150), *lifetimes("b", 1.0, 5, calls=150, seed=2),
            *lifetimes("b", 1.0, 1, calls=150, function="other")[:20],
            *[("b", "x", "1000", "other")] * 20, *[("b", "y", "22000", "f")] * 60]  # fmt: skip
    code, document = compared(table(rows), "--base", "a", "--new", "b", "--summary", "p99", "--function", "f")
    (found,) = document["functions"]
    assert code == 3
    assert [(each["side"], each["lifetime"], each["reason"]["code"]) for each in found["lifetimes_left_out"]] == [
        ("new", "x", "not-timed"), ("new", "y", "too-few-calls"),
    ]  # fmt: skip
    assert (found["lifetimes"], document["new"]["lifetimes_seen"]) == ([5, 5], 7)
    out = outcome("compare", table(rows), "--base", "a", "--new", "b", "--summary", "p99", "--function", "f")[1]
    assert "5 of 7" in out


def test_a_ratio_is_shown_where_nothing_is_decided(table: Callable[..., Path], compared: Compared) -> None:
    """One restart each, twice as slow: undecided, with the ratio; the same where calls are too few for a summary."""
    path = table(lifetimes("a", 1.0, 1, calls=500), lifetimes("b", 2.0, 1, calls=500))
    for summary in ("median", "p99"):
        _, document = compared(path, "--base", "a", "--new", "b", "--summary", summary)
        (found,) = document["functions"]
        assert (found["verdict"], found["interval"]) == ("undecided", None)
        assert found["ratio"] == pytest.approx(2.0, abs=0.15)
    few = table(lifetimes("a", 1.0, 3, calls=50), lifetimes("b", 2.0, 3, calls=50))
    _, document = compared(few, "--base", "a", "--new", "b", "--summary", "p99")
    assert document["functions"][0]["ratio"] == pytest.approx(2.0, abs=0.2)


@pytest.mark.parametrize(("turns", "warned"), [(True, False), (False, True)])
def test_sides_that_did_not_take_turns_are_warned_of(
    table: Callable[..., Path], compared: Compared, outcome: Outcome, turns: bool, warned: bool
) -> None:
    """Five runs of one build, then five of the other: a warning with the remedy; in turns there is none."""
    rows = [
        (
            *row,
            1000 * (2 * int(str(row[1])) + (row[0] == "b"))
            if turns
            else 1000 * (int(str(row[1])) + 10 * (row[0] == "b")) + 1,
        )
        for row in [*lifetimes("a", 1.0), *lifetimes("b", 1.1, seed=2)]
    ]
    rows = [(*row[:-1], int(str(row[-1])) + 1) for row in rows]
    path = table(rows, header="build,lifetime,duration_ns,function,time_ns")
    _, document = compared(path, "--base", "a", "--new", "b")
    assert document["order"]["interleaved"] is not warned
    assert (document["order"]["remedy"] is not None) is warned
    out = outcome("compare", path, "--base", "a", "--new", "b")[1]
    assert ("did not take turns" in out) is warned


def test_false_discoveries_are_controlled(table: Callable[..., Path], compared: Compared) -> None:
    """Of 200 unchanged functions some pass 5 % on their own, hardly any with --fdr; a large change does."""
    groups = [
        lifetimes(build, 2.0 if name == 0 and build == "b" else 1.0, seed=1000 * (build == "b") + name,
                  calls=3, function=f"f{name}", spread=0.02)
        for name in range(200)
        for build in ("a", "b")
    ]  # fmt: skip
    path = table(*groups)
    _, alone = compared(path, "--base", "a", "--new", "b", "--tolerance", "0")
    _, together = compared(path, "--base", "a", "--new", "b", "--tolerance", "0", "--fdr")
    changed = [{each["function"] for each in document["functions"] if each["verdict"] in ("worse", "better")}
               for document in (alone, together)]  # fmt: skip
    assert 4 < len(changed[0]) < 30
    assert "f0" in changed[1]
    assert len(changed[1]) <= 2


def test_a_class_that_comes_more_often_is_not_slower_code(table: Callable[..., Path], compared: Compared) -> None:
    """Hits and misses take as long as ever, misses come more often: the mix, not the code."""

    def rows(build: str, misses: float, seed: int) -> list[Row]:
        rng = np.random.default_rng(seed)
        return [
            (build, number, f"{d:.0f}", "f")
            for number in range(6)
            for d in np.where(rng.random(600) < misses, rng.lognormal(13, 0.1, 600), rng.lognormal(9, 0.1, 600))
        ]

    code, document = compared(
        table(rows("a", 0.2, 1), rows("b", 0.4, 2)), "--base", "a", "--new", "b", "--summary", "mean"
    )
    change = document["functions"][0]["change"]
    assert (code, change["kinds"], change["cause"]) == (1, ["share-changed"], "load")
    assert [each["moved"] for each in change["classes"]] == [False, False]


@pytest.mark.parametrize(
    ("content", "arguments", "said"),
    [
        ("build,lifetime,duration_ns\na,1,5\nb,1,x\n", ("--base", "a", "--new", "b"), "line 3"),
        ("build,lifetime,duration_ns\na,1,-5\n", ("--base", "a", "--new", "b"), "line 2"),
        ("build,lifetime,duration_ns\na,1\n", ("--base", "a", "--new", "b"), "line 2"),
        ("build,lifetime,duration_ns\na,1,nan\n", ("--base", "a", "--new", "b"), "line 2"),
        ("build,duration_ns\na,1\n", ("--base", "a", "--new", "b"), "no column lifetime"),
        ("build,lifetime,duration_ns\na,1,5\n", ("--base", "a", "--new", "c"), "'c'"),
        ("build,lifetime,duration_ns\na,1,5\nb,1,5\n", ("--base", "a"), "Say which two"),
        ("build,lifetime,duration_ns\na,1,5\nb,1,5\n", ("--base", "a", "--new", "b", "--function", "q"), "no function"),
        ("", ("--base", "a", "--new", "b"), "empty"),
        ('{"schema": "specmine.specification/1", "functions": []}', ("d.csv",), "give stores"),
        ('\n {\n"schema": "specmine.specification/1"}', ("--base", "a", "--new", "b"), "is specmine.specification/1"),
        ('{"duration_ns": 5}\n{"duration_ns": 5}\n', ("--base", "a", "--new", "b"), "no column"),
        ("\xff\xfe", ("--base", "a", "--new", "b"), "UTF-8"),
    ],
)
def test_wrong_input_is_one_line_and_exit_2(
    tmp_path: Path, outcome: Outcome, content: str, arguments: Sequence[str], said: str
) -> None:
    """What is wrong is said in one line, with the line's number."""
    path = tmp_path / "d.csv"
    path.write_bytes(content.encode("latin-1"))
    code, out, err = outcome("compare", str(path), *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said.lower() in err.lower()


def test_bad_lines_can_be_skipped(tmp_path: Path, compared: Compared) -> None:
    """--skip-bad counts them."""
    path = tmp_path / "d.csv"
    rows = [f"{b},{n},{d}" for b, n, d, _ in [*lifetimes("a", 1.0), *lifetimes("b", 1.1, seed=2)]]
    path.write_text("\n".join(["build,lifetime,duration_ns", "a,1,what", *rows, "b", ""]))
    code, document = compared(path, "--base", "a", "--new", "b", "--skip-bad")
    assert (code, document["skipped_lines"]) == (1, 2)


def test_a_file_without_rows_is_not_enough(table: Callable[..., Path], outcome: Outcome) -> None:
    """A header alone is exit 3."""
    code, out, _ = outcome("compare", str(table()), "--base", "a", "--new", "b")
    assert code == 3
    assert "No function" in out


def test_half_against_half_tells_the_false_alarm_rate(table: Callable[..., Path], outcome: Outcome) -> None:
    """--self-test compares unchanged lifetimes; few lifetimes are exit 3."""
    path = table(lifetimes("a", 1.0, 12, spread=0.2), lifetimes("b", 3.0, 12, seed=2, spread=0.2))
    arguments = ("compare", str(path), "--base", "a", "--new", "b", "--self-test")
    code, out, _ = outcome(*arguments, "--format", "json")
    found = json.loads(out)
    assert (code, found["schema"], found["splits"]) == (0, "specmine.selftest/1", 200)
    assert found["rate"] <= 0.12  # splits of one sample depend on each other
    assert outcome(*arguments)[1].count("\n") == 3
    few = table(lifetimes("a", 1.0, 3), lifetimes("b", 3.0, 3))
    assert outcome("compare", str(few), "--base", "a", "--new", "b", "--self-test")[0] == 3
