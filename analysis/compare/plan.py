"""A plan of a comparison as JSON, ``specmine.plan/1``: how many builds, restarts and calls each function needs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from specmine.analysis.lifetimes.lifetime import FunctionLifetime
from specmine.mining.comparison.plan import Costs, Plan, Variances, planned, variances_of
from specmine.mining.regression.comparison import LifetimeSample
from specmine.mining.regression.sample import mean

from .part_entries import finite

SCHEMA = "specmine.plan/1"
FEWEST = 30, 3
"""Calls of a lifetime and lifetimes of a build that no plan undercuts: variances must be known again next time."""
_RELIABLE = 6
"""A plan from fewer lifetimes says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """What a user wants, and what things cost; None: as observed."""

    summary: str
    precision: float
    level: float
    rebuilds: bool
    build_seconds: float
    restart_seconds: float
    warmup_seconds: float | None
    call_seconds: float | None


def plan_document(observed: Sequence[FunctionLifetime], request: PlanRequest, source: Path) -> dict[str, Any]:
    """Return the plan of each function, sorted by calls, then name, and one for all of them together."""
    groups: dict[tuple[str, str], list[FunctionLifetime]] = {}
    for each in observed:
        groups.setdefault(each.key, []).append(each)
    entries = [_entry(key, group, request) for key, group in groups.items()]
    entries.sort(key=lambda each: (-each["calls"], each["function"], each["module"]))
    return {
        "schema": SCHEMA,
        "source": str(source),
        "summary": request.summary,
        "precision": request.precision,
        "level": request.level,
        "rebuilds": request.rebuilds,
        "build_seconds": request.build_seconds if request.rebuilds else None,
        "restart_seconds": request.restart_seconds,
        "functions": entries,
        "plan": _together([each for each in entries if each["plan"]], request),
    }


def _entry(key: tuple[str, str], group: Sequence[FunctionLifetime], request: PlanRequest) -> dict[str, Any]:
    builds: dict[tuple[str, str], list[LifetimeSample]] = {}
    for each in group:
        builds.setdefault((each.host, each.build), []).append(each.as_sample())
    found = variances_of(builds, request.summary, rebuilds=request.rebuilds)
    costs = _costs(group, request)
    made = planned(found, costs, request.precision, request.level, FEWEST) if found is not None else None
    return {
        "function": key[0],
        "module": key[1],
        "calls": sum(each.sample.calls for each in group),
        "lifetimes": len(group),
        "builds": len({each.build for each in group}),
        "call_seconds": finite(costs.call),
        "warmup_seconds": finite(costs.warmup),
        "variances": _variances(found) if found is not None else None,
        "optimal": {
            "calls": _limited(made.optimal.rounded[0]),
            "lifetimes": _limited(made.optimal.rounded[1]) if request.rebuilds else None,
        }
        if made is not None
        else None,
        "plan": _plan(made) if made is not None else None,
        "reason": _reason(found, made, request),
    }


def _costs(group: Sequence[FunctionLifetime], request: PlanRequest) -> Costs:
    """Return what things cost: calls come at the rate that was observed, or one after the other."""
    rates = [each.rate for each in group if each.rate]
    means = [mean(each.sample) * 1e-9 for each in group if each.sample.calls]
    usual = 1.0 / float(np.median(rates)) if rates else float(np.median(means or [1e-6]))
    call = request.call_seconds or max(usual, 1e-9)
    warmup = request.warmup_seconds
    if warmup is None:
        warmup = call * float(np.median([each.warmup for each in group]))
    return Costs(
        build=request.build_seconds if request.rebuilds else 0.0,
        restart=request.restart_seconds,
        warmup=warmup,
        call=call,
    )


def _variances(found: Variances) -> dict[str, float | None]:
    return {"call": finite(found.call), "lifetime": finite(found.lifetime), "build": finite(found.build)}


def _plan(made: Plan) -> dict[str, Any]:
    return {
        "builds": made.builds,
        "lifetimes": made.lifetimes,
        "calls": made.calls,
        "precision": finite(made.half_width),
        "seconds": finite(made.seconds),
    }


def _limited(value: float) -> int | None:
    """Return a count, None where nothing limits it."""
    return int(value) if math.isfinite(value) else None


def _reason(found: Variances | None, made: Plan | None, request: PlanRequest) -> str | None:
    if found is None:
        return "no build has two lifetimes with it: run each build at least twice"
    if made is None:
        return f"lifetimes differ so much that no number of them gives {100 * request.precision:.3g} %"
    if found.lifetimes < _RELIABLE:
        return f"it rests on {found.lifetimes} lifetimes: how they differ is hardly known yet"
    if request.rebuilds and found.builds < 2:
        return "one build only: what rebuilding changes is not known"
    if found.lifetime <= 0.0:
        return "lifetimes do not differ beyond their calls: longer ones serve as well as more of them"
    return None


def _together(entries: Sequence[Mapping[str, Any]], request: PlanRequest) -> dict[str, Any] | None:
    """Return what serves all functions: as many builds and lifetimes as the most demanding one, each long enough."""
    if not entries:
        return None
    builds, lifetimes = (max(each["plan"][name] for each in entries) for name in ("builds", "lifetimes"))
    lengths = [each["warmup_seconds"] + each["plan"]["calls"] * each["call_seconds"] for each in entries]
    length = max(lengths)
    whole = builds * (
        (request.build_seconds if request.rebuilds else 0.0) + lifetimes * (request.restart_seconds + length)
    )
    return {
        "builds": builds,
        "lifetimes": lifetimes,
        "lifetime_seconds": finite(length),
        "seconds": finite(whole),
        "longest": entries[lengths.index(length)]["function"],
    }
