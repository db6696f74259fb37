"""From the hosts' medians to what people read: which host, which build, and how sure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from specmine.fleet.function_levels import BuildPair, FunctionLevels, newest_pair
from specmine.fleet.host_levels import document_of
from specmine.fleet.outlying_hosts import outlying
from specmine.mining.fleet.parts_of_time import PartsOfTime
from specmine.mining.fleet.trimmed import trimmed_mean

_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_PAIR = BuildPair(base="aa", new="bb", since=_NOW)


def _functions(slow: str = "", regressed: str = "") -> list[FunctionLevels]:
    """Return ten functions on 40 hosts, ten of which run a new build."""
    rng = np.random.default_rng(5)
    effects = rng.normal(0.0, 0.05, 40)
    found = []
    for number in range(10):
        name = f"f{number}"
        levels = {}
        for host in range(40):
            build = "bb" if host >= 30 else "aa"
            value = math.log(1e-4) + effects[host] + rng.normal(0.0, 0.03)
            value += math.log(2.3) if f"h{host}" == slow else 0.0
            value += math.log(1.4) if build == "bb" and name == regressed else 0.0
            levels[build, f"h{host}"] = value
        found.append(FunctionLevels(name=name, module="app", pair=_PAIR, levels=levels, lifetimes=40))
    return found


def _document(functions: list[FunctionLevels], labels: Mapping[str, str] | None = None) -> dict[str, Any]:
    return document_of(functions, labels or {}, outlying(functions), level=0.95)


def test_a_slow_host_is_a_host_and_a_slow_build_is_a_build() -> None:
    """Both at once, neither taken for the other."""
    document = _document(_functions(slow="h17", regressed="f4"), {"bb": "v2"})
    assert [each["host"] for each in document["hosts_that_stand_out"]] == ["h17"]
    assert "h17 alone is slower, 2.2 times, in 10 of 10 functions" in document["hosts_that_stand_out"][0]["text"]
    assert [each["function"] for each in document["builds"] if each["verdict"] == "worse"] == ["f4"]
    first = document["builds"][0]
    assert (first["new"], first["hosts"], first["hosts_agreeing"]) == ("v2", [30, 10], 10)
    assert first["interval"][0] < first["ratio"] < first["interval"][1]
    assert abs(math.log(first["ratio"] / 1.4)) < 0.1
    assert first["text"].startswith("f4 (app) is slower on all 10 hosts with build v2: 1.")


def test_a_host_that_became_slower_is_named_however_much_hosts_differ() -> None:
    """Each is compared with itself; where all became slower alike, as with the time of day, nobody is named."""
    rng = np.random.default_rng(7)
    host_effects = rng.normal(0.0, 0.3, 40)
    functions = []
    for number in range(10):
        levels = {("aa", f"h{host}"): math.log(1e-4) + host_effects[host] for host in range(40)}
        changes = {key: 0.2 + rng.normal(0.0, 0.04) + (math.log(1.5) if key[1] == "h17" else 0.0) for key in levels}
        functions.append(FunctionLevels(name=f"f{number}", module="app", levels=levels, changes=changes, lifetimes=40))
    document = _document(functions)
    assert document["hosts_that_stand_out"] == []
    (entry,) = document["hosts_that_changed"]
    assert (entry["host"], entry["functions"], entry["functions_agreeing"]) == ("h17", 10, 10)
    assert entry["factor"] == pytest.approx(1.5, rel=0.05)
    assert entry["text"] == (
        "h17 alone became slower in the last 30 minutes, 1.5 times, in 10 of 10 functions: the host, not a build"
    )
    others = [replace(each, changes={key: value for key, value in each.changes.items() if key[1] != "h17"})
              for each in functions]  # fmt: skip
    assert _document(others)["hosts_that_changed"] == []


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ((0.04, 0.0, 0.96), "; 96 % of the difference is blocked"),
        ((0.0, 0.9, 0.1), "; 90 % of the difference is waiting for a CPU"),
        ((1.05, 0.0, -0.05), "; >99 % of the difference is running"),
        ((0.5, 0.0, 0.5), ""),
    ],
)
def test_what_the_difference_is_stands_behind_it(shares: tuple[float, float, float], said: str) -> None:
    """Where most of it is of one kind; as numbers in any case."""
    functions = _functions(slow="h17")
    running, waiting, blocked = shares
    times = {"h17": PartsOfTime(running=running, waiting=waiting, blocked=blocked)}
    (entry,) = document_of(functions, {}, replace(outlying(functions), of_level=times), level=0.95)[
        "hosts_that_stand_out"
    ]
    assert entry["text"].endswith(f": the host, not a build{said}")
    assert entry["time"] == {"running": running, "waiting": waiting, "blocked": blocked}
    assert _document(functions)["hosts_that_stand_out"][0]["time"] is None


def test_levels_are_the_trimmed_means() -> None:
    """Of each build, with the spread between hosts."""
    functions = _functions()
    document = _document(functions)
    entry = next(each for each in document["functions"] if (each["function"], each["build"]) == ("f3", "aa"))
    values = [value for (build, _), value in functions[3].levels.items() if build == "aa"]
    expected = trimmed_mean(values)
    assert expected is not None
    assert entry["median"]["seconds"] == pytest.approx(math.exp(expected.mean))
    assert (entry["hosts"], document["hosts"]) == (30, 40)
    assert 0.02 < entry["between_hosts_ratio"] < 0.12


def test_the_newest_build_is_compared_with_the_one_that_most_run() -> None:
    """Not with one that hardly any host has left."""
    seen = {"a": _NOW, "b": _NOW + timedelta(hours=1), "c": _NOW + timedelta(hours=2)}
    pair = newest_pair(seen, {"a": 40, "b": 2, "c": 3})
    assert pair == BuildPair(base="a", new="c", since=seen["c"])
    assert newest_pair({"a": _NOW}, {"a": 3}) is None
