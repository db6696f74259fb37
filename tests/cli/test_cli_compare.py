"""``specmine compare`` says worse, better, equivalent or undecided, and never more than lifetimes tell."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specmine.daemon.store import Host, Sampled, Store, Vector
from specmine.mining.environment import Environment
from specmine.mining.observation import Function, Kind, Observation, histogram_of
from specmine.probes.batch import Lifetime

Outcome = Callable[..., tuple[int, str, str]]
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


@pytest.fixture
def compared(outcome: Outcome) -> Callable[..., tuple[int, dict[str, Any]]]:
    """Return what compares and reads the answer."""

    def run(*arguments: object) -> tuple[int, dict[str, Any]]:
        code, out, err = outcome("compare", *map(str, arguments), "--format", "json")
        assert out, err
        return code, json.loads(out)

    return run


Compared = Callable[..., tuple[int, dict[str, Any]]]


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


def _store(
    path: Path, builds: dict[str, float], *, host: str = "boot", label: str | None = None, module: str = "app"
) -> Path:
    """Write a store in which each build has five lifetimes of one function, their windows past the warm-up."""
    rng = np.random.default_rng(len(host))
    with Store.open(path) as store, store.transaction():
        store.put_host(Host(boot_id=host, hostname=f"{host}.example", utc_offset_ns=10**18))
        for number, (build, factor) in enumerate(builds.items()):
            function = Function(build_id=build, offset=16 + number, name="handle", module=module)
            store.put_functions([function])
            for at in range(5):
                lifetime = Lifetime(
                    id=f"{host}:{number}{at}:{100 * at}", pid=at, executable="/bin/app", build_id=build,
                    start_ns=at * 10**9, processes=0,
                )  # fmt: skip
                store.put_lifetimes([lifetime])
                durations = factor * np.exp(rng.normal(0, 0.01)) * rng.lognormal(12, 0.1, 500)
                store.put_observations([
                    Observation(
                        function=function.key, lifetime=lifetime.id, kind=Kind.TIME, start_ns=(60 + at) * 10**9,
                        end_ns=(61 + at) * 10**9, counts=histogram_of(durations), calls=500, watched_ns=10**9,
                    )
                ])  # fmt: skip
            if label:
                store.label(build, f"{label}{number}")
    return path


def test_two_builds_in_a_store(tmp_path: Path, compared: Compared) -> None:
    """Builds are named by label, by build-id or by its first digits; functions are matched by name."""
    path = _store(tmp_path / "s.db", {"aaaa1": 1.0, "bbbb2": 1.2}, label="v")
    for names in (("v0", "v1"), ("aaaa1", "bbbb2"), ("aa", "bb")):
        code, document = compared("--store", path, *names)
        (found,) = document["functions"]
        assert (code, found["verdict"], found["module"]) == (1, "worse", "app")
        assert found["ratio"] == pytest.approx(1.2, abs=0.04)
        assert found["change"]["cause"] == "code"


def test_two_stores(tmp_path: Path, compared: Compared) -> None:
    """Two stores of one host are two sides."""
    first = _store(tmp_path / "a.db", {"aaaa1": 1.0})
    second = _store(tmp_path / "b.db", {"cccc2": 0.8})
    code, document = compared(first, second)
    assert (code, document["functions"][0]["verdict"]) == (0, "better")


def test_a_program_may_be_called_otherwise_in_the_new_build(tmp_path: Path, compared: Compared) -> None:
    """app-1 and app-2 are one program if they are all that differs."""
    first = _store(tmp_path / "a.db", {"aaaa1": 1.0}, module="app-1")
    second = _store(tmp_path / "b.db", {"cccc2": 1.2}, module="app-2")
    code, document = compared(first, second)
    assert (code, [(each["module"], each["verdict"]) for each in document["functions"]]) == (1, [("app-2", "worse")])


def test_a_build_that_is_not_there(tmp_path: Path, outcome: Outcome) -> None:
    """An unknown build and an ambiguous one are exit 2 and name what there is."""
    path = _store(tmp_path / "s.db", {"aaaa1": 1.0, "aaab2": 1.2})
    code, _, err = outcome("compare", "--store", str(path), "aaaa", "zz")
    assert code == 2
    assert "aaaa1" in err
    assert "digits" in outcome("compare", "--store", str(path), "aaa", "aaab2")[2]
    assert outcome("compare", str(tmp_path / "none.db"), str(path))[0] == 2


def _nested(path: Path, slow: float) -> Path:
    """Write a store with two builds: a handler calls a parser twice, whose code and time change."""
    rng = np.random.default_rng(7)
    with Store.open(path) as store, store.transaction():
        store.put_host(Host(boot_id="boot", hostname="here", utc_offset_ns=10**18))
        for number, (build, factor) in enumerate((("aaaa", 1.0), ("bbbb", slow))):
            digest = {"handle": "1:c:l0", "parse": f"1:{build}:l0", "aside": "1:d:l0"}
            functions = {
                name: Function(build_id=build, offset=16 * at + 1000 * number, name=name, module="app", code=code)
                for at, (name, code) in enumerate(digest.items(), 1)
            }
            store.put_functions(functions.values())
            store.put_sampled([
                Sampled(build_id=build, function="", samples=1000, cpu_ns=1e9),
                Sampled(build_id=build, function=functions["parse"].key, samples=500, cpu_ns=5e8, inclusive_ns=5e8,
                        callers={functions["handle"].key: 5e8}),
                Sampled(build_id=build, function=functions["handle"].key, samples=100, cpu_ns=1e8, inclusive_ns=6e8),
            ])  # fmt: skip
            for at in range(5):
                identity = f"boot:{number}{at}:{100 * at}"
                store.put_lifetimes([Lifetime(id=identity, pid=at, executable="/bin/app", build_id=build,
                                              start_ns=at * 10**9, processes=0)])  # fmt: skip
                start = np.exp(rng.normal(0, 0.01))
                for name, median, calls in (("parse", 40e3 * factor, 1000), ("handle", 20e3 + 80e3 * factor, 500),
                                            ("aside", 30e3, 500)):  # fmt: skip
                    durations = start * median * rng.lognormal(0, 0.05, calls)
                    store.put_observations([Observation(
                        function=functions[name].key, lifetime=identity, kind=Kind.TIME, start_ns=(60 + at) * 10**9,
                        end_ns=(61 + at) * 10**9, counts=histogram_of(durations), calls=calls, watched_ns=10**9,
                    )])  # fmt: skip
    return path


def test_one_cause_for_a_function_and_its_caller(tmp_path: Path, compared: Compared, outcome: Outcome) -> None:
    """The parser's code changed and it is slower: it is the cause, explains its caller, and is the first suspect."""
    path = _nested(tmp_path / "s.db", 1.2)
    code, document = compared("--store", path, "aaaa", "bbbb")
    found = {each["function"]: each for each in document["functions"]}
    assert (code, found["parse"]["verdict"], found["handle"]["verdict"]) == (1, "worse", "worse")
    assert (found["parse"]["cause"], found["parse"]["explains"]) == (True, ["handle (app)"])
    assert (found["handle"]["cause"], found["handle"]["explained_by"]) == (False, ["parse (app)"])
    assert {name: each["machine_code"] for name, each in found.items()} == {
        "parse": "changed", "handle": "moved", "aside": "moved",
    }  # fmt: skip
    assert (found["handle"]["where"]["part"], found["handle"]["where"]["by"]) == ("callees", "probes")
    assert found["handle"]["where"]["callees_change_seconds"] == pytest.approx(16e-6, rel=0.1)
    assert found["parse"]["where"]["part"] == "self"
    assert found["handle"]["change"]["cause"] == "code" and "parse" in found["handle"]["change"]["reason"]
    assert [each["function"] for each in document["machine_code"]["suspects"]] == ["parse", "handle"]
    out = outcome("compare", "--store", str(path), "aaaa", "bbbb")[1]
    assert "2 worse (1 cause)" in out
    assert "Explained by parse (app)." in out
    assert "1. parse (app): its code changed" in out


