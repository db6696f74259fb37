"""Functions over hosts: how long they take, which hosts stand out, and whether a new build is slower than the old one.

Pure: from the median of each function, build and host to ``specmine.fleet_levels/1``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from specmine.mining.fleet.canary import CanaryComparison, Finding, compare_canary
from specmine.mining.fleet.host_factors import HostFactor, Levels, host_factors
from specmine.mining.fleet.trimmed import trimmed_mean
from specmine.mining.regression.false_discovery_rate import q_values
from specmine.model.text import duration, plural, title

SCHEMA = "specmine.fleet_levels/1"
LATELY = timedelta(minutes=30)
"""A host is compared with itself: what was observed so lately with what was before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildPair:
    """Two builds of which hosts run one or the other."""

    base: str
    new: str
    since: datetime
    """When the new one was first seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionLevels:
    """The hosts' medians of one function."""

    name: str
    module: str
    pair: BuildPair | None = None
    levels: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """(build, host) to the logarithm of the median, s: since the new build came, if there is one."""
    before: Mapping[str, float] = field(default_factory=dict)
    """The same of the old build before that, by host."""
    changes: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """(build, host) to how much the logarithm of the median grew: of the last ``LATELY`` over what was before it."""
    lifetimes: int = 0


def newest_pair(first_seen: Mapping[str, datetime], hosts: Mapping[str, int]) -> BuildPair | None:
    """Return the build that came last and the one that most other hosts run; None if there is only one.

    Parameters
    ----------
    first_seen : mapping from build to datetime
    hosts : mapping from build to int
        That run it.
    """
    if len(first_seen) < 2:
        return None
    new = max(first_seen, key=lambda build: (first_seen[build], build))
    base = max((build for build in first_seen if build != new), key=lambda build: (hosts[build], build))
    return BuildPair(base=base, new=new, since=first_seen[new])


def document_of(functions: Sequence[FunctionLevels], labels: Mapping[str, str], *, level: float) -> dict[str, Any]:
    """Return ``specmine.fleet_levels/1``.

    Parameters
    ----------
    functions : sequence of FunctionLevels
    labels : mapping from build to str
        What builds are called.
    level : float
        Of the intervals; of the changes that are stated at most 1 - level are false.
    """
    hosts = {host for each in functions for _, host in each.levels}
    compared = _judged([(each, _compared(each, level)) for each in functions if each.pair is not None], level)
    return {
        "schema": SCHEMA,
        "hosts": len(hosts),
        "hosts_that_stand_out": _outstanding(functions),
        "hosts_that_changed": _changed(functions),
        "builds": [_build_entry(each, found, labels) for each, found in compared],
        "functions": [entry for each in functions for entry in _level_entries(each, labels, level)],
    }


def _compared(each: FunctionLevels, level: float) -> CanaryComparison:
    assert each.pair is not None
    control, canary = (
        {host: value for (build, host), value in each.levels.items() if build == wanted}
        for wanted in (each.pair.base, each.pair.new)
    )
    return compare_canary(control, canary, each.before, level=level)


def _judged(
    compared: Sequence[tuple[FunctionLevels, CanaryComparison]], level: float
) -> list[tuple[FunctionLevels, CanaryComparison]]:
    """Take back changes that so many functions give at random (Benjamini and Hochberg); the largest changes first."""
    tested = [at for at, (_, found) in enumerate(compared) if found.p_value is not None]
    q_of = dict(zip(tested, q_values([compared[at][1].p_value or 0.0 for at in tested]), strict=True))
    kept = []
    for at, (each, found) in enumerate(compared):
        changed = found.finding in (Finding.WORSE, Finding.BETTER)
        kept.append(
            (each, replace(found, finding=Finding.UNDECIDED, reason="so many functions give as much at random"))
            if changed and q_of[at] > 1.0 - level else (each, found)
        )  # fmt: skip
    order = list(Finding)
    return sorted(kept, key=lambda one: (order.index(one[1].finding), -abs(math.log(one[1].ratio or 1.0)), one[0].name))


