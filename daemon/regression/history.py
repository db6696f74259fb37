"""The builds of a program compared lifetime by lifetime, and the alarms that follow: pure.

A verdict stays valid however often it is asked for (``mining/regression/sequential_test.py``). Needs numpy only.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from specmine.daemon.config.settings import SECOND
from specmine.mining.regression.acknowledgement import Acknowledgement, apply_acknowledgement
from specmine.mining.regression.alarm import Alarm, Status, causes, discoveries, next_alarm
from specmine.mining.regression.comparison import Change
from specmine.mining.regression.sequential_test import Sequential, begin, interval, verdict, with_lifetime
from specmine.model.text import title

from .acknowledgements import key_of

LEVEL = 0.99
TOLERANCE = 0.02
FALSE_RATE = 0.05
"""Of all changes reported on a host within a month, at most this share is false."""
MONTH_NS = 30 * 86_400 * SECOND
MOST = 2_000
"""Comparisons held at most; the oldest go first."""
MOST_BUILDS, MOST_MEDIANS = 8, 400
"""Builds of a function held at most, the first and the newest; lifetimes of each, the newest: base of a comparison."""

_OPEN = frozenset({Status.RAISED, Status.ACKNOWLEDGED})
Name = tuple[str, str]
"""Function and module: they identify it in another build."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LifetimeMedian:
    """The median of a function in one lifetime that counts from now on."""

    name: Name
    function: str
    build: str
    lifetime: str
    median_ns: float
    utc_ns: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BuildComparison:
    """The comparison of a function between two builds so far."""

    name: Name
    function: str
    base: str
    new: str
    state: Sequential
    alarm: Alarm = field(default_factory=Alarm)
    verdict: Change = Change.UNDECIDED
    utc_ns: int = 0
    acknowledgement: Acknowledgement | None = None

    @property
    def key(self) -> str:
        """Identifies the comparison."""
        return key_of({"function": self.name[0], "module": self.name[1], "base": self.base, "new": self.new})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BuildHistory:
    """All lifetimes that count, and the comparisons between their builds."""

    medians: Mapping[Name, Mapping[str, tuple[float, ...]]] = field(default_factory=dict)
    """Function to build to the medians of its lifetimes, builds in the order in which they were first seen."""
    comparisons: Mapping[str, BuildComparison] = field(default_factory=dict)
    month: int = 0
    tested: frozenset[str] = frozenset()
    """Comparisons tested this month."""

    @property
    def builds(self) -> frozenset[tuple[Name, str]]:
        """Functions, and builds of them, that are compared: those of the newest, and those with an alarm."""
        alarmed = [each for each in self.comparisons.values() if each.alarm.status is not Status.QUIET]
        return frozenset(
            {
                *((name, build) for name, builds in self.medians.items() for build in builds),
                *((each.name, build) for each in alarmed for build in (each.base, each.new)),
            }
        )


def with_median(history: BuildHistory, one: LifetimeMedian) -> BuildHistory:
    """Return the history after one more lifetime. A build is compared with the one before, and with the first.

    The second detects slow drift: many builds, each a little slower than the last.
    """
    month = one.utc_ns // MONTH_NS
    if month != history.month:
        history = replace(history, month=month, tested=frozenset())
    builds = dict(history.medians.get(one.name, {}))
    earlier = [build for build in builds if build != one.build]
    is_latest = one.build not in builds or list(builds)[-1] == one.build
    comparisons = dict(history.comparisons)
    touched = []
    for base in dict.fromkeys([*earlier[-1:], *earlier[:1]]) if is_latest else ():
        fresh = BuildComparison(
            name=one.name, function=one.function, base=base, new=one.build, state=begin(builds[base])
        )
        before = comparisons.get(fresh.key, fresh)
        comparisons[fresh.key] = replace(
            before, state=with_lifetime(before.state, one.median_ns), utc_ns=one.utc_ns, function=one.function
        )
        touched.append(fresh.key)
    builds[one.build] = (*builds.get(one.build, ())[1 - MOST_MEDIANS :], one.median_ns)
    for build in list(builds)[1 : max(1, len(builds) - MOST_BUILDS + 1)]:
        del builds[build]
    tested = history.tested | set(touched)
    comparisons = {key: each for key, each in comparisons.items() if each.name != one.name or _is_kept(each, builds)}
    comparisons = _with_verdicts(comparisons, touched, tested)
    for key in list(comparisons)[: max(0, len(comparisons) - MOST)]:
        del comparisons[key]
    return replace(history, medians={**history.medians, one.name: builds}, comparisons=comparisons, tested=tested)


