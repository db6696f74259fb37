"""status, functions, show, assertions and export, over a store and over a daemon's socket."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specmine.analysis.wording.reasons import why
from specmine.store import Build, Writes, open_store
from tests.support.paths import SUPPORT

DATA = SUPPORT / "data" / "cli"
Outcome = Callable[..., tuple[int, str, str]]
Keep = Callable[[Mapping[str, Any]], Path]
GOLDEN = {
    "assertions": ["assertions"],
    "functions": ["functions"],
    "show": ["show", "z"],
    "show_single": ["show", "a"],
    "show_candidate": ["show", "app+0x4f10"],
    "status": ["status"],
    "export": ["export", "--format", "csv"],
}


@pytest.mark.parametrize("name", GOLDEN)
def test_text_is_as_it_was_approved(name: str, store: Path, outcome: Outcome) -> None:
    """The text equals the approved one; UPDATE_GOLDEN=1 writes it anew, to be read before it is committed."""
    code, out, err = outcome(*GOLDEN[name], "--store", store)
    assert (code, err) == (0, "")
    golden = DATA / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(out, newline="")
    assert out == golden.read_bytes().decode()


@pytest.mark.parametrize("columns", [None, 50, 60, 120])
@pytest.mark.parametrize("command", ["assertions", "functions", "show", "status"])
def test_lines_fit_the_width(
    columns: int | None, command: str, store: Path, outcome: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No line is wider than COLUMNS, 80 without it, and none has an escape sequence."""
    if columns is not None:
        monkeypatch.setenv("COLUMNS", str(columns))
    arguments = [command, "z"] if command == "show" else [command]
    _, out, _ = outcome(*arguments, "--store", store)
    assert max(map(len, out.splitlines())) <= (columns or 80)
    assert "\x1b" not in out


def test_narrow_rows_lose_the_middle_of_names(store: Path, outcome: Outcome, monkeypatch: pytest.MonkeyPatch) -> None:
    """One row a function: a long name keeps its ends, and the state is never cut; columns go from the right."""
    monkeypatch.setenv("COLUMNS", "50")
    head, *rows = outcome("functions", "--store", store)[1].splitlines()
    assert head.split() == ["FUNCTION", "STATE"]
    (row,) = (row for row in rows if row.startswith("std::map"))
    assert ".." in row
    assert row.endswith("known")


def test_a_program_and_a_build_choose_functions(keep: Keep, document: dict[str, Any], outcome: Outcome) -> None:
    """Two programs and two builds have functions of one name: the label and the first digits of a build find it."""
    first = next(each for each in document["functions"] if each["function"] == "z")
    other = {**first, "build_id": "77aa", "key": "77aa+0x4000", "calls": 7}
    foreign = {**first, "program": "cron", "module": "cron", "build_id": "99", "key": "99+0x4000", "calls": 8}
    document["functions"] += [other, foreign]
    store = keep(document)
    with open_store(store) as opened:
        opened.write(Writes((Build(build_id="77aa", label="v2"),)), 1)

    def calls(*arguments: str) -> list[int]:
        _, out, err = outcome("functions", "--function", "z", *arguments, "--store", store, "--format", "json")
        assert err == ""
        return [each["calls"] for each in json.loads(out)["functions"]]

    assert calls() == [91234, 7, 8]
    assert calls("--build", "v2") == calls("--build", "77") == [7]
    assert calls("--program", "cron") == [8]
    assert outcome("show", "z", "--program", "app", "--build", "v2", "--store", store)[0] == 0
    code, _, err = outcome("show", "z", "--program", "app", "--store", store)
    assert code == 2
    assert "of build v2" in err
    assert err.endswith("choose one with --build\n")
    for wrong in (["--build", "v3"], ["--program", "nginx"]):
        code, out, err = outcome("functions", *wrong, "--store", store)
        assert (code, out, err.count("\n")) == (2, "", 1)
    rows = outcome("functions", "--function", "z", "--store", store)[1].splitlines()
    assert rows[0].split()[:4] == ["FUNCTION", "PROGRAM", "BUILD", "STATE"]
    assert {tuple(row.split()[1:3]) for row in rows[1:4]} == {("app", "5f1d9c0a"), ("app", "v2"), ("cron", "99")}


def test_the_daemon_gives_the_same(store: Path, asked: tuple[Path, list[Mapping[str, Any]]], outcome: Outcome) -> None:
    """Over the socket everything reads as from a store; details are asked for."""
    socket, requests = asked
    for name, arguments in GOLDEN.items():
        if name != "status":
            assert outcome(*arguments, "--socket", socket) == outcome(*arguments, "--store", store)
    assert {each["command"] for each in requests} == {"specification"}
    assert all(each["detail"] for each in requests)


