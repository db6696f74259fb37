"""Of which kind the time is by which hosts differ: from the splits of what was observed in the last hour."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime

import numpy as np

from specmine.fleet.function_levels import LATELY
from specmine.fleet.outlying_hosts import OutlyingHosts
from specmine.fleet.sums import times_of_splits
from specmine.mining.fleet.host_factors import HostFactor
from specmine.mining.fleet.panel import drawn
from specmine.mining.fleet.parts_of_time import PartsOfTime, mean_parts, shares_of_difference

from .connecting import Connection

OTHERS = 5
"""Hosts, by lot, with which one that stands out is compared."""
_Times = dict[tuple[int, bool], dict[str, PartsOfTime]]
"""By host, and whether it was observed lately; then by function."""


def with_times(db: Connection, hosts: OutlyingHosts, names: Mapping[int, str], lately: datetime) -> OutlyingHosts:
    """Return the hosts with what their difference is, where it is known.

    Parameters
    ----------
    db : Connection
    hosts : OutlyingHosts
    names : mapping from int to str
        Of all hosts that were judged, by number.
    lately : datetime
        What was observed after this is new.
    """
    if not hosts.standing and not hosts.changed:
        return hosts
    numbers = {name: number for number, name in names.items()}
    named = {each.host for each in (*hosts.standing, *hosts.changed)}
    others = [numbers[each] for each in drawn(sorted(numbers.keys() - named), OTHERS)] if hosts.standing else []
    times = _read(db, [*(numbers[each] for each in named), *others], lately)
    usual = _mean_of(times, others)
    of_level = {each.host: _shares(each, times.get((numbers[each.host], True), {}), usual) for each in hosts.standing}
    of_change = {
        each.host: _shares(each, *(times.get((numbers[each.host], late), {}) for late in (True, False)))
        for each in hosts.changed
    }
    return replace(
        hosts,
        of_level={host: each for host, each in of_level.items() if each is not None},
        of_change={host: each for host, each in of_change.items() if each is not None},
    )


def _shares(
    found: HostFactor, these: Mapping[str, PartsOfTime], those: Mapping[str, PartsOfTime]
) -> PartsOfTime | None:
    return shares_of_difference(these, those, slower=found.log_factor > 0)


def _mean_of(times: _Times, hosts: Collection[int]) -> dict[str, PartsOfTime]:
    """Return the mean over hosts of each function, of what was observed lately."""
    found: dict[str, list[PartsOfTime]] = {}
    for host in hosts:
        for function, parts in times.get((host, True), {}).items():
            found.setdefault(function, []).append(parts)
    return {function: mean_parts(parts) for function, parts in found.items()}


def _read(db: Connection, hosts: list[int], lately: datetime) -> _Times:
    """Return what calls did of their time, by function of a build."""
    rows = db.execute(
        "SELECT function_id, host_id, ends_at > %(lately)s AS late, split FROM observation"
        " WHERE ends_at > %(earliest)s AND host_id = ANY(%(hosts)s) AND split IS NOT NULL",
        {"lately": lately, "earliest": lately - LATELY, "hosts": hosts},
        binary=True,
    ).fetchall()
    sums: dict[tuple[int, bool, str], np.ndarray] = {}
    for row, times in zip(rows, times_of_splits([row["split"] for row in rows]), strict=True):
        key = row["host_id"], row["late"], str(row["function_id"])
        sums[key] = sums.get(key, 0.0) + times
    found: _Times = {}
    for (host, late, function), (running, waiting, blocked, calls) in sums.items():
        if calls > 0:
            parts = PartsOfTime(running=running / calls, waiting=waiting / calls, blocked=blocked / calls)
            found.setdefault((host, late), {})[function] = parts
    return found