def entries(history: BuildHistory, calls: Collection[tuple[Name, Name]] = ()) -> list[dict[str, Any]]:
    """Return the comparisons as JSON values: those with an alarm first, then by name, the newest first.

    Parameters
    ----------
    history : BuildHistory
    calls : collection of (caller, callee)
        Call edges seen. Of functions that call each other and were raised between the same builds only the
        deepest is a ``cause``; the others are in its ``explains``.
    """
    explained: dict[str, dict[str, tuple[str, ...]]] = {}
    named = [(title(*caller), title(*callee)) for caller, callee in calls]
    for pair in {(each.base, each.new) for each in history.comparisons.values()}:
        raised = [each for each in history.comparisons.values()
                  if (each.base, each.new) == pair and each.alarm.status in _OPEN]  # fmt: skip
        explained["\0".join(pair)] = causes({title(*each.name) for each in raised}, named)
    found = sorted(
        history.comparisons.values(),
        key=lambda each: (each.alarm.status is Status.QUIET, each.name, -each.utc_ns, each.base, each.new),
    )
    return [entry_of(each, explained[f"{each.base}\0{each.new}"].get(title(*each.name))) for each in found]


def _with_verdicts(
    comparisons: Mapping[str, BuildComparison], touched: Iterable[str], tested: frozenset[str]
) -> dict[str, BuildComparison]:
    """Return the comparisons with new verdicts, and with alarms at the stated rate."""
    result = dict(comparisons)
    alarms = {key: result[key].alarm for key in tested if key in result}
    evidence = {key: result[key].state.log_e for key in tested if key in result}
    found = discoveries(alarms, evidence, len(tested), FALSE_RATE)
    for key in touched:
        each = result[key]
        change = verdict(each.state, LEVEL, TOLERANCE)
        alarm = next_alarm(each.alarm, change, each.state.log_e, discovered=key in found, now_ns=each.utc_ns)
        known = each.acknowledgement or _earlier_acknowledgement(each, result)
        alarm, known = apply_acknowledgement(alarm, known, interval(each.state, LEVEL))
        result[key] = replace(each, verdict=change, alarm=alarm, acknowledgement=known)
    return result


def _is_kept(each: BuildComparison, builds: Collection[str]) -> bool:
    """Tell whether a comparison is of builds that are still known, or says something."""
    said = each.alarm.status is not Status.QUIET or each.acknowledgement is not None
    return said or (each.base in builds and each.new in builds)


def _earlier_acknowledgement(
    each: BuildComparison, comparisons: Mapping[str, BuildComparison]
) -> Acknowledgement | None:
    """Return what was acknowledged of the function between the same base and an earlier build."""
    found = [
        other.acknowledgement for other in comparisons.values() if (other.name, other.base) == (each.name, each.base)
    ]
    return next((known for known in reversed(found) if known is not None), None)


def with_acknowledgement(history: BuildHistory, keys: Collection[str], known: Acknowledgement | None) -> BuildHistory:
    """Acknowledge the alarms of some comparisons; None undoes that."""
    comparisons = dict(history.comparisons)
    for key in keys:
        each = comparisons.get(key)
        if each is not None:
            alarm, valid = apply_acknowledgement(each.alarm, known, interval(each.state, LEVEL))
            comparisons[key] = replace(each, alarm=alarm, acknowledgement=valid)
    return replace(history, comparisons=comparisons)


def entry_of(each: BuildComparison, explains: Sequence[str] | None = None) -> dict[str, Any]:
    """Return a comparison as JSON values; ``explains``: what it is the cause of, None if it is none."""
    bounds = interval(each.state, LEVEL)
    return {
        "function": each.name[0],
        "module": each.name[1],
        "base": each.base,
        "new": each.new,
        "verdict": each.verdict.value,
        "alarm": each.alarm.status.value,
        "direction": each.alarm.direction.value,
        "acknowledged": None
        if each.acknowledgement is None
        else {
            "ratio": each.acknowledgement.ratio,
            "utc_ns": each.acknowledgement.utc_ns,
            "note": each.acknowledgement.note,
        },
        "cause": explains is not None,
        "explains": list(explains or ()),
        "ratio": float(np.exp(each.state.log_ratio)),
        "interval": list(bounds) if bounds else None,
        "level": LEVEL,
        "lifetimes": list(each.state.lifetimes),
        "log_e": each.state.log_e,
    }
