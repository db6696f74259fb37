"""What happened inside a call as text and on the page, and the tree of what the spread consists of."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specmine.analysis.charts.inside import inside_bar
from specmine.analysis.wording.inside import rows
from specmine.cli.text.inside import inside_table, spread_tree
from specmine.daemon.documents.inside import inside_facts, spread_facts
from specmine.model.buckets import bucket_of
from specmine.model.call_path import Frame
from tests.support.insides import inside_of_calls

LOCK = Frame("lock", "app")


def entry(name: str = "z") -> dict[str, Any]:
    """Return a function of two classes; two in ten calls take 2 ms in lock(), which is blocked, the others none."""
    chance = np.random.default_rng(6)
    lock = np.where(chance.random(4000) < 0.2, 2e6, 0.0)
    known = inside_of_calls({LOCK: lock}, chance.lognormal(np.log(50_000), 0.1, 4000), blocked={LOCK: 0.98 * lock})
    edges = (int(bucket_of(np.array([400_000]))[0]),)
    classes: list[dict[str, Any]] = [{"upper_seconds": 4e-4, "share": 0.8}, {"upper_seconds": None, "share": 0.2}]
    told = [one | more for one, more in zip(classes, inside_facts(known, edges, 0.0), strict=True)]
    return {"function": name, "module": "app", "classes": told, "spread": spread_facts(known, 0.0)}


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_each_class_has_its_parts(columns: int) -> None:
    """The callee of the slow class has nearly all of its time; the fast class consists of own code."""
    lines = inside_table(entry(), columns, ascii_only=True)
    assert max(map(len, lines)) <= columns
    text = " ".join(" ".join(lines).split())
    assert "over 400 us: mean 2.0 ms of " in text
    assert "lock 2.0 ms 98 %" in text
    assert "98 % of it blocked" in text
    fast = [line.split() for line in lines[: lines.index(next(each for each in lines if "over 400 us" in each))]]
    assert ["own", "code", "50", "us", "100", "%", "#" * 20] in fast or columns == 60


def test_what_was_not_timed_is_said() -> None:
    """Its time is in the own code, which must not be believed to be that."""
    told = entry()
    told["classes"][0]["not_timed"] = [{"callee": "read\x1b[31m", "module": "libc.so.6"}]
    text = " ".join(" ".join(inside_table(told, 80, ascii_only=True)).split())
    assert "Not timed all the while, so their time is in own code: read\\x1b[31m (libc.so.6)." in text


def test_nothing_known_is_nothing_said() -> None:
    for known in ([], [{"upper_seconds": None, "share": 1.0}], inside_facts(None, (), 0.0)):
        assert inside_table({"classes": known}, 80, ascii_only=True) == []
    assert spread_facts(None, 0.0) is None
    assert spread_tree({"function": "z"}, [], 80) == []


def test_the_tree_goes_down_the_callees() -> None:
    """The parts of a callee stand below it, and a function that is its own callee ends the tree."""
    below = entry("lock")
    lines = spread_tree(entry(), [entry(), below], 80)
    at = next(number for number, line in enumerate(lines) if line.startswith(("|- lock", "`- lock")))
    assert lines[at].split()[2:5] == ["100", "%", "100"]
    assert lines[at + 1].lstrip("| ").startswith(("|- lock", "`- lock"))
    assert sum("lock" in line for line in lines[at:]) == 2
    assert max(map(len, lines)) <= 80


def test_show_prints_both(
    keep: Callable[[Mapping[str, Any]], Path],
    document: dict[str, Any],
    outcome: Callable[..., tuple[int, str, str]],
) -> None:
    """show has the section, --why the tree alone, JSON the contract's field; without data --why is 3."""
    made = next(each for each in document["functions"] if each["function"] == "z")
    for one, more in zip(made["classes"], entry()["classes"], strict=True):
        one |= {key: value for key, value in more.items() if key not in ("upper_seconds", "share")}
    made["spread"] = entry()["spread"]
    store = keep(document)
    code, out, _ = outcome("show", "z", "--store", store)
    assert (code, out.count("Inside a call")) == (0, 1)
    code, out, _ = outcome("show", "z", "--why", "--store", store)
    assert (code, "SPREAD" in out, "Quantiles" in out) == (0, True, False)
    code, out, _ = outcome("show", "z", "--store", store, "--format", "json")
    slow = json.loads(out)["classes"][1]["inside"]
    assert [(each["callee"], each["module"]) for each in slow] == [("lock", "app")]
    assert slow[0]["share"] == pytest.approx(0.976, abs=0.01)
    code, _, err = outcome("show", "a", "--why", "--store", store)
    assert (code, "timed" in err) == (3, True)


def test_bars_are_as_wide_as_shares() -> None:
    """Own code has no filling; names are escaped."""
    parts = rows(entry()["classes"][1])
    picture = inside_bar("<b>", parts)
    assert f'width="{100 * parts[0].share:.2f}%"' in picture
    assert picture.count("trough") == 1
    assert "<b>" not in picture
    assert inside_bar("x", []) == ""
