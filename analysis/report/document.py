"""A report as JSON, ``specmine.report/1``: each build of a function compared with the one before."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from specmine.analysis.compare.code_diff import MachineCode
from specmine.analysis.compare.reached_code import ReachedCode
from specmine.analysis.documents import is_store
from specmine.analysis.lifetimes.lifetime import FunctionLifetime
from specmine.mining.regression.attribution import attribute
from specmine.mining.regression.comparison import Change, Rule, compare
from specmine.mining.regression.sample import FEWEST_CALLS, SUMMARIES
from specmine.mining.regression.within_lifetime import Within, within_of
from specmine.mining.statistics.student_t import t_quantile

SCHEMA = "specmine.report/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A build's summary with its interval over lifetimes, ns; no ends if nothing repeats."""

    centre: float
    low: float | None
    high: float | None
    lifetimes: int


def document_of(observed: Sequence[FunctionLifetime], rule: Rule, source: Path) -> dict[str, Any]:
    """Return the numbers of a report: functions by calls, their builds in the order of time, steps between them."""
    order = builds_in_order(observed)
    groups: dict[tuple[str, str], list[FunctionLifetime]] = {}
    for each in observed:
        groups.setdefault(each.key, []).append(each)
    entries = [_entry(key, group, order, rule) for key, group in groups.items()]
    entries.sort(key=lambda each: (-each["calls"], each["function"], each["module"]))
    return {
        "schema": SCHEMA,
        "source": str(source),
        "rule": {"summary": rule.summary, "level": rule.level, "tolerance": rule.tolerance},
        "builds": [{"build": build, "label": label} for build, label in order.items()],
        "hosts": sorted({each.host for each in observed if each.host}),
        "functions": entries,
        "machine_code": _code_steps(source, order, entries),
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


def _entry(
    key: tuple[str, str], group: Sequence[FunctionLifetime], order: Mapping[str, str], rule: Rule
) -> dict[str, Any]:
    by_build = {build: [each for each in group if each.build == build] for build in order}
    present = [build for build in order if by_build[build]]
    steps = []
    for base, new in pairwise(present):
        steps.append(_step(by_build, base, new, rule))
    drift = _step(by_build, present[0], present[-1], rule) if len(present) > 2 else None
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


def _step(by_build: Mapping[str, Sequence[FunctionLifetime]], base: str, new: str, rule: Rule) -> dict[str, Any]:
    """Compare two builds, and say whose fault a change is."""
    sides = [[each.as_sample() for each in by_build[build]] for build in (base, new)]
    found = compare(sides[0], sides[1], rule)
    estimate = found.estimate
    explained = attribute(sides[0], sides[1], rule) if found.verdict in (Change.WORSE, Change.BETTER) else None
    return {
        "base": base,
        "new": new,
        "verdict": found.verdict.value,
        "ratio": float(f"{estimate.ratio:.6g}") if estimate else None,
        "interval": [float(f"{each:.6g}") for each in (estimate.low, estimate.high)] if estimate else None,
        "lifetimes": list(found.lifetimes),
        "needed_lifetimes": found.needed,
        "reason": found.reason,
        "change": {"kinds": list(explained.kinds), "cause": explained.cause, "reason": explained.reason}
        if explained
        else None,
    }


def _code_steps(file: Path, order: Mapping[str, str], functions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return for each build of a store and the one before which machine code differs, with the suspects by rank."""
    if str(file) == "-" or not is_store(file):
        return []
    reached = ReachedCode(file)
    steps = []
    for base, new in pairwise(order):
        worse = {
            (each["function"], each["module"]): float(step["ratio"])
            for each in functions
            for step in each["steps"]
            if (step["base"], step["new"], step["verdict"]) == (base, new, Change.WORSE.value)
        }
        code = MachineCode.of_builds(reached, {base}, {new}, worse)
        steps.append({"base": base, "new": new, **code.document()})
    return steps
