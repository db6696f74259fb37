"""The median of each function on each host, read from rows and hours: what ``fleet.host_levels`` works on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

import numpy as np

from specmine.fleet.codec import decode_histograms
from specmine.fleet.host_levels import BuildPair, FunctionLevels, newest_pair
from specmine.fleet.sums import RowBytes, summed
from specmine.mining.fleet.panel import drawn
from specmine.model.function import Function
from specmine.model.json_codec import decode
from specmine.store import Build

from .connecting import Connection
from .hosts import hosts
from .storing import document

MOST_HOSTS = 300
"""Of more, so many are drawn by lot: an interval hardly gets narrower."""
FEWEST_CALLS = 20
"""Of a function in a lifetime: fewer say nothing about its median."""
_AT_ONCE = 4000
# Hosts that scout are those that are called most, so those under most load: where there is a panel, it alone states
# levels.
_OF_PANEL = (
    " AND (NOT EXISTS (SELECT 1 FROM duty d WHERE d.function_id = {level}.function_id AND d.purpose <> 'scout')"
    " OR EXISTS (SELECT 1 FROM duty d WHERE d.function_id = {level}.function_id AND d.host_id = {level}.host_id"
    " AND d.purpose <> 'scout'))"
)
_CHOSEN = (
    "SELECT function_id, host_id, lifetime_id, ends_at, timed, bias_ns, counts FROM observation"
    " WHERE ends_at >= now() - %(since)s AND host_id = ANY(%(hosts)s) AND timed > 0"
    f"{_OF_PANEL.format(level='observation')}"
    " UNION ALL SELECT function_id, host_id, lifetime_id, ends_at, timed, bias_ns, counts FROM host_hour"
    " WHERE ends_at >= now() - %(since)s AND host_id = ANY(%(hosts)s) AND timed > 0"
    f"{_OF_PANEL.format(level='host_hour')}"
    " AND ends_at < (SELECT coalesce(date_trunc('hour', min(ends_at)), 'infinity') FROM observation)"
)
_Key = tuple[str, str]


def read_levels(db: Connection, since: timedelta, labels: Mapping[str, str]) -> list[FunctionLevels]:
    """Return the medians of all functions on the hosts with some labels, of what was observed so lately.

    Hosts in quarantine are left out. Of more than ``MOST_HOSTS`` so many are drawn by lot.
    """
    with db.transaction():
        db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        names = {each.host_id: each.name for each in hosts(db, labels) if each.state == "active"}
        panel = set(drawn(names.values(), MOST_HOSTS))
        names = {number: name for number, name in names.items() if name in panel}
        values = {"since": since, "hosts": list(names)}
        functions = _functions(db)
        ranges = db.execute(
            f"SELECT function_id, min(ends_at) AS first, count(DISTINCT host_id) AS hosts FROM ({_CHOSEN}) AS c"
            " GROUP BY function_id",
            values,
        ).fetchall()
        pairs = _pairs(functions, ranges)
        found: dict[_Key, dict[str, Any]] = {}
        for entry in _medians(db, values, {number: pairs.get(_key(each)) for number, each in functions.items()}):
            function = functions[entry["function_id"]]
            of = found.setdefault(_key(function), {"levels": {}, "before": {}, "lifetimes": set()})
            of["lifetimes"].add(entry["lifetime_id"])
            pair, host = pairs.get(_key(function)), names[entry["host_id"]]
            if pair is None or entry["after"]:
                of["levels"].setdefault((function.build_id, host), []).append(entry["log_median"])
            elif function.build_id == pair.base:
                of["before"].setdefault(host, []).append(entry["log_median"])
    return [
        FunctionLevels(
            name=name, module=module, pair=pairs.get((name, module)), lifetimes=len(each["lifetimes"]),
            levels={key: sum(values) / len(values) for key, values in each["levels"].items()},
            before={key: sum(values) / len(values) for key, values in each["before"].items()},
        )
        for (name, module), each in sorted(found.items())
    ]  # fmt: skip


def build_labels(db: Connection) -> dict[str, str]:
    """Return what builds are called, by build-id: the label that most hosts know."""
    rows = db.execute("SELECT key, document FROM held WHERE what = 'Build' ORDER BY key, host_id")
    named: dict[str, list[str]] = {}
    for row in rows:
        build: Build = decode(Build, document(row["document"]))
        if build.label:
            named.setdefault(row["key"], []).append(build.label)
    return {key: max(sorted(set(labels)), key=labels.count) for key, labels in named.items()}


def _key(function: Function) -> _Key:
    return function.name, function.module


def _functions(db: Connection) -> dict[int, Function]:
    rows = db.execute(
        "SELECT DISTINCT ON (h.key) f.function_id, h.document FROM held h JOIN function f ON f.key = h.key"
        " WHERE h.what = 'Function' ORDER BY h.key, h.host_id"
    )
    return {row["function_id"]: decode(Function, document(row["document"])) for row in rows}


def _pairs(functions: Mapping[int, Function], ranges: Sequence[Mapping[str, Any]]) -> dict[_Key, BuildPair]:
    seen: dict[_Key, dict[str, tuple[Any, int]]] = {}
    for row in ranges:
        function = functions.get(row["function_id"])
        if function is not None:
            seen.setdefault(_key(function), {})[function.build_id] = row["first"], row["hosts"]
    found = {}
    for key, builds in seen.items():
        pair = newest_pair({build: each[0] for build, each in builds.items()},
                           {build: each[1] for build, each in builds.items()})  # fmt: skip
        if pair is not None:
            found[key] = pair
    return found


def _medians(
    db: Connection, values: Mapping[str, Any], pairs: Mapping[int, BuildPair | None]
) -> Iterator[dict[str, Any]]:
    """Yield the logarithm of the median of each function in each lifetime, s; of what came before a new build apart."""
    with db.cursor("rows", binary=True) as cursor:
        cursor.itersize = _AT_ONCE
        cursor.execute(f"SELECT * FROM ({_CHOSEN}) AS c ORDER BY function_id, lifetime_id, ends_at", values)
        group: dict[tuple[int, int, bool], list[Mapping[str, Any]]] = {}
        number, last = 0, None
        for row in cursor:
            if row["function_id"] not in pairs:  # nobody told its name
                continue
            this = (row["function_id"], row["lifetime_id"])
            if number >= _AT_ONCE and this != last:
                yield from _of_groups(group)
                group, number = {}, 0
            last = this
            pair = pairs[row["function_id"]]
            group.setdefault((*this, pair is None or row["ends_at"] >= pair.since), []).append(row)
            number += 1
    yield from _of_groups(group)


def _of_groups(groups: Mapping[tuple[int, int, bool], Sequence[Mapping[str, Any]]]) -> Iterator[dict[str, Any]]:
    rows = [row for group in groups.values() for row in group]
    place = np.repeat(np.arange(len(groups)), [len(each) for each in groups.values()])
    parts = [RowBytes(counts=row["counts"], paths=None, path_ids=None) for row in rows]
    for (key, group), whole in zip(groups.items(), summed(parts, place, len(groups)), strict=True):
        (histogram,) = decode_histograms(whole.counts, 1)
        timed = sum(row["timed"] for row in group)
        bias = sum(row["bias_ns"] * row["timed"] for row in group) / timed
        median = histogram.quantiles((0.5,))[0] - bias
        if timed >= FEWEST_CALLS and median > 0:
            yield {
                "function_id": key[0], "lifetime_id": key[1], "after": key[2], "host_id": group[0]["host_id"],
                "log_median": math.log(median * 1e-9),
            }  # fmt: skip
