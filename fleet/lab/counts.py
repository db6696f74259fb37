"""How many builds, runs and calls a benchmark needs: Kalibera's optimal counts, by what a pilot showed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from specmine.mining.comparison.function_comparison import name_of
from specmine.mining.comparison.function_parts import Part, parts_of
from specmine.mining.comparison.plan import Costs, Plan, cautious, planned, variances_of
from specmine.mining.regression.comparison import LifetimeSample
from specmine.mining.regression.sample import mean, sample_of_durations
from specmine.mining.regression.warmup import warmup_calls
from specmine.model.errors import NoData

from .benchmark import MOST_CALLS, Benchmark
from .results import FunctionResult

CERTAINTY = 0.8
"""How surely lifetimes vary no more than the plan allows for."""
FEWEST = 30, 4
"""Calls of a run, and runs, that no plan undercuts."""
DEFAULT_LIFETIMES = 10
_SHORTEST_S = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PilotRun:
    """One run of a pilot, with all its calls."""

    build: str
    making: int
    """Which making of that build."""
    seconds: float
    """From its start to its end."""
    found: Sequence[FunctionResult]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pilot:
    """What was tried before a plan is made."""

    runs: Sequence[PilotRun]
    build_seconds: float = 0.0
    """What making a build costs."""
    makings_differ: bool = False
    """Whether a recipe gave another program each time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Planned:
    function: str
    module: str
    summary: str
    warmup: int
    costs: Costs
    plan: Plan
    lifetimes: int
    """Of the pilot."""


def with_counts(wanted: Benchmark, pilot: Pilot | None, hosts: int) -> tuple[Benchmark, dict[str, Any]]:
    """Return the benchmark with its counts, and the plan as JSON values.

    Parameters
    ----------
    wanted : Benchmark
        Counts that it has already stay.
    pilot : Pilot or None
        None where the counts are given.
    hosts : int
        Which share the runs.

    Raises
    ------
    NoData
        If the pilot shows no variation, or no number of runs would do.

    Notes
    -----
    A function is equivalent only if its median, its mean and each class of its durations are. All are planned for, and
    the most demanding one decides. The variance between lifetimes is an upper limit (``cautious``).
    """
    if pilot is None:
        lifetimes = wanted.lifetimes or DEFAULT_LIFETIMES
        chosen = replace(wanted, lifetimes=lifetimes, warm_up=wanted.warm_up or 0, rebuilds=wanted.rebuilds or 1)
        return chosen, _document(chosen, hosts, (), None)
    groups = _by_function(pilot)
    if not groups:
        raise NoData("the pilot timed no call", remedy="does the program print durations? see docs/lab.md")
    warm_up = wanted.warm_up
    if warm_up is None:
        warm_up = max(_warmup(runs) for runs in groups.values()) if wanted.measure == "printed" else 0
    found = [one for key, runs in groups.items() for one in _of_function(wanted, pilot, key, runs, warm_up, hosts)]
    if not found:
        raise NoData(
            f"no number of runs gives ±{100 * wanted.half_width:.3g} %, as far as the pilot shows",
            remedy="ask for less --precision, or give --lifetimes",
        )
    calls = wanted.calls or max(each.plan.calls for each in found)
    chosen = replace(
        wanted,
        warm_up=warm_up,
        calls=min(calls, MOST_CALLS) if wanted.measure == "printed" else None,
        lifetimes=wanted.lifetimes or max(each.plan.lifetimes for each in found),
        rebuilds=wanted.rebuilds or max(each.plan.builds for each in found),
    )
    return chosen, _document(chosen, hosts, found, pilot)


def _by_function(pilot: Pilot) -> dict[tuple[str, str], list[tuple[PilotRun, FunctionResult]]]:
    groups: dict[tuple[str, str], list[tuple[PilotRun, FunctionResult]]] = {}
    for run in pilot.runs:
        for each in run.found:
            groups.setdefault((each.function, each.module), []).append((run, each))
    return {key: runs for key, runs in groups.items() if len({run.build for run, _ in runs}) > 1}


def _warmup(runs: Sequence[tuple[PilotRun, FunctionResult]]) -> int:
    """Return the calls that most runs need to come to rest, by the rule that all comparisons use."""
    cuts = [warmup_calls(each.durations_ns) for _, each in runs if each.durations_ns is not None]
    return int(np.ceil(np.quantile(cuts, 0.75))) if cuts else 0


