"""What virtualisation costs: the same work here and on a reference machine, and what other load makes of it.

VIRTUALIZATION.01 and .02 of the thesis (sections 6.3 and 6.4). The work is fixed in units, never calibrated here:
calibrating would hide the overhead. The result of ``virtualization-constant`` on a bare machine of the same hardware
is the reference for the same experiment in a virtual one. Without a reference there is no overhead to state; then the
best times known of this host show its drift.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from specmine.experiments.types import Check, Context, Experiment, Finding, Host, Kind, Load, LoadRun, Step, Task
from specmine.model.function import Reason

from .regression_tree import grow, leaves
from .statistics import SAME_SPEED, quantiles, significant, speed_kept, spread

_UNITS: dict[Kind, int] = {"integer": 3_500_000, "float": 400_000, "sort": 120, "memory": 7_000}
"""About a millisecond each on a machine of 2020."""
WORK = "native-2"
"""Name of the fixed work: times of other work cannot be compared with its."""
_SECONDS = 0.25
_BLOCK = 1 << 20
_DISK_TIMES = 60
_TAME = {"cpu": 0.10, "memory": 0.15, "disk": 0.50}
"""Largest spread (interquartile range over mean) that is believed; CPU and disk after the thesis, section 6.3.4."""

Resource = tuple[str, Step]


def resources(context: Context) -> tuple[Resource, ...]:
    """Return the work by resource; the disk only where a folder was given for it."""
    found: list[Resource] = [(kind, Step(kind=kind, amount=units)) for kind, units in _UNITS.items()]
    if context.parameters["disk"]:
        found += [("read", Step(kind="read", amount=_BLOCK)), ("write", Step(kind="write", amount=_BLOCK))]
    return tuple(found)


def plan_constant(context: Context, runs: tuple[LoadRun, ...]) -> Load | None:
    """Time the fixed work of each resource, alone; at last that of the first again: did the CPU keep its speed?"""
    works = resources(context)
    if len(runs) > len(works):
        return None
    name, step = works[len(runs) % len(works)]
    disk = step.kind in ("read", "write")
    timed = Task(
        name="timed",
        steps=(step,),
        sensor="times",
        leads=True,
        cpu=context.cpus[0],
        iterations=_DISK_TIMES if disk else 0,
        seconds=2.0 if disk else _SECONDS,
    )
    return Load(tasks=(timed,), label=name)


def derive_constant(context: Context, runs: tuple[LoadRun, ...]) -> Finding:
    """Return the overhead of the CPU: time here over time on the reference machine, for the same work."""
    *firsts, again = runs
    times = {run.load.label: run.tasks[0].durations / 1e9 for run in firsts}
    speed = speed_kept(firsts[0].tasks[0].durations, again.tasks[0].durations)
    kept = Check(name="speed_kept", value=speed, low=1.0, high=SAME_SPEED)
    medians = {name: float(np.median(each)) for name, each in times.items()}
    spreads = {name: spread(each) / float(each.mean()) for name, each in times.items()}
    best = context.parameters.get("best", {})
    evidence: dict[str, Any] = {
        "seconds": {name: significant(each) for name, each in medians.items()},
        "spread": {name: significant(each, 3) for name, each in spreads.items()},
        "work": WORK,
        "drift": {name: significant(each / min(each, best[name])) for name, each in medians.items() if name in best},
        "hypervisor": context.host.virtual,
    }
    samples = sum(map(len, times.values()))
    reference = context.parameters["reference"]
    if not reference:
        reason = Reason(
            code="no-reference",
            text="no times of the same work on a machine that is not virtual",
            remedy="run this experiment there and give its JSON: --set reference=FILE",
        )
        return Finding(samples=samples, checks=(kept,), evidence=evidence, reason=reason)
    if reference.get("work") != evidence["work"]:
        return Finding(
            samples=samples, evidence=evidence, reason=Reason(code="other-work", text="the reference timed other work")
        )
    factors = _factors(medians, reference["seconds"])
    evidence["factors"] = {name: significant(each) for name, each in factors.items()}
    evidence["reference"] = {name: reference["seconds"][name] for name in factors}
    low, high = (float(np.quantile(times["integer"], at)) / reference["seconds"]["integer"] for at in (0.25, 0.75))
    return Finding(
        value=significant(factors["integer"]),
        interval=(significant(low), significant(high)),
        samples=samples,
        checks=(
            kept,
            *(Check(name=f"spread_{name}", value=each, low=0, high=_tame(name)) for name, each in spreads.items()),
        ),
        evidence=evidence,
    )


def best_times(last: Mapping[str, Any], host: Host) -> dict[str, Any]:
    """Return the best known times of the fixed work on this CPU, of any boot, from the last result; none of other work.

    Each result holds its times and their ratio to the best ones before it, so the last result is enough.
    """
    evidence = last["evidence"]
    if last["host"].get("cpu_model") != host.cpu_model or evidence.get("work") != WORK:
        return {}
    seconds: dict[str, float] = evidence.get("seconds", {})
    drift: dict[str, float] = evidence.get("drift", {})
    return {"best": {name: each / max(1.0, drift.get(name, 1.0)) for name, each in seconds.items()}}


def _factors(medians: Mapping[str, float], reference: Mapping[str, float]) -> dict[str, float]:
    return {name: each / reference[name] for name, each in medians.items() if reference.get(name)}


def _tame(name: str) -> float:
    return _TAME["disk" if name in ("read", "write") else "memory" if name == "memory" else "cpu"]


_LEVELS = (0, 1, 2)
_CELL_S = 0.3


def cells(context: Context) -> list[tuple[str, tuple[int, ...]]]:
    """Return what is timed at which levels of load: CPU, memory and, where a folder was given, disk.

    Level k of the CPU is k streams on each CPU, of the others k streams. The CPU's and the memory's timed stream is
    pinned; memory streams besides have the other CPUs, so that they contend for memory, not for the timed stream's CPU.
    The first cell of each is the stream alone.
    """
    names = ("cpu", "memory", "disk") if context.parameters["disk"] else ("cpu", "memory")
    alone: dict[str, tuple[int, ...]] = {name: tuple(int(each == name) for each in names) for name in names}
    found = []
    for timed in names:
        found.append((f"{timed} alone", alone[timed]))
        levels = itertools.product(_LEVELS, repeat=len(names))
        found += [(timed, each) for each in levels if each[names.index(timed)] >= 1]
    return found


def plan_load(context: Context, runs: tuple[LoadRun, ...]) -> Load | None:
    """Time one stream of a resource beside so many streams of each."""
    todo = cells(context)
    if len(runs) == len(todo):
        return None
    what, levels = todo[len(runs)]
    timed, _, alone = what.partition(" ")
    first, others = context.cpus[0], context.cpus[1:] or context.cpus
    tasks = [_stream(timed, 0, None if timed == "disk" else first, leads=True)]
    for name, level in zip(("cpu", "memory", "disk"), () if alone else levels, strict=False):
        if name == "cpu":
            # beside the memory's stream no other on its CPU: that would be waiting, not overhead
            places = [cpu for cpu in context.cpus for _ in range(level) if timed != "memory" or cpu != first]
            if timed == "cpu":
                places.remove(first)
        else:
            places = [others[number % len(others)] for number in range(level - (name == timed))]
        tasks += [
            _stream(name, number + 1, None if name == "disk" else cpu, leads=False) for number, cpu in enumerate(places)
        ]
    return Load(tasks=tuple(tasks), label=f"{what}:{','.join(map(str, levels))}")


def _stream(name: str, number: int, cpu: int | None, *, leads: bool) -> Task:
    steps = {
        "cpu": (Step(kind="integer", amount=_UNITS["integer"]),),
        "memory": (Step(kind="memory", amount=_UNITS["memory"]),),
        "disk": (Step(kind="read", amount=_BLOCK), Step(kind="write", amount=_BLOCK)),
    }
    return Task(
        name=f"{name}{number}",
        steps=steps[name],
        sensor="times" if leads else "none",
        leads=leads,
        cpu=cpu,
        seconds=_CELL_S if leads else _CELL_S + 1,
        iterations=100 if name == "disk" and leads else 0,
    )


def derive_load(context: Context, runs: tuple[LoadRun, ...]) -> Finding:
    """Return the largest overhead of the CPU under load, and a tree that tells it for any level.

    The overhead of r streams that share a resource is t / (r t1), signed: the thesis' formula (6.1) takes an absolute
    value and would call a speed-up an overhead. r is the level of the CPU and the disk; memory streams have a CPU each.
    """
    names = ("cpu", "memory", "disk") if context.parameters["disk"] else ("cpu", "memory")
    alone: dict[str, float] = {}
    factors: dict[str, dict[tuple[int, ...], float]] = {name: {} for name in names}
    tails: dict[str, list[float]] = {}
    for run in runs:
        what, _, words = run.load.label.partition(":")
        durations = run.leaders[0].durations
        tails[run.load.label] = quantiles(durations / 1e9, (0.5, 0.95))
        timed, _, first = what.partition(" ")
        if first:
            alone[timed] = float(durations.mean())
            continue
        levels = tuple(int(word) for word in words.split(","))
        streams = 1 if timed == "memory" else levels[names.index(timed)]
        factors[timed][levels] = float(durations.mean()) / (streams * alone[timed])
    trees = {timed: grow(list(found), list(found.values())) for timed, found in factors.items()}
    worst = max(factors["cpu"], key=lambda levels: factors["cpu"][levels])
    return Finding(
        value=significant(factors["cpu"][worst]),
        samples=sum(len(run.leaders[0].samples) for run in runs),
        checks=(Check(name="one_stream_a_cpu", value=factors["cpu"][_level(names, 1)], low=0.9, high=2.2),),
        evidence={
            "resources": list(names),
            "worst_levels": dict(zip(names, worst, strict=True)),
            "alone_seconds": {name: significant(each / 1e9) for name, each in alone.items()},
            "factors": {
                timed: {",".join(map(str, levels)): significant(each, 4) for levels, each in found.items()}
                for timed, found in factors.items()
            },
            "trees": {timed: [rule.told(names) for rule in leaves(tree)] for timed, tree in trees.items()},
            "median_and_p95_seconds": tails,
        },
    )


def _level(names: tuple[str, ...], level: int) -> tuple[int, ...]:
    return tuple(level if name == "cpu" else 0 for name in names)


CONSTANT = Experiment(
    name="virtualization-constant",
    summary="time of fixed work here over that on a reference machine; its drift without one",
    unit="",
    plan=plan_constant,
    derive=derive_constant,
    parameters={"reference": {}, "disk": ""},
    recall=best_times,
    cost=1.1,
    hours=12,
    rank=9,
    environment={"virtualization_overhead": "value"},
)
LOADED = Experiment(
    name="virtualization-load",
    summary="what load of one resource makes of the time of another, inside this machine",
    unit="",
    plan=plan_load,
    derive=derive_load,
    parameters={"disk": ""},
    cpus="all",
    cost=8.0,
    hours=-1,
    limit=30.0,
    contamination=0.10,
)