def test_durations_that_moved_without_any_code_are_not_blamed_on_code(tmp_path: Path, compared: Compared) -> None:
    """Everything in the store has the same code: slower calls are there, their cause is not known."""
    path = _nested(tmp_path / "s.db", 1.2)
    with Store.open(path) as store, store.transaction():
        same = [replace(each, code="1:same:l0") for each in store.load(newest=0).functions]
        store.put_functions(same)
    _, document = compared("--store", path, "aaaa", "bbbb")
    found = {each["function"]: each for each in document["functions"]}
    assert found["parse"]["change"]["cause"] == "unknown"
    assert "no machine code" in found["parse"]["change"]["reason"]
    assert document["machine_code"]["suspects"] == []


def _host_store(
    path: Path, host: str, slice_ms: float, waiting: float, *, main_ms: float = 1.0, build: str = "aaaa1"
) -> Path:
    """Write a store of five lifetimes on a host with a known slice, a share of their calls one slice longer."""
    rng = np.random.default_rng(len(str(path)) + ord(build[0]))
    function = Function(build_id=build, offset=16, name="handle", module="app")
    with Store.open(path) as store, store.transaction():
        store.put_host(Host(boot_id=host, hostname=f"{host}.example", utc_offset_ns=10**18))
        store.put_functions([function])
        vector = Environment(kernel="6.18", cpus=2, slice_seconds=slice_ms / 1e3).document()
        store.put_surveys([Vector(boot_id=host, since_utc_ns=10**18, document=vector)], [])
        for at in range(5):
            lifetime = Lifetime(
                id=f"{host}:{at}:{100 * at}", pid=at, executable="/bin/app", build_id=build, start_ns=at * 10**9,
                processes=0,
            )  # fmt: skip
            durations = main_ms * 1e6 * np.exp(rng.normal(0, 0.002)) * rng.normal(1, 0.01, 1000)
            durations += np.where(rng.random(1000) < waiting, slice_ms * 1e6, 0.0)
            store.put_lifetimes([lifetime])
            store.put_observations([
                Observation(
                    function=function.key, lifetime=lifetime.id, kind=Kind.TIME, start_ns=(60 + at) * 10**9,
                    end_ns=(61 + at) * 10**9, counts=histogram_of(durations), calls=1000, watched_ns=10**9,
                )
            ])  # fmt: skip
    return path