def test_status_of_the_daemon(asked: tuple[Path, list[Mapping[str, Any]]], outcome: Outcome) -> None:
    """What the daemon says of itself reads as a tree of facts, pids as they are, empty parts left out."""
    socket, _ = asked
    code, out, _ = outcome("status", "--verbose", "--socket", socket)
    assert code == 0
    assert "pid: 12345\n" in out
    assert "bystander hits: 1,234\n" in out
    assert "    promised ratio: 1 %\n    spent seconds: 250 ms\n" in out
    assert "  - pid 4321, executable /usr/local/bin/a\\x1bpp\n" in out
    assert "notes" not in out
    _, out, _ = outcome("status", "--socket", socket, "--format", "json")
    assert json.loads(out)["schema"] == "specmine.status/1"


def test_status_of_a_store_as_json(store: Path, outcome: Outcome) -> None:
    """A store's status counts the states."""
    _, out, _ = outcome("status", "--store", store, "--format", "json")
    status = json.loads(out)
    assert status["schema"] == "specmine.status/1"
    assert status["functions"]["explained"] == 1
    assert sum(status["functions"].values()) == 6
    assert status["violations"] == []


def test_no_daemon_is_2_with_a_remedy(tmp_path: Path, outcome: Outcome) -> None:
    """Without a daemon each reading command says what to do."""
    for arguments in GOLDEN.values():
        code, out, err = outcome(*arguments, "--socket", tmp_path / "none")
        assert (code, out) == (2, "")
        assert "--store FILE" in err


@pytest.mark.parametrize("content", [None, b"", b"not a store" * 100])
def test_no_store_or_a_damaged_one_is_2(tmp_path: Path, content: bytes | None, outcome: Outcome) -> None:
    """What is no store is refused and left as it is."""
    path = tmp_path / "x.db"
    if content is not None:
        path.write_bytes(content)
    code, out, err = outcome("functions", "--store", path)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert (path.read_bytes() if path.exists() else None) == content


def test_store_and_socket_exclude_each_other(store: Path, tmp_path: Path, outcome: Outcome) -> None:
    """Two places to read from are a mistake."""
    for arguments in (
        ["status"],
        ["functions"],
        ["show", "z"],
        ["assertions"],
        ["export"],
        ["label", "5f", "x"],
    ):
        code, _, err = outcome(*arguments, "--store", store, "--socket", tmp_path / "s")
        assert code == 2, arguments
        assert "choose one" in err


def test_an_empty_store_is_3(tmp_path: Path, outcome: Outcome) -> None:
    """A store that holds nothing yet is not enough data."""
    open_store(tmp_path / "e.db").close()
    code, out, err = outcome("assertions", "--store", tmp_path / "e.db")
    assert (code, out) == (3, "")
    assert "no specification yet" in err


def test_nothing_asserted_is_3(keep: Keep, document: dict[str, Any], outcome: Outcome) -> None:
    """Assertions without any stable function print what is there and exit with 3."""
    document["functions"] = document["functions"][3:]
    store = keep(document)
    code, out, _ = outcome("assertions", "--store", store)
    assert code == 3
    assert "Nothing is stable enough" in out
    assert outcome("assertions", "--store", store, "--format", "json")[0] == 3
    assert outcome("functions", "--store", store)[0] == 0


def test_assertions_as_json_are_the_specification(store: Path, document: dict[str, Any], outcome: Outcome) -> None:
    """JSON is the contract's document, with nothing but the drawing left out."""
    code, out, _ = outcome("assertions", "--store", store, "--format", "json")
    assert code == 0
    assert out.endswith("}\n")
    for each in document["functions"]:
        each.pop("histogram", None)
    assert json.loads(out) == document
    assert outcome("export", "--store", store)[1] == out


def test_functions_as_json_and_filtered(store: Path, outcome: Outcome) -> None:
    """A list can be narrowed by state and name, and says why in JSON too."""
    _, out, _ = outcome("functions", "--store", store, "--state", "timing", "--state", "single", "--format", "json")
    listing = json.loads(out)
    assert listing["schema"] == "specmine.functions/1"
    assert [each["function"] for each in listing["functions"]] == ["a", "b"]
    assert listing["functions"][1]["reason"]["code"] == "learning"
    _, out, _ = outcome("functions", "--store", store, "--function", "std::*", "--format", "json")
    assert len(json.loads(out)["functions"]) == 1
    asked = ("functions", "--store", store, "--function", "std::*", "--state", "refused")
    assert outcome(*asked)[:2] == (0, "No function to show.\n")


