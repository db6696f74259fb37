"""When the kernel moves tasks between CPUs: at once, when the imbalance is large, or only for an idle CPU.

OSSCHEDULER.03 of the thesis (section 5.6.3): three tasks a CPU, one of them ends; every other task goes on for a while
after its own times have changed, each for another while, and then ends too. Who changes after an end tells who was
moved.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from specmine.experiments.types import MS, SECOND, Check, Context, Experiment, Finding, Load, LoadRun, TaskRun
from specmine.model.function import Reason

from .load_patterns import calibrated_demands, repeated_tasks
from .statistics import significant

_DEMAND_NS, _EACH = 40 * MS, 3
_FIRST_S, _STEP_S = 3.5, 3.0
_FELL = 0.92
"""A task was relieved if its median time is below this share of the one before."""
_MOST_S = 13.0


def plan(context: Context, runs: tuple[LoadRun, ...]) -> Load | None:
    """Run three tasks a CPU; the first ends by the clock, the others after they have changed."""
    if runs or len(context.host.cpus) < 2:
        return None
    step = context.demand("integer", _DEMAND_NS)
    first, *others = repeated_tasks(step, _EACH * len(context.host.cpus), _MOST_S)
    changing = (
        replace(each, changed=True, window=12, final=round(_STEP_S * SECOND / (2 * _DEMAND_NS)) + 20 * at)
        for at, each in enumerate(others, 1)
    )
    return Load(tasks=(replace(first, seconds=_FIRST_S), *changing))


def derive(context: Context, runs: tuple[LoadRun, ...]) -> Finding:
    """Return immediate, active or lazy."""
    if not runs:
        return Finding(reason=Reason(code="one-cpu", text="there is only one CPU, nothing to balance"), conclusive=True)
    tasks = runs[0].tasks
    cpus = len(context.host.cpus)
    ends = sorted(int(task.end_ns) for task in tasks)
    start = max(task.start_ns for task in tasks)
    phases = _phases(tasks, [start, *ends], cpus)
    before, after = phases[0], phases[1]
    relieved = [name for name in after if after[name] < _FELL * before[name]]
    share = len(relieved) / max(1, len(after))
    rule = _rule(share, relieved, phases, cpus)
    fair = [_EACH * cpus * _DEMAND_NS / cpus, (_EACH * cpus - 1) * _DEMAND_NS / cpus]
    evidence = {
        "relieved_by_the_first_end": significant(share, 3),
        "seconds_by_phase": [sorted(significant(each / 1e9, 4) for each in phase.values()) for phase in phases[:4]],
        "fair_seconds": [each / 1e9 for each in fair],
        "spread": significant(_spread(before), 3),
    }
    if rule is None:
        reason = Reason(
            code="unclear", text="the tasks that were relieved fit no rule", remedy="repeat it on a quiet host"
        )
        return Finding(samples=len(tasks), evidence=evidence, reason=reason)
    return Finding(
        value=rule,
        samples=len(tasks),
        checks=(
            Check(
                name="first_phase_to_fair", value=float(np.mean(list(before.values()))) / fair[0], low=0.85, high=1.2
            ),
        ),
        evidence=evidence,
    )


def _rule(share: float, relieved: list[str], phases: list[dict[str, float]], cpus: int) -> str | None:
    if share >= 0.8:
        return "immediate"
    if len(phases) < 3 or not 1 <= len(relieved) <= _EACH:
        return None
    # the mates of the first are left: after the second end on their CPU, does its last task run alone, or others move?
    before, after = phases[1], phases[2]
    others = [name for name in after if name not in relieved]
    moved = [name for name in others if after[name] < _FELL * before[name]]
    alone = [name for name in after if name in relieved and after[name] < 1.3 * _DEMAND_NS]
    if moved and not alone:
        return "active"
    return "lazy" if alone and not moved else None


def _phases(tasks: tuple[TaskRun, ...], edges: list[int], cpus: int) -> list[dict[str, float]]:
    """Return the median time of each task in each phase between two ends, the first second of a phase left out.

    Virtual CPUs change their speed, and all times with it. In each phase the CPUs together do so many demands a second,
    whoever gets how many of them: times are given as if each of these took what it should.
    """
    found: list[dict[str, float]] = []
    for begin, end in pairwise(edges):
        start_ns = begin + min(SECOND, (end - begin) // 3)
        medians = {}
        for task in tasks:
            inside: NDArray[np.bool_] = (task.samples[:, 0] >= start_ns) & (task.samples[:, 1] <= end)
            if np.count_nonzero(inside) >= 4 and task.end_ns >= end:
                medians[task.task.name] = float(np.median(task.durations[inside]))
        if medians and len(medians) == sum(task.end_ns >= end for task in tasks):
            taken = min(cpus, len(medians)) / sum(1 / each for each in medians.values())
            medians = {name: each * _DEMAND_NS / taken for name, each in medians.items()}
        if len(medians) >= 1 or not found:
            found.append(medians)
    return found


def _spread(medians: dict[str, float]) -> float:
    values = list(medians.values())
    return (max(values) - min(values)) / float(np.mean(values)) if values else 0.0


EXPERIMENT = Experiment(
    name="balancing",
    summary="when the kernel moves tasks between CPUs: immediate, active, lazy",
    unit="",
    plan=plan,
    derive=derive,
    demands=calibrated_demands(_DEMAND_NS, cpus=2),
    cpus="all",
    weight="ordinary",
    cost=26.0,
    hours=-1,
    limit=16.0,
)
