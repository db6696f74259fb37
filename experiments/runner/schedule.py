"""Which experiment a daemon runs next, and whether it may now. Pure.

Each has its period of hours and a place in it that differs from host to host, so that a fleet does not run in step.
What runs is paid from a purse: an allowance at the start, then a share of one CPU. One that failed waits longer each
time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from specmine.experiments.types import SECOND, Experiment

HOUR_NS = 3600 * SECOND
ALLOWANCE_S = 15.0
"""CPU seconds for the first results after a start."""
_FIRST_RETRY_NS = 300 * SECOND
PASSING = ("busy-host", "foreign-load", "check", "busy-lock", "throttled", "budget", "uncalibratable", "failed")
"""Reasons that may have gone when it is tried again."""
_SPREAD_NS = 600 * SECOND
"""The first runs come within this time, one after the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the configuration says."""

    names: tuple[str, ...]
    share: float = 0.001
    """CPU time of the load, as a share of one CPU."""
    delay_ns: int = 300 * SECOND
    """Nothing runs this soon after the start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """What the daemon did so far."""

    began_ns: int
    spent_s: float = 0.0
    """CPU seconds of load since the start."""
    ran_ns: Mapping[str, int] = field(default_factory=dict)
    """When each was last tried in this life."""
    failures: Mapping[str, int] = field(default_factory=dict)
    """Tries since the last success."""


def left_s(ledger: Ledger, rules: Rules, now_ns: int) -> float:
    """Return the CPU seconds that may be spent now."""
    return ALLOWANCE_S + rules.share * max(0, now_ns - ledger.began_ns) / SECOND - ledger.spent_s


def next_one(
    experiments: Mapping[str, Experiment],
    rules: Rules,
    ledger: Ledger,
    ages_ns: Mapping[str, int],
    *,
    costs_s: Mapping[str, float],
    cpus: int,
    seed: str,
    now_ns: int,
) -> str | None:
    """Return the experiment to run now, None if none is due or none fits the purse.

    Parameters
    ----------
    experiments : mapping
        By name.
    rules, ledger
        The configuration, and what was done.
    ages_ns : mapping
        Age of the last valid result that still holds on this host, by name; missing: there is none.
    costs_s : mapping
        CPU seconds of the last run, by name; where missing the experiment's own estimate counts.
    cpus : int
        CPUs of this host: what loads all of them costs by their number.
    seed : str
        Differs from host to host, the same for all of a boot.
    now_ns : int
        CLOCK_MONOTONIC.
    """
    if now_ns - ledger.began_ns < rules.delay_ns:
        return None
    purse = left_s(ledger, rules, now_ns)
    for name in rules.names:
        each = experiments[name]
        cost = costs_s.get(name, each.cost * (cpus / 2 if each.cpus == "all" else 1))
        if cost <= purse and _due(each, rules, ledger, ages_ns.get(name), seed, now_ns):
            return name
    return None


def _due(each: Experiment, rules: Rules, ledger: Ledger, age_ns: int | None, seed: str, now_ns: int) -> bool:
    if each.hours < 0:
        return False
    period_ns = int(each.hours * HOUR_NS)
    failures, tried_ns = ledger.failures.get(each.name, 0), ledger.ran_ns.get(each.name)
    if failures and tried_ns is not None:
        longest = period_ns or 24 * HOUR_NS
        return now_ns - tried_ns >= min(longest, _FIRST_RETRY_NS << min(failures - 1, 20))
    if age_ns is None and tried_ns is not None:
        age_ns = now_ns - tried_ns  # it cannot give a value here: that is known for a while too
    if age_ns is None:
        return now_ns - ledger.began_ns >= rules.delay_ns + offset_ns(seed, each.name, _SPREAD_NS)
    if period_ns == 0:
        return False
    # a quarter of the period more or less, another one each time the seed's hash says so
    return age_ns >= period_ns * 3 // 4 + offset_ns(seed, f"{each.name}:{age_ns // period_ns}", period_ns // 2)


def offset_ns(seed: str, name: str, within_ns: int) -> int:
    """Return a time from 0 to ``within_ns`` that looks random and is the same for the same seed and name."""
    digest = hashlib.sha256(f"{seed}:{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big") * within_ns >> 64


def marked(windows: Sequence[Mapping[str, Any]], boot_id: str, start_ns: int, end_ns: int) -> tuple[str, ...]:
    """Return the experiments that ran during a window of an observation, times of CLOCK_MONOTONIC of its boot."""
    hit = {
        str(each["name"])
        for each in windows
        if each["boot_id"] == boot_id and each["window_ns"][0] < end_ns and each["window_ns"][1] > start_ns
    }
    return tuple(sorted(hit))