@pytest.mark.parametrize(
    ("used_seconds", "told"),
    [
        (4.0, "added 0.6 % to the program's CPU time (promised: at most 1 %)"),
        (0.4, "added 0.6 % (24 ms) to the program's CPU time (promised: at most 1 %, or 40 ms in all)"),
    ],
)
def test_what_an_idle_program_may_be_charged_is_told(
    used_seconds: float, told: str, keep: Keep, document: dict[str, Any], outcome: Outcome
) -> None:
    """Where the floor allows more than the share, what was added is not held against the share alone."""
    facts = {"overhead_budget_ratio": 0.01, "program_cpu_seconds": used_seconds, "allowed_seconds": 0.04,
             "overhead_seconds": 0.024}  # fmt: skip
    document["collection"] |= facts
    code, out, _ = outcome("assertions", "--store", keep(document))
    assert code == 0
    assert told in " ".join(out.split())


@pytest.mark.parametrize(("made", "said"), [(0.81, True), (0.004, False), (None, False)])
def test_code_made_at_run_time_is_told(
    made: float | None, said: bool, keep: Keep, document: dict[str, Any], outcome: Outcome
) -> None:
    """How much of the CPU time no function can hold, if it is worth a line."""
    document["collection"]["jit_cpu_ratio"] = made
    _, out, _ = outcome("assertions", "--store", keep(document))
    assert ("81 % of its CPU time passed in code made at run time (JIT)" in " ".join(out.split())) == said


def test_hostile_names_are_harmless(keep: Keep, document: dict[str, Any], outcome: Outcome) -> None:
    """Control characters, markup and odd letters in any name reach the terminal as escapes or as they are."""
    evil = "f\x1b[2J\r\n[red]\u202e:smile:函"
    for each in document["functions"]:
        each["function"] = evil + each["function"]
        each["module"] = "m\x07"
        each["aliases"] = [evil]
        for behaviour in each["behaviours"]:
            behaviour["expression"] = f"`{evil}`->c" if behaviour["expression"] != "true" else "true"
        for path in each["paths"]:
            path["frames"] = [evil, *path["frames"]]
        if each["reason"]:
            each["reason"]["text"] = evil
    document["program"]["path"] = evil
    document["collection"]["lost"] = {evil: 3}
    document["collection"]["notes"] = [evil]
    store = keep(document)
    for arguments in (["assertions"], ["functions"], ["show", "*z"], ["status"]):
        code, out, _ = outcome(*arguments, "--store", store)
        assert code == 0
        assert not set("\x1b\x07\r\u202e") & set(out)
        if arguments == ["functions"]:  # its rows cut long names
            continue
        assert "\\x1b[2J\\x0d\\x0a[red]\\u202e:smile:函" in "".join(out.split())
    code, out, err = outcome("show", "*\x1b*", "--store", store)
    assert (code, out) == (2, "")
    assert "\x1b" not in err
    exported = outcome("export", "--format", "csv", "--store", store)[1]
    assert next(row for row in csv.DictReader(io.StringIO(exported, newline="")))["function"] == f"{evil}z"


def test_a_violation_that_the_host_explains_says_so() -> None:
    """What the host adds to calls of a violated function stands beside the verdict, without a cause nothing does."""
    cause = {
        "code": "slices",
        "times": 1,
        "text": "+1 timeslice: preempted",
        "excess_seconds": 0.004,
        "gained_share": 0.25,
    }
    entry = {"state": "single", "verdict": "violated", "host_causes": [cause]}
    assert any("more calls +1 timeslice: preempted (+4" in " ".join(each.split()) for each in why(entry))
    assert not any("host" in each for each in why(entry | {"host_causes": []}))


def test_what_was_never_checked_is_not_called_well(tmp_path: Path, outcome: Callable[..., Any]) -> None:
    """Of recorded durations it is known how long calls took, not that anything is as asserted."""
    rows = [f"f,{value:.0f}" for value in np.random.default_rng(3).lognormal(10, 0.1, 4_000)]
    (tmp_path / "d.csv").write_text("\n".join(["function,duration_ns", *rows]) + "\n")
    assert outcome("analyze", str(tmp_path / "d.csv"), "--output", str(tmp_path / "d.json"))[0] == 0
    code, out, _ = outcome("status", "--store", str(tmp_path / "d.json"))
    assert code == 0
    assert "All well" not in out
    assert "0 of 1 function as asserted, 1 not decided now." in out
