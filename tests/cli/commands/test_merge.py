"""``specmine merge``: agreement of runs, builds that inline, stores that become one."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specmine.model.batch import Lifetime
from specmine.model.call_path import CallPath, Frame
from specmine.model.function import Function
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation, PathHistogram
from specmine.store import Document, Host, Writes, open_store
from tests.support.recordings import calls, csv_text

Outcome = Callable[..., tuple[int, str, str]]
Analyzed = Callable[..., Path]


@pytest.fixture
def analyzed(tmp_path: Path, outcome: Outcome) -> Analyzed:
    """Return what analyses calls and gives the specification's file."""

    def analyze(name: str, some: Sequence[tuple[str, int]]) -> Path:
        recording, target = tmp_path / f"{name}.csv", tmp_path / f"{name}.json"
        recording.write_text(csv_text(some))
        assert outcome("analyze", recording, "--output", target)[0] == 0
        return target

    return analyze


def inlined(some: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return the calls under a build in which ``a`` was inlined into ``main``."""
    return [(path.replace("main;a;", "main;"), duration // 3) for path, duration in some]


def merged(outcome: Outcome, *arguments: object) -> dict[str, Any]:
    """Return what merge says in JSON."""
    code, out, err = outcome("merge", *arguments, "--format", "json")
    assert (code, err) == (0, "")
    document: dict[str, Any] = json.loads(out)
    assert document["schema"] == "specmine.merge/1"
    return document


def test_runs_of_one_program_agree(analyzed: Analyzed, outcome: Outcome, tmp_path: Path) -> None:
    """Three runs, one model: all calls alike, their sum, and the same expressions."""
    files = [analyzed(f"run{seed}", calls(5000, seed=seed)) for seed in (1, 2, 3)]
    target = tmp_path / "merged.json"
    told = merged(outcome, *files, "--output", target)
    (found,) = told["functions"]
    assert [step["calls_ratio"] for step in found["steps"]] == [1.0, 1.0]
    assert (found["models"], found["calls"]) == (3, 15_000)
    (entry,) = json.loads(target.read_text())["functions"]
    assert {each["expression"]: round(each["shares"][0], 1) for each in entry["behaviours"]} == {
        "b->c": 1.0,
        "not b->c": 0.6,
    }
    assert sum(each["calls"] for each in entry["behaviours"]) == 15_000
    for each in ("assertions", "functions", "export"):
        assert outcome(each, "--store", target)[0] == 0
    assert "100 %" in outcome("merge", *files)[1]


def test_builds_that_inline_differently_are_aligned(analyzed: Analyzed, outcome: Outcome) -> None:
    """Three times as fast and a frame shorter: no path has the same name, and all calls agree."""
    some = calls(5000)
    files = [analyzed("o2", some), analyzed("o3", inlined(calls(5000, seed=2)))]
    (found,) = merged(outcome, *files)["functions"]
    (step,) = found["steps"]
    assert step["shared_paths"] == step["consistent_paths"] == 3
    assert sorted(found["behaviours"]) == ["b->c", "not b->c"]


def test_disagreement_is_told(analyzed: Analyzed, outcome: Outcome) -> None:
    """Where another path stands alone, no pairing of the groups explains all: a third of the calls is left."""
    moved = {"main;a;b;c;z": "main;a;b;z", "main;a;b;z": "main;a;b;c;z"}
    files = [analyzed("one", calls(5000)), analyzed("two", [(moved.get(p, p), d) for p, d in calls(5000)])]
    told = merged(outcome, *files)
    (step,) = told["functions"][0]["steps"]
    assert (step["shared_paths"], step["consistent_paths"]) == (3, 2)
    assert step["calls_ratio"] == pytest.approx(2 / 3, abs=0.05)
    assert told["summary"]["consistent"] == 0


def test_a_run_without_borders_puts_all_paths_into_one_group(analyzed: Analyzed, outcome: Outcome) -> None:
    """A model of one behaviour agrees about the calls of the larger group only."""
    files = [analyzed("one", calls(5000)), analyzed("two", [(path, 20_000 + d % 4000) for path, d in calls(5000)])]
    (step,) = merged(outcome, *files)["functions"][0]["steps"]
    assert step["calls_ratio"] == pytest.approx(2 / 3, abs=0.05)


def test_what_is_undecided_is_told(analyzed: Analyzed, outcome: Outcome, tmp_path: Path) -> None:
    """An input of a handful of calls contradicts nobody; where most are undecided nothing agrees either."""
    large = analyzed("large", calls(5000))
    small = tmp_path / "small.json"
    document = json.loads(large.read_text())
    (entry,) = document["functions"]
    entry["behaviours"] = entry["behaviours"][:1]
    for path in entry["paths"]:
        path |= {"calls": 5, "independent_calls": 5.0, "behaviour": 0}
    small.write_text(json.dumps(document))
    told = merged(outcome, large, small)
    (step,) = told["functions"][0]["steps"]
    assert (step["shared_paths"], step["consistent_paths"], step["undecided_paths"]) == (3, 2, 1)
    assert (step["calls_ratio"], told["summary"]["consistent"], told["summary"]["undecided"]) == (1.0, 1, 0)
    finer = json.loads(large.read_text())
    (entry,) = finer["functions"]
    entry["behaviours"] = [*entry["behaviours"], entry["behaviours"][0]]
    for group, path in enumerate(entry["paths"]):
        path["behaviour"] = group
    (tmp_path / "finer.json").write_text(json.dumps(finer))
    told = merged(outcome, tmp_path / "finer.json", small)
    assert told["functions"][0]["steps"][0]["undecided_ratio"] > 0.5
    assert (told["summary"]["consistent"], told["summary"]["undecided"]) == (0, 1)
    text = outcome("merge", tmp_path / "finer.json", small)[1]
    assert "UNDECIDED" in text
    assert "1 function: too few calls to tell whether the models agree." in text


def test_nothing_in_common_is_no_data(analyzed: Analyzed, outcome: Outcome, tmp_path: Path) -> None:
    """Exit code 3 for other functions; 2 for what is no specification, one input, or an input as output."""
    one = analyzed("one", calls(5000))
    other = tmp_path / "other.json"
    other.write_text(one.read_text().replace('"function": "z"', '"function": "y"'))
    assert outcome("merge", one, other)[0] == 3
    other.write_text("{}")
    for arguments in ([one, other], [one], [one, tmp_path / "missing"], [one, one, "--output", one]):
        code, out, err = outcome("merge", *arguments)
        assert (code, out) == (2, "")
        assert err.count("\n") == 1


def store_of(path: Path, boot: str, document: dict[str, Any]) -> Path:
    """Make a store with one lifetime, one observation and a specification."""
    function = Function(build_id="b1", offset=16, name="z", module="app")
    counts = Histogram.from_durations(np.full(300, 20_000))
    own = CallPath((Frame("main", "app"), Frame("z", "app")))
    seen = Observation(
        function=function.key, lifetime=f"{boot}:1", kind=Kind.PATH, start_ns=5, end_ns=9, histogram=counts, calls=300,
        watched_ns=4, paths=(PathHistogram(path=own, histogram=counts),),
    )  # fmt: skip
    with open_store(path) as store:
        host = Host(boot_id=boot, hostname=boot, utc_offset_ns=100)
        lifetime = Lifetime(id=f"{boot}:1", pid=1, executable="/app", build_id="b1", start_ns=1, processes=1)
        specification = Document(name="specification", document=document)
        store.write(Writes((host, lifetime, function, seen, specification)), 0)
    return path


def test_stores_become_one_store(tmp_path: Path, document: dict[str, Any], outcome: Outcome) -> None:
    """Hosts, lifetimes and observations of all, each once, and the merged specification."""
    stores = [store_of(tmp_path / f"{boot}.db", boot, document) for boot in ("one", "two")]
    target = tmp_path / "all.db"
    code, _, err = outcome("merge", *stores, stores[0], "--output", target)
    assert (code, err) == (0, "")
    with open_store(target, read_only=True) as store:
        held = store.load()
    assert [host.boot_id for host in held.hosts] == ["one", "two"]
    assert sorted(each.lifetime for each in held.observations) == ["one:1", "two:1"]
    assert all(each.paths and each.timed == 300 for each in held.observations)
    assert held.documents["specification"]["collection"]["merged"] == 3
    assert sorted(each.name for each in tmp_path.iterdir() if each.name.startswith(".all")) == []
    assert outcome("assertions", "--store", target)[0] == 0
    told = tmp_path / "all.json"
    told.write_text(outcome("assertions", "--store", target, "--format", "json")[1])
    checked = [outcome("check", spec, "--against", stores[0], "--format", "json") for spec in (target, told)]
    assert checked[0] == checked[1]
    assert json.loads(checked[0][1])["formulas"]


def test_a_damaged_store_leaves_nothing(tmp_path: Path, document: dict[str, Any], outcome: Outcome) -> None:
    """One input that is cut short: exit code 2, no output, nothing half made."""
    good = store_of(tmp_path / "good.db", "one", document)
    bad = store_of(tmp_path / "bad.db", "two", document)
    with sqlite3.connect(bad) as db:
        db.execute("DROP TABLE observations")
    db.close()
    code, out, err = outcome("merge", good, bad, "--output", tmp_path / "all.db")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert not [each for each in tmp_path.iterdir() if "all.db" in each.name and each.name != "all.db.lock"]


def test_a_store_in_use_is_not_replaced(tmp_path: Path, document: dict[str, Any], outcome: Outcome) -> None:
    """Who writes to it would go on writing to a file without a name, and one of both results would be lost."""
    stores = [store_of(tmp_path / f"{boot}.db", boot, document) for boot in ("one", "two")]
    target = store_of(tmp_path / "used.db", "three", document)
    with open_store(target):
        code, out, err = outcome("merge", *stores, "--output", target)
    assert (code, out) == (2, "")
    assert f"the store {target} is in use by process" in err
    with open_store(target, read_only=True) as store:
        assert [host.boot_id for host in store.load().hosts] == ["three"]


def test_the_log_of_the_store_before_is_not_played_into_the_new_one(
    tmp_path: Path, document: dict[str, Any], outcome: Outcome
) -> None:
    """A writer that was killed leaves a log behind, which is of another file."""
    stores = [store_of(tmp_path / f"{boot}.db", boot, document) for boot in ("one", "two")]
    target, log = tmp_path / "all.db", tmp_path / "all.db-wal"
    with open_store(target) as store:
        for number in range(200):
            store.write(Writes((Document(name=f"old{number}", document={"text": "x" * 4000}),)), 0)
        left = log.read_bytes()
    assert left
    log.write_bytes(left)
    assert outcome("merge", *stores, "--output", target)[0] == 0
    with open_store(target) as store:
        assert [host.boot_id for host in store.load().hosts] == ["one", "two"]
        assert {each.name for each in store.read(Document)} == {"specification"}
