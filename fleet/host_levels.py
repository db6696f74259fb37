"""Functions over hosts: how long they take, which hosts stand out, and whether a new build is slower than the old one.

Pure: from the median of each function, build and host to ``specmine.fleet_levels/1``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from specmine.mining.fleet.canary import CanaryComparison, Finding, compare_canary
from specmine.mining.fleet.trimmed import trimmed_mean
from specmine.mining.regression.false_discovery_rate import q_values
from specmine.model.text import duration, plural, title

from .function_levels import FunctionLevels
from .outlying_hosts import OutlyingHosts, entry_of_change, entry_of_level

SCHEMA = "specmine.fleet_levels/1"


def document_of(
    functions: Sequence[FunctionLevels], labels: Mapping[str, str], hosts: OutlyingHosts, *, level: float
) -> dict[str, Any]:
    """Return ``specmine.fleet_levels/1``.

    Parameters
    ----------
    functions : sequence of FunctionLevels
    labels : mapping from build to str
        What builds are called.
    hosts : OutlyingHosts
    level : float
        Of the intervals; of the changes that are stated at most 1 - level are false.
    """
    compared = _judged([(each, _compared(each, level)) for each in functions if each.pair is not None], level)
    return {
        "schema": SCHEMA,
        "hosts": len({host for each in functions for _, host in each.levels}),
        "hosts_that_stand_out": [entry_of_level(each, hosts.of_level) for each in hosts.standing],
        "hosts_that_changed": [entry_of_change(each, hosts.of_change) for each in hosts.changed],
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
