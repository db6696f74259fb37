"""``specmine compare`` and ``report`` say which code is to blame, and blame none that did not change."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from specmine.model.function import Function
from specmine.store import Writes, open_store
from tests.support.stored_builds import two_builds

Outcome = Callable[..., tuple[int, str, str]]
Compared = Callable[..., tuple[int, dict[str, Any]]]


def test_one_cause_for_a_function_and_its_caller(tmp_path: Path, compared: Compared, outcome: Outcome) -> None:
    """The parser's code changed and it is slower: it is the cause, explains its caller, and is the first suspect."""
    path = two_builds(tmp_path / "s.db", 1.2)
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
    assert "2 slower (1 cause), 1 the same" in out
    rows = {line.split()[0]: line for line in out.splitlines() if line.startswith("  ") and line.split()}
    assert rows["parse"].endswith("code changed")
    assert rows["handle"].endswith("through parse")
    assert "1. parse (app): its code changed" in out


def test_durations_that_moved_without_any_code_are_not_blamed_on_code(tmp_path: Path, compared: Compared) -> None:
    """Everything in the store has the same code: slower calls are there, their cause is not known."""
    path = two_builds(tmp_path / "s.db", 1.2)
    with open_store(path) as store:
        same = tuple(replace(each, code="1:same:l0") for each in store.read(Function))
        store.write(Writes(same), 10**18)
    _, document = compared("--store", path, "aaaa", "bbbb")
    found = {each["function"]: each for each in document["functions"]}
    assert found["parse"]["change"]["cause"] == "unknown"
    assert "no machine code" in found["parse"]["change"]["reason"]
    assert document["machine_code"]["suspects"] == []


def test_a_function_whose_code_did_not_change_is_worse_without_failing(tmp_path: Path, compared: Compared) -> None:
    """Neither it nor what it calls has other code: worse, and said so, but exit code 1 only with --strict."""
    path = two_builds(tmp_path / "s.db", 1.2)
    with open_store(path) as store:
        same = tuple(replace(each, code="1:same:l0") for each in store.read(Function))
        store.write(Writes(same), 10**18)
    code, document = compared("--store", path, "aaaa", "bbbb")
    found = {each["function"]: each for each in document["functions"]}
    assert (code, found["parse"]["verdict"], found["parse"]["code_unchanged"]) == (0, "worse", True)
    assert "neither its machine code" in found["parse"]["reason"]
    assert compared("--store", path, "aaaa", "bbbb", "--strict")[0] == 1
    assert compared("--store", path, "aaaa", "bbbb", "--function", "parse")[0] == 0


def test_a_caller_of_changed_code_fails(tmp_path: Path, compared: Compared) -> None:
    """The handler's own code is as it was, but it calls the parser: that it is worse gives exit code 1 by itself."""
    path = two_builds(tmp_path / "s.db", 1.2)
    code, document = compared("--store", path, "aaaa", "bbbb", "--function", "handle")
    (found,) = document["functions"]
    assert (code, found["machine_code"], found["code_unchanged"]) == (1, "moved", False)
    everything = compared("--store", path, "aaaa", "bbbb")[1]["functions"]
    unchanged = {each["function"]: each["code_unchanged"] for each in everything}
    assert unchanged == {"parse": False, "handle": False, "aside": True}


def test_a_report_names_the_suspects_of_each_step(tmp_path: Path, outcome: Outcome) -> None:
    """The report of the same store has the same suspects, as numbers and on the page."""
    path = two_builds(tmp_path / "s.db", 1.2)
    document = json.loads(outcome("report", str(path), "--format", "json")[1])
    (step,) = document["machine_code"]
    assert (step["base"], step["new"], step["counts"]["changed"]) == ("aaaa", "bbbb", 1)
    assert [each["function"] for each in step["suspects"]] == ["parse", "handle"]
    page = outcome("report", str(path))[1]
    assert "parse (app)</td><td>its code changed; 50 % of the CPU time inside it became 50 %; 1.2" in page
