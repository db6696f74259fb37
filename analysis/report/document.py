"""A report as JSON, ``specmine.report/1``: each build of a function compared with the one before."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from specmine.analysis.compare.sides import Key
from specmine.analysis.lifetimes.lifetime import FunctionLifetime
from specmine.analysis.lifetimes.selection import RecordedLifetimes
from specmine.mining.regression.comparison import Rule
from specmine.mining.regression.sample import FEWEST_CALLS, SUMMARIES
from specmine.mining.regression.within_lifetime import Within, within_of
from specmine.mining.statistics.student_t import t_quantile
from specmine.store import Where

from .compared_builds import ComparedBuilds, Pair

SCHEMA = "specmine.report/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A build's summary with its interval over lifetimes, ns; no ends if nothing repeats."""

    centre: float
    low: float | None
    high: float | None
    lifetimes: int


def document_of(recorded: RecordedLifetimes, rule: Rule, source: Where) -> dict[str, Any]:
    """Return the numbers of a report: functions by calls, their builds in the order of time, steps between them."""
    observed = recorded.observed
    order = builds_in_order(observed)
    groups: dict[Key, list[FunctionLifetime]] = {}
    for each in observed:
        groups.setdefault(each.key, []).append(each)
    compared = ComparedBuilds(recorded, source, rule, {key: _pairs(group, order) for key, group in groups.items()})
    entries = [_entry(key, group, order, rule, compared) for key, group in groups.items()]
    entries.sort(key=lambda each: (-each["calls"], each["function"], each["module"]))
    return {
        "schema": SCHEMA,
        "source": str(source),
        "rule": {"summary": rule.summary, "level": rule.level, "tolerance": rule.tolerance},
        "builds": [{"build": build, "label": label} for build, label in order.items()],
        "hosts": sorted({each.host for each in observed if each.host}),
        "functions": entries,
        "steps": [compared.facts(pair) for pair in pairwise(order)],
        "machine_code": compared.code_steps(list(pairwise(order))),
    }


def builds_in_order(observed: Sequence[FunctionLifetime]) -> dict[str, str]:
    """Return the label of each build, in the order in which the builds were first observed."""
    first: dict[str, int] = {}
    for each in observed:
        first[each.build] = min(first.get(each.build, each.start_ns), each.start_ns)
    shown = {each.build: each.shown for each in observed}
    return {build: shown[build] for build in sorted(first, key=first.__getitem__)}


def interval_of(group: Sequence[FunctionLifetime], rule: Rule) -> Interval | None:
    """Return the geometric mean of lifetimes' summaries with its t interval; None without a lifetime."""
    values = [SUMMARIES[rule.summary](each.sample) for each in group if each.sample.calls >= FEWEST_CALLS[rule.summary]]
    logs = np.log([value for value in values if value > 0])
    if len(logs) == 0:
        return None
    centre = float(logs.mean())
    if len(logs) == 1:
        return Interval(centre=math.exp(centre), low=None, high=None, lifetimes=1)
    half = t_quantile(0.5 + 0.5 * rule.level, len(logs) - 1.0) * float(logs.std(ddof=1)) / math.sqrt(len(logs))
    return Interval(
        centre=math.exp(centre), low=math.exp(centre - half), high=math.exp(centre + half), lifetimes=len(logs)
    )


def _pairs(group: Sequence[FunctionLifetime], order: Mapping[str, str]) -> list[Pair]:
    """Return the builds of a function to compare: each with the one before, and the last with the first."""
    present = [build for build in order if any(each.build == build for each in group)]
    return [*pairwise(present), *([(present[0], present[-1])] if len(present) > 2 else [])]


def _entry(
    key: Key, group: Sequence[FunctionLifetime], order: Mapping[str, str], rule: Rule, compared: ComparedBuilds
) -> dict[str, Any]:
    by_build = {build: [each for each in group if each.build == build] for build in order}
    present = [build for build in order if by_build[build]]
    pairs = _pairs(group, order)
    steps = [compared.step(pair, key) for pair in pairs[: len(present) - 1]]
    drift = compared.step(pairs[-1], key) if len(present) > 2 else None
    intervals = {build: interval_of(by_build[build], rule) for build in present}
    return {
        "function": key[0],
        "module": key[1],
        "calls": sum(each.sample.calls for each in group),
        "builds": [
            {
                "build": build,
                "label": order[build],
                "lifetimes": each.lifetimes,
                "seconds": each.centre * 1e-9,
                "interval_seconds": [each.low * 1e-9, each.high * 1e-9] if each.low and each.high else None,
                "within": _within(
                    within_of(
                        [one.first_ns for one in by_build[build] if one.first_ns is not None],
                        [one.drawn_ns for one in by_build[build] if one.drawn_ns is not None],
                    )
                ),
            }
            for build, each in intervals.items()
            if each is not None
        ],
        "steps": steps,
        "drift": drift,
    }


def _within(found: Within) -> dict[str, Any]:
    return {
        "lifetimes_in_order": found.ordered,
        "lifetimes_dependent": found.dependent,
        "autocorrelation": [float(f"{each:.4g}") for each in found.autocorrelation],
        "lifetimes_sampled": found.sampled,
        "impact_factor": _finite(found.impact),
        "impact_factor_centred": _finite(found.centred),
    }


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(f"{value:.4g}")