def _of_function(
    wanted: Benchmark,
    pilot: Pilot,
    key: tuple[str, str],
    runs: Sequence[tuple[PilotRun, FunctionResult]],
    warm_up: int,
    hosts: int,
) -> list[_Planned]:
    lifetimes: dict[str, list[LifetimeSample]] = {}
    makings: dict[str, int] = {}
    lengths, call_seconds = [], []
    for at, (run, each) in enumerate(runs):
        sample = each.sample if each.durations_ns is None else sample_of_durations(each.durations_ns[warm_up:])
        if not sample.calls:
            continue
        lengths.append(sample.calls)
        call_seconds.append(1.0 / each.rate if each.rate else mean(sample) * 1e-9)
        makings[str(at)] = run.making
        # versions differ by more than making them anew, so makings are compared inside their version
        lifetimes.setdefault(run.build, []).append(LifetimeSample(lifetime=str(at), host=run.build, sample=sample))
    base, *others = [each.label for each in wanted.builds if each.label in lifetimes]
    call = wanted.call or max(float(np.median(call_seconds or [0.0])), 1e-9)
    costs = Costs(
        build=wanted.build_cost if wanted.build_cost is not None else pilot.build_seconds,
        restart=wanted.restart if wanted.restart is not None else _restart(pilot, call_seconds, runs),
        warmup=warm_up * call,
        call=call,
    )
    fixed = wanted.calls
    if fixed is None and (wanted.measure == "mined" or not wanted.told_calls):
        fixed = min(lengths)
    found = []
    for part in [one for other in others for one in parts_of(lifetimes[base], lifetimes[other], wanted.rule)]:
        share = sum(part.shares) / 2.0
        made = _of_part(wanted, pilot, part, makings, replace(costs, call=call / share),
                        hosts, None if fixed is None else max(1, int(fixed * share)))  # fmt: skip
        if made is not None:
            whole = replace(made, calls=fixed or math.ceil(made.calls / share))
            found.append(_Planned(function=key[0], module=key[1], summary=name_of(part, wanted.rule) or part.summary,
                                  warmup=warm_up, costs=costs, plan=whole, lifetimes=len(lengths)))  # fmt: skip
    return found


def _of_part(
    wanted: Benchmark,
    pilot: Pilot,
    part: Part,
    makings: Mapping[str, int],
    costs: Costs,
    hosts: int,
    fixed: int | None,
) -> Plan | None:
    """Return the plan for some calls of a function; None if nothing is known of how they vary, or nothing will do."""
    builds: dict[tuple[str, str], list[LifetimeSample]] = {}
    for each in (*part.base, *part.new):
        builds.setdefault((each.host, str(makings[each.lifetime])), []).append(each)
    known = variances_of(builds, part.summary, rebuilds=pilot.makings_differ)
    if known is None:
        return None
    return planned(cautious(known, CERTAINTY), costs, wanted.half_width, wanted.level, FEWEST, hosts=hosts,
                   fixed_calls=fixed)  # fmt: skip


def _restart(pilot: Pilot, call_seconds: Sequence[float], runs: Sequence[tuple[PilotRun, FunctionResult]]) -> float:
    """Return what a run takes beside its calls of this function."""
    rest = [run.seconds - each.sample.calls * seconds for (run, each), seconds in zip(runs, call_seconds, strict=False)]
    return max(float(np.median(rest)) if rest else 0.0, _SHORTEST_S) if pilot.runs else 0.0


def _document(chosen: Benchmark, hosts: int, found: Sequence[_Planned], pilot: Pilot | None) -> dict[str, Any]:
    assert chosen.lifetimes is not None
    assert chosen.rebuilds is not None
    sides = len(chosen.builds)
    decisive = max(found, key=lambda each: (each.plan.builds, each.plan.lifetimes, each.plan.calls), default=None)
    seconds = None
    if decisive is not None:
        costs = decisive.costs
        run = costs.restart + costs.warmup + (chosen.calls or decisive.plan.calls) * costs.call
        makings = costs.build if all(each.recipe for each in chosen.builds) else 0.0
        seconds = sides * chosen.rebuilds * (makings + chosen.lifetimes * run)
    return {
        "builds": chosen.rebuilds,
        "lifetimes": chosen.lifetimes,
        "calls": chosen.calls,
        "warmup_calls": chosen.warm_up,
        "hosts": hosts,
        "precision": chosen.half_width,
        "seconds": _short(seconds),
        "pilot_runs": len(pilot.runs) if pilot is not None else 0,
        "makings_differ": pilot.makings_differ if pilot is not None else None,
        "decided_by": _entry(decisive) if decisive is not None else None,
        "functions": [_entry(each) for each in found],
        "notes": _notes(chosen, hosts, pilot),
    }


def _entry(each: _Planned) -> Mapping[str, Any]:
    return {
        "function": each.function,
        "module": each.module,
        "part": each.summary,
        "builds": each.plan.builds,
        "lifetimes": each.plan.lifetimes,
        "calls": each.plan.calls,
        "precision": _short(each.plan.half_width),
        "restart_seconds": _short(each.costs.restart),
        "call_seconds": _short(each.costs.call),
        "build_seconds": _short(each.costs.build),
        "pilot_lifetimes": each.lifetimes,
    }


def _notes(chosen: Benchmark, hosts: int, pilot: Pilot | None) -> list[str]:
    notes = []
    if pilot is None:
        notes.append("the counts were given, no pilot was made: the precision is not known before it has run")
    if hosts >= 3:
        notes.append("from three hosts on hosts are what repeats: how they differ in the change is not in the plan")
    if pilot is not None and not chosen.told_calls and chosen.measure == "printed":
        notes.append("no command has {calls}: the runs are as long as those of the pilot")
    if pilot is not None and all(each.recipe for each in chosen.builds) and not pilot.makings_differ:
        notes.append("each recipe made the same program each time: one build of each is enough")
    return notes


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")