def test_waiting_on_another_host_is_the_hosts(tmp_path: Path, compared: Compared, outcome: Outcome) -> None:
    """A quarter of the calls one slice longer: whether the build is to blame stays open, the slice explains it."""
    stores = _host_store(tmp_path / "a.db", "first", 4.0, 0.0), _host_store(tmp_path / "b.db", "second", 3.0, 0.25)
    code, document = compared(*stores, "--summary", "mean")
    (found,) = document["functions"]
    assert (code, found["verdict"], found["host"]["explained"]) == (3, "undecided", True)
    (shift,) = found["host"]["shifts"]
    assert (shift["cause"], shift["times"]) == ("slices", 1)
    assert shift["excess_seconds"] == pytest.approx(0.003, rel=0.05)
    assert document["environment"]["differences"] == [{"property": "slice_seconds", "base": 0.004, "new": 0.003}]
    said = " ".join(outcome("compare", *map(str, stores), "--summary", "mean")[1].split())
    assert re.search(r"The hosts differ: slice 3[.0]* ms, not 4[.0]* ms\.", said)
    assert re.search(r"The host explains it: 2\d % more calls \+1 timeslice: preempted\.", said)


def test_waiting_on_the_same_host_is_its_load(tmp_path: Path, compared: Compared) -> None:
    """The same of two builds on one host is worse, and not the code's."""
    stores = (
        _host_store(tmp_path / "a.db", "boot", 4.0, 0.0, build="aaaa1"),
        _host_store(tmp_path / "b.db", "boot", 4.0, 0.25, build="bbbb2"),
    )
    code, document = compared(*stores, "--summary", "mean")
    (found,) = document["functions"]
    assert (code, found["verdict"], found["change"]["cause"]) == (1, "worse", "host")
    assert "timeslice" in found["change"]["reason"]
    assert document["environment"]["differences"] == []


def test_slower_calls_on_another_host_are_not_blamed_on_its_slice(tmp_path: Path, compared: Compared) -> None:
    """All calls 30 % longer is nothing that a slice explains."""
    stores = (
        _host_store(tmp_path / "a.db", "first", 4.0, 0.0),
        _host_store(tmp_path / "b.db", "second", 3.0, 0.0, main_ms=1.3),
    )
    (found,) = compared(*stores)[1]["functions"]
    assert (found["host"]["explained"], found["host"]["reason"]) == (False, "")
    assert [each["cause"] for each in found["host"]["shifts"]] == [None]


def test_a_report_names_the_suspects_of_each_step(tmp_path: Path, outcome: Outcome) -> None:
    """The report of the same store has the same suspects, as numbers and on the page."""
    path = _nested(tmp_path / "s.db", 1.2)
    document = json.loads(outcome("report", str(path), "--format", "json")[1])
    (step,) = document["machine_code"]
    assert (step["base"], step["new"], step["counts"]["changed"]) == ("aaaa", "bbbb", 1)
    assert [each["function"] for each in step["suspects"]] == ["parse", "handle"]
    page = outcome("report", str(path))[1]
    assert "parse (app)</td><td>its code changed; 50 % of the CPU time inside it became 50 %; 1.2" in page
