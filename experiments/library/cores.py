"""How many CPUs' worth of work gets done: cores that count, limits included.

The thesis (CPU.02, section 5.4) adds tasks until one of them slows down. Instead all tasks are measured at once: with
twice as many as CPUs, the work they get done together over what one does alone is the number of cores, fractions too.
"""

from __future__ import annotations

import numpy as np

from specmine.experiments.types import MS, Check, Context, Experiment, Finding, Kind, Load, LoadRun, Task

from .load_patterns import calibrated_demands
from .statistics import SAME_SPEED, mean_interval, median_interval, significant, speed_kept

_DEMAND_NS = 2 * MS
_ALONE_S, _TOGETHER_S = 0.1, 1.0
_KINDS: tuple[Kind, ...] = ("integer", "float")
_SLICES = 10
_PARTS = 3
"""Of each kind: alone, together, alone again, to see whether the CPU kept its speed."""


def plan(context: Context, runs: tuple[LoadRun, ...]) -> Load | None:
    """One task alone, two for each CPU, not pinned, and one alone again; with integers and with floating point."""
    if len(runs) == _PARTS * len(_KINDS):
        return None
    kind = _KINDS[len(runs) // _PARTS]
    alone = len(runs) % _PARTS != 1
    step = context.demand(kind, _DEMAND_NS)
    limit = context.host.quota
    group = "limited" if limit and not alone else "run"
    tasks = tuple(
        Task(
            name=f"{kind}{number}",
            steps=(step,),
            sensor="times",
            leads=True,
            group=group,
            cpu=context.cpus[0] if alone else None,
            seconds=_ALONE_S if alone else _TOGETHER_S,
        )
        for number in range(1 if alone else 2 * len(context.host.cpus))
    )
    return Load(tasks=tasks, limits={"limited": limit} if limit and not alone else {}, label=kind)


def derive(context: Context, runs: tuple[LoadRun, ...]) -> Finding:
    """Return the effective number of cores."""
    parts = list(zip(runs[::_PARTS], runs[1::_PARTS], runs[2::_PARTS], strict=True))
    slices = {before.load.label: _work(before, together, after) for before, together, after in parts}
    speeds = [speed_kept(before.tasks[0].durations, after.tasks[0].durations) for before, _, after in parts]
    values = {kind: float(np.median(rates)) for kind, rates in slices.items()}
    value, interval = median_interval(slices["integer"])
    _, (low, high) = mean_interval(slices["integer"])
    return Finding(
        value=significant(value),
        interval=(significant(interval[0]), significant(interval[1])),
        ground_truth=context.host.cores,
        samples=sum(len(task.samples) for run in runs for task in run.tasks),
        checks=(
            Check(name="float_to_integer", value=values["float"] / values["integer"], low=0.92, high=1.09),
            Check(name="speed_kept", value=max(speeds), low=1.0, high=SAME_SPEED),
            Check(name="unsteady", value=(high - low) / 2 / value, low=0.0, high=0.06),
        ),
        evidence={
            "by_demand": {kind: significant(each) for kind, each in values.items()},
            "cpus_allowed": len(context.host.cpus),
            "tasks": len(runs[1].tasks),
            "alone_seconds": significant(float(np.median(runs[0].tasks[0].durations)) / 1e9),
            "limit": list(context.host.quota) if context.host.quota else None,
        },
    )


def _work(before: LoadRun, together: LoadRun, after: LoadRun) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the work done together over what one does alone, in some slices of time."""
    unit = float(np.median(np.concatenate([before.tasks[0].durations, after.tasks[0].durations])))
    start = max(task.start_ns for task in together.tasks)
    end = min(int(task.samples[-1, 1]) if len(task.samples) else task.end_ns for task in together.tasks)
    edges = np.linspace(start, max(end, start + 1), _SLICES + 1)
    done = np.zeros(_SLICES)
    for task in together.tasks:
        # an iteration counts in each slice by its share in it
        progress = np.interp(edges, _knots(task.samples), np.arange(2 * len(task.samples)) // 2 + _odd(task.samples))
        done += np.diff(progress)
    return done * unit / np.diff(edges)


def _knots(samples: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return samples[:, :2].reshape(-1)


def _odd(samples: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.arange(2 * len(samples)) % 2


EXPERIMENT = Experiment(
    name="cores",
    summary="how many cores' worth of work gets done, limits included",
    unit="cores",
    plan=plan,
    derive=derive,
    demands=calibrated_demands(_DEMAND_NS, kinds=_KINDS),
    cpus="all",
    cost=2.0,
    hours=0,
    rank=8,
    environment={"cores": "value"},
    contamination=0.03,
)
