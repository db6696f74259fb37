"""Where the kernel puts a new process: round robin, on the CPU of its parent, at random, or by no rule.

OSSCHEDULER.02 of the thesis (section 5.6.2): as many tasks as CPUs repeat a demand; one of them starts others,
one after the other. The task that shares its CPU with a newcomer slows down in a burst; which task's bursts follow
which tells the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from specmine.experiments.types import MS, Check, Context, Experiment, Finding, Load, LoadRun
from specmine.model.function import Reason

from .load_patterns import calibrated_demands, repeated_tasks
from .statistics import significant

_DEMAND_NS, _ADDED_NS, _ADDED = 10 * MS, 250 * MS, 16
_SECONDS = 8.0
_HIGH, _CLEAR = 1.6, 0.8


def plan(context: Context, runs: tuple[LoadRun, ...]) -> Load | None:
    """Repeat demands on all CPUs while the last task starts newcomers."""
    if runs:
        return None
    step = context.demand("integer", _DEMAND_NS)
    number = len(context.host.cpus)
    newcomer = context.units["integer", _DEMAND_NS] * (_ADDED_NS // _DEMAND_NS)
    *others, parent = repeated_tasks(step, number, _SECONDS)
    return Load(tasks=(*others, replace(parent, forks=_ADDED, fork_units=newcomer)))


def derive(context: Context, runs: tuple[LoadRun, ...]) -> Finding:
    """Return the rule: cyclic, same-as-parent, random or none."""
    tasks = runs[0].tasks
    if len(tasks) < 2:
        return Finding(reason=Reason(code="one-cpu", text="there is only one CPU to be put on"), conclusive=True)
    births = tasks[-1].births
    full = _ADDED_NS // _DEMAND_NS
    bursts = ordered_bursts([(task.samples[:, 0], task.durations) for task in tasks], _DEMAND_NS)
    lengths = [length for _, _, length in bursts]
    sequence = [task for _, task, _ in bursts]
    # a newcomer that stays gives one burst as long as it is itself: fewer or shorter ones mean that it moved
    clear = (
        len(births) >= _ADDED // 2
        and 0.7 * len(births) <= len(bursts) <= 1.3 * len(births)
        and float(np.median(lengths or [0])) >= 0.7 * full
    )
    rule = rule_of(transitions(sequence, len(tasks)), len(tasks)) if clear else "none"
    return Finding(
        value=rule,
        samples=len(births),
        checks=(Check(name="newcomers", value=len(births), low=_ADDED // 2, high=_ADDED),),
        evidence={
            "bursts": len(bursts),
            "median_burst": float(np.median(lengths)) if lengths else None,
            "burst_of_a_newcomer_that_stays": full,
            "newcomer_seconds": significant(float(np.median(births[:, 1] - births[:, 0])) / 1e9)
            if len(births)
            else None,
            "began_on_cpus": "".join(map(str, births[:, 2])),
            "transitions": [[significant(each, 3) for each in row] for row in transitions(sequence, len(tasks))],
        },
    )


def ordered_bursts(
    series: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]], demand_ns: int
) -> list[tuple[int, int, int]]:
    """Return the maximal runs of at least two slow iterations as (start, task, length), in order of time."""
    found = []
    for task, (starts, durations) in enumerate(series):
        slow = durations > _HIGH * demand_ns
        edges = np.flatnonzero(np.diff(np.concatenate(([0], slow.astype(np.int8), [0]))))
        for first, last in edges.reshape(-1, 2):
            if last - first >= 2:
                found.append((int(starts[first]), task, int(last - first)))
    return sorted(found)


def transitions(sequence: Sequence[int], number: int) -> list[list[float]]:
    """Return how often a burst of task j follows one of task i, as a share of the bursts of i that are followed.

    The thesis (section 5.6.2) divides by the number of bursts of j, which gives no transition matrix.
    """
    counts = np.zeros((number, number))
    for before, after in pairwise(sequence):
        counts[before, after] += 1
    rows: list[list[float]] = (counts / np.maximum(1, counts.sum(axis=1, keepdims=True))).tolist()
    return rows


def rule_of(rows: Sequence[Sequence[float]], number: int) -> str:
    """Return the rule whose ideal transitions these are, 'none' if they are nobody's; the last task is the parent."""
    parent = number - 1
    if all(rows[each][(each + 1) % number] >= _CLEAR for each in range(number)):
        return "cyclic"
    if rows[parent][parent] >= _CLEAR:
        return "same-as-parent"
    if all(abs(rows[i][j] - 1 / number) <= 0.25 for i in range(number) for j in range(number)):
        return "random"
    return "none"


EXPERIMENT = Experiment(
    name="placement",
    summary="where the kernel puts a new process: cyclic, same-as-parent, random, none",
    unit="",
    plan=plan,
    derive=derive,
    demands=calibrated_demands(_DEMAND_NS),
    cpus="all",
    weight="ordinary",
    cost=16.0,
    hours=-1,
    limit=10.0,
)
