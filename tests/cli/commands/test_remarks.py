"""label: builds get names, in a store or by the daemon."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from specmine.model.batch import Lifetime
from specmine.store import Build, Writes, open_store

Outcome = Callable[..., tuple[int, str, str]]


def _with_builds(store: Path) -> None:
    with open_store(store) as opened:
        lifetimes = tuple(
            Lifetime(id=f"boot:{pid}:1", pid=pid, executable="/app", build_id=build, start_ns=1, processes=1)
            for pid, build in ((1, "5f1d9c"), (2, "5f77"), (3, "aa"))
        )
        opened.write(Writes(lifetimes), 1)


def _labels(store: Path) -> set[Build]:
    with open_store(store, read_only=True) as opened:
        return {each for each in opened.read(Build) if each.label}


def test_label_in_a_store(store: Path, outcome: Outcome) -> None:
    """A build is named by the first digits of its id."""
    _with_builds(store)
    assert outcome("label", "5f1", "v1.2", "--store", store) == (0, "Build 5f1d9c is now called v1.2.\n", "")
    assert _labels(store) == {Build(build_id="5f1d9c", executable="/app", label="v1.2")}
    _, out, _ = outcome("label", "aa", "ä", "--store", store, "--format", "json")
    assert json.loads(out) == {"schema": "specmine.label/1", "build_id": "aa", "label": "ä"}


@pytest.mark.parametrize(
    ("build", "message"), [("5f", "2 builds begin with 5f"), ("9", "no build '9'"), ("", "no build")]
)
def test_label_of_an_unclear_build_is_2(build: str, message: str, store: Path, outcome: Outcome) -> None:
    """A build that is unknown, or not the only one, changes nothing."""
    _with_builds(store)
    code, out, err = outcome("label", build, "v1", "--store", store)
    assert (code, out) == (2, "")
    assert message in err
    assert not _labels(store)


def test_label_without_a_store_makes_none(tmp_path: Path, outcome: Outcome) -> None:
    """A mistyped store is not created."""
    assert outcome("label", "aa", "v1", "--store", tmp_path / "x.db")[0] == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["json", "database"])
def test_label_of_what_is_no_store_leaves_nothing(kind: str, tmp_path: Path, outcome: Outcome) -> None:
    """It is said that it is no store, and no lock is made beside it."""
    path = tmp_path / "spec"
    if kind == "json":
        path.write_text('{"schema": "specmine.specification/1"}')
    else:
        with closing(sqlite3.connect(path)) as db:
            db.execute("CREATE TABLE other(id INTEGER)")
    code, out, err = outcome("label", "aa", "v1", "--store", path)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"{path} is not a store of specmine" in err if kind == "json" else "another program" in err
    assert [each.name for each in tmp_path.iterdir()] == ["spec"]


def test_label_asks_the_daemon(asked: tuple[Path, list[Mapping[str, Any]]], outcome: Outcome) -> None:
    """Without --store the daemon is told."""
    socket, requests = asked
    assert outcome("label", "5f1d", "v1", "--socket", socket)[1] == "Build 5f1d9c0a77e2b34c9d1e is now called v1.\n"
    assert requests == [{"command": "label", "build": "5f1d", "name": "v1"}]