def _outstanding(functions: Sequence[FunctionLevels]) -> list[dict[str, Any]]:
    levels: dict[tuple[str, str], float] = {}
    for each in functions:
        groups = {build: {host: value for (of, host), value in each.levels.items() if of == build}
                  for build in {of for of, _ in each.levels}}  # fmt: skip
        if each.pair is not None and len(each.before) > len(groups.get(each.pair.base, ())):
            groups[each.pair.base] = dict(each.before)  # more hosts ran it before the new build came
        for build, group in groups.items():
            levels |= {(f"{each.name}\0{each.module}\0{build}", host): value for host, value in group.items()}
    return _host_entries(levels, "is")


def _changed(functions: Sequence[FunctionLevels]) -> list[dict[str, Any]]:
    changes = {
        (f"{each.name}\0{each.module}\0{build}", host): value
        for each in functions
        for (build, host), value in each.changes.items()
    }
    return _host_entries(changes, "became", f" in the last {LATELY // timedelta(minutes=1)} minutes")


def _host_entries(levels: Levels, verb: str, when: str = "") -> list[dict[str, Any]]:
    return [
        {
            "host": each.host, "factor": math.exp(each.log_factor), "functions": each.functions,
            "functions_agreeing": each.slower_in, "text": _host_text(each, verb, when),
        }
        for each in host_factors(levels) if each.stands_out
    ]  # fmt: skip


def _host_text(found: HostFactor, verb: str, when: str) -> str:
    factor, word = math.exp(abs(found.log_factor)), "slower" if found.log_factor > 0 else "faster"
    return (
        f"{found.host} alone {verb} {word}{when}, {factor:.2g} times,"
        f" in {found.slower_in} of {plural(found.functions, 'function')}: the host, not a build"
    )


def _build_entry(each: FunctionLevels, found: CanaryComparison, labels: Mapping[str, str]) -> dict[str, Any]:
    assert each.pair is not None
    return {
        "function": each.name, "module": each.module,
        "base": labels.get(each.pair.base, each.pair.base), "new": labels.get(each.pair.new, each.pair.new),
        "since": each.pair.since.isoformat(), "verdict": found.finding.value, "ratio": found.ratio,
        "interval": list(found.interval) if found.interval else None, "hosts": list(found.hosts),
        "hosts_agreeing": found.agreeing, "method": found.method, "reason": found.reason,
        "text": _build_text(each, found, labels),
    }  # fmt: skip


def _build_text(each: FunctionLevels, found: CanaryComparison, labels: Mapping[str, str]) -> str:
    assert each.pair is not None
    name, build = title(each.name, each.module), labels.get(each.pair.new, each.pair.new)
    if found.finding in (Finding.WORSE, Finding.BETTER) and found.interval is not None:
        number = found.hosts[1]
        of_hosts = f"all {number}" if found.agreeing == number else f"{found.agreeing} of {number}"
        word = "slower" if found.finding is Finding.WORSE else "faster"
        low, high = found.interval
        return (
            f"{name} is {word} on {of_hosts} hosts with build {build}: {found.ratio:.3g} times ({low:.3g}-{high:.3g})"
        )
    return f"{name} with build {build}: {found.finding.value}, {found.reason}"


def _level_entries(each: FunctionLevels, labels: Mapping[str, str], level: float) -> Iterable[dict[str, Any]]:
    for build in sorted({build for build, _ in each.levels}):
        values = [value for (of, _), value in each.levels.items() if of == build]
        found = trimmed_mean(values)
        low, high = found.interval(level) if found is not None else (None, None)
        middle = found.mean if found is not None else sum(values) / len(values)
        seconds = math.exp(middle)
        yield {
            "function": each.name, "module": each.module, "build": labels.get(build, build), "hosts": len(values),
            "lifetimes": each.lifetimes,
            "median": {
                "seconds": seconds,
                "low": math.exp(low) if low is not None else None, "high": math.exp(high) if high is not None else None,
            },
            "between_hosts_ratio": math.exp(found.deviation) - 1.0 if found is not None else None,
            "text": f"{title(each.name, each.module)}: {duration(seconds)} on {plural(len(values), 'host')}",
        }  # fmt: skip
