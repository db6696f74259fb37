"""From the hosts' medians to what people read: which host, which build, and how sure."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from specmine.fleet.host_levels import BuildPair, FunctionLevels, document_of, newest_pair
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


def test_a_slow_host_is_a_host_and_a_slow_build_is_a_build() -> None:
    """Both at once, neither taken for the other."""
    document = document_of(_functions(slow="h17", regressed="f4"), {"bb": "v2"}, level=0.95)
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
    document = document_of(functions, {}, level=0.95)
    assert document["hosts_that_stand_out"] == []
    (entry,) = document["hosts_that_changed"]
    assert (entry["host"], entry["functions"], entry["functions_agreeing"]) == ("h17", 10, 10)
    assert entry["factor"] == pytest.approx(1.5, rel=0.05)
    assert entry["text"] == (
        "h17 alone became slower in the last 30 minutes, 1.5 times, in 10 of 10 functions: the host, not a build"
    )
    others = [replace(each, changes={key: value for key, value in each.changes.items() if key[1] != "h17"})
              for each in functions]  # fmt: skip
    assert document_of(others, {}, level=0.95)["hosts_that_changed"] == []


def test_levels_are_the_trimmed_means() -> None:
    """Of each build, with the spread between hosts."""
    functions = _functions()
    document = document_of(functions, {}, level=0.95)
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
