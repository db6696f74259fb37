"""The median of each function on each host, read from rows and hours: what ``fleet.host_levels`` works on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import numpy as np

from specmine.fleet.function_levels import LATELY, BuildPair, FunctionLevels, newest_pair
from specmine.fleet.sums import histogram_sums
from specmine.mining.fleet.panel import drawn
from specmine.model.function import Function
from specmine.model.histogram import Histogram
from specmine.model.json_codec import decode

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
_NEVER = datetime.max.replace(tzinfo=UTC)
_Key = tuple[str, str]
_Row = Mapping[str, Any]
_Of = TypeVar("_Of")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Medians:
    """Logarithms of the median of one function in one lifetime, s; None where too few calls were timed."""

    function_id: int
    lifetime_id: int
    host_id: int
    after: bool
    """Of what was observed since the new build came, if there is one."""
    whole: float | None
    earlier: float | None
    lately: float | None


@dataclass(slots=True)
class _Found:
    """Logarithms of the medians of one function's lifetimes."""

    pair: BuildPair | None
    levels: dict[_Key, list[float]] = field(default_factory=dict)
    """By build and host."""
    before: dict[str, list[float]] = field(default_factory=dict)
    """By host."""
    earlier: dict[_Key, list[float]] = field(default_factory=dict)
    lately: dict[_Key, list[float]] = field(default_factory=dict)
    lifetimes: set[int] = field(default_factory=set)

    def add(self, medians: _Medians, build: str, host: str) -> None:
        """Take up those of one lifetime."""
        if medians.whole is None:
            return
        self.lifetimes.add(medians.lifetime_id)
        for times, value in ((self.earlier, medians.earlier), (self.lately, medians.lately)):
            if value is not None:
                times.setdefault((build, host), []).append(value)
        if self.pair is None or medians.after:
            self.levels.setdefault((build, host), []).append(medians.whole)
        elif build == self.pair.base:
            self.before.setdefault(host, []).append(medians.whole)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLevels:
    """The medians of all functions on some hosts."""

    functions: list[FunctionLevels]
    names: Mapping[int, str]
    """Of the hosts, by number."""
    lately: datetime
    """What was observed after this is compared with what was before it."""


def read_levels(db: Connection, since: timedelta, labels: Mapping[str, str]) -> HostLevels:
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
            "SELECT function_id, min(ends_at) AS first, max(ends_at) AS last, count(DISTINCT host_id) AS hosts"
            f" FROM ({_CHOSEN}) AS c GROUP BY function_id",
            values,
        ).fetchall()
        pairs = _pairs(functions, ranges)
        lately = max((row["last"] for row in ranges), default=_NEVER) - LATELY
        found: dict[_Key, _Found] = {}
        wanted = {number: pairs.get(_key(each)) for number, each in functions.items()}
        for each in _medians(db, values, wanted, lately):
            function = functions[each.function_id]
            found.setdefault(_key(function), _Found(pairs.get(_key(function)))).add(
                each, function.build_id, names[each.host_id]
            )
    of_functions = [
        FunctionLevels(
            name=name, module=module, pair=each.pair, lifetimes=len(each.lifetimes), levels=_means(each.levels),
            before=_means(each.before), changes=_changes(_means(each.earlier), _means(each.lately)),
        )
        for (name, module), each in sorted(found.items())
    ]  # fmt: skip
    return HostLevels(functions=of_functions, names=names, lately=lately)


def _means(values: Mapping[_Of, Sequence[float]]) -> dict[_Of, float]:
    return {key: sum(each) / len(each) for key, each in values.items()}


def _changes(earlier: Mapping[_Key, float], lately: Mapping[_Key, float]) -> dict[_Key, float]:
    return {key: value - earlier[key] for key, value in lately.items() if key in earlier}


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
    db: Connection, values: Mapping[str, Any], pairs: Mapping[int, BuildPair | None], lately: datetime
) -> Iterator[_Medians]:
    """Yield what each function's median is in each lifetime; of what came before a new build apart."""
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
                yield from _of_groups(group, lately)
                group, number = {}, 0
            last = this
            pair = pairs[row["function_id"]]
            group.setdefault((*this, pair is None or row["ends_at"] >= pair.since), []).append(row)
            number += 1
    yield from _of_groups(group, lately)


def _of_groups(groups: Mapping[tuple[int, int, bool], Sequence[_Row]], lately: datetime) -> Iterator[_Medians]:
    rows = [row for group in groups.values() for row in group]
    of_group = np.repeat(np.arange(len(groups)), [len(each) for each in groups.values()])
    late = np.array([row["ends_at"] > lately for row in rows], bool)
    histograms = histogram_sums([row["counts"] for row in rows], 2 * of_group + late, 2 * len(groups))
    for at, ((function_id, lifetime_id, after), group) in enumerate(groups.items()):
        earlier, later = histograms[2 * at : 2 * at + 2]
        timed = sum(row["timed"] for row in group)
        bias_ns = sum(row["bias_ns"] * row["timed"] for row in group) / timed
        yield _Medians(
            function_id=function_id, lifetime_id=lifetime_id, after=after, host_id=group[0]["host_id"],
            whole=_log_median(Histogram.sum((earlier, later)), bias_ns),
            earlier=_log_median(earlier, bias_ns), lately=_log_median(later, bias_ns),
        )  # fmt: skip


def _log_median(histogram: Histogram, bias_ns: float) -> float | None:
    """Return the logarithm of the median, s; None of too few calls, or of calls that take no time."""
    if histogram.total < FEWEST_CALLS:
        return None
    median = histogram.quantiles((0.5,))[0] - bias_ns
    return math.log(median * 1e-9) if median > 0 else None
