"""Which experiment a daemon runs next, and when. Pure.

Each experiment has a period. Its position in the period differs from host to host, so that many hosts do not run it at
the same moment. The CPU time is limited: an allowance at the start, then a share of one CPU. An experiment that failed
waits longer each time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from specmine.experiments.types import SECOND, Experiment

HOUR_NS = 3600 * SECOND
ALLOWANCE_S = 15.0
"""CPU seconds for the first results after a start."""
_FIRST_RETRY_NS = 300 * SECOND
PASSING = ("busy-host", "foreign-load", "check", "busy-lock", "throttled", "budget", "uncalibratable", "failed")
"""Reasons that may be gone at the next try."""
_SPREAD_NS = 600 * SECOND
"""The first runs come within this time, one after the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The configuration."""

    names: tuple[str, ...]
    share: float = 0.001
    """CPU time of the load, as a share of one CPU."""
    delay_ns: int = 300 * SECOND
    """Nothing runs this soon after the start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """What the daemon ran since its start."""

    began_ns: int
    spent_s: float = 0.0
    """CPU seconds of load since the start."""
    ran_ns: Mapping[str, int] = field(default_factory=dict)
    """When each was last tried since the start."""
    failures: Mapping[str, int] = field(default_factory=dict)
    """Tries since the last success."""


def available_s(ledger: Ledger, rules: Rules, now_ns: int) -> float:
    """Return the CPU seconds that may be spent now."""
    return ALLOWANCE_S + rules.share * max(0, now_ns - ledger.began_ns) / SECOND - ledger.spent_s


def next_experiment(
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
    """Return the experiment to run now, None if none is due or none is affordable.

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
    affordable_s = available_s(ledger, rules, now_ns)
    for name in rules.names:
        experiment = experiments[name]
        cost = costs_s.get(name, experiment.cost * (cpus / 2 if experiment.cpus == "all" else 1))
        if cost <= affordable_s and _due(experiment, rules, ledger, ages_ns.get(name), seed, now_ns):
            return name
    return None


def _due(experiment: Experiment, rules: Rules, ledger: Ledger, age_ns: int | None, seed: str, now_ns: int) -> bool:
    if experiment.hours < 0:
        return False
    period_ns = int(experiment.hours * HOUR_NS)
    failures, tried_ns = ledger.failures.get(experiment.name, 0), ledger.ran_ns.get(experiment.name)
    if failures and tried_ns is not None:
        longest = period_ns or 24 * HOUR_NS
        return now_ns - tried_ns >= min(longest, _FIRST_RETRY_NS << min(failures - 1, 20))
    if age_ns is None and tried_ns is not None:
        age_ns = now_ns - tried_ns  # it cannot give a value here, which stays true for a while
    if age_ns is None:
        return now_ns - ledger.began_ns >= rules.delay_ns + offset_ns(seed, experiment.name, _SPREAD_NS)
    if period_ns == 0:
        return False
    # the period, up to a quarter shorter or longer; the hash of the seed chooses anew each time
    return age_ns >= period_ns * 3 // 4 + offset_ns(seed, f"{experiment.name}:{age_ns // period_ns}", period_ns // 2)


def offset_ns(seed: str, name: str, within_ns: int) -> int:
    """Return a time from 0 to ``within_ns`` that looks random and is the same for the same seed and name."""
    digest = hashlib.sha256(f"{seed}:{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big") * within_ns >> 64
