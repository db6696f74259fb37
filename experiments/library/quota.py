"""A limit on CPU time and its period, derived from the pauses of a task that never stops by itself.

It never runs inside the group of a program, whose time it would use: a group of its own gets the same limit.
Not in the thesis, which names limits of virtual machines as a limitation (section 6.5.2).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from specmine.experiments.types import MS, SECOND, Check, Context, Experiment, Finding, Load, LoadRun, Samples, Task
from specmine.model.function import Reason

from .statistics import mean_interval, quantiles, significant

Lengths = NDArray[np.int64]

_PERIODS, _LONGEST_S, _UNLIMITED_S = 30, 3.0, 0.4
_FEWEST = 5
_VISIT = 0.5
"""A gap of less than so much of the fifth longest is a visit of others, no pause of the limit."""


def plan(context: Context, runs: tuple[LoadRun, ...]) -> Load | None:
    """Spin in a group with the limit, for some thirty periods."""
    if runs:
        return None
    limit = _limit(context)
    seconds = min(_LONGEST_S, _PERIODS * limit[1] / SECOND) if limit else _UNLIMITED_S
    count = min(context.parameters["tasks"], len(context.cpus))
    tasks = tuple(
        Task(name=f"watch{each}", sensor="gaps", leads=True, group="limited", cpu=context.cpus[each], seconds=seconds)
        for each in range(count)
    )
    return Load(tasks=tasks, limits={"limited": limit} if limit else {})


def derive(context: Context, runs: tuple[LoadRun, ...]) -> Finding:
    """Return the limit in CPUs: time running over time."""
    run, limit = runs[0], _limit(context)
    watched = run.tasks
    throttled = run.throttled["limited"]
    gaps = [_pauses(each.samples) for each in watched]
    if limit is None and throttled[0] == 0:
        reason = Reason(code="no-quota", text="CPU time is not limited here")
        evidence = {"gaps": sum(map(len, gaps)), "throttled": 0, "waited_seconds": watched[0].waited_ns / 1e9}
        return Finding(reason=reason, conclusive=True, evidence=evidence, samples=sum(map(len, gaps)))
    if min(map(len, gaps)) < _FEWEST:
        reason = Reason(code="no-gaps", text="the limit never took effect while a task ran all the time")
        return Finding(samples=sum(map(len, gaps)), reason=reason)
    parts = [_turns(pauses, each.samples) for pauses, each in zip(gaps, watched, strict=True)]
    turns, pauses = (np.concatenate([part[at] for part in parts]).astype(np.float64) for at in (0, 1))
    # the limit's periods end in time whatever happens in them
    period = float(np.median(np.concatenate([np.diff(each[:, 1]) for each in gaps])))
    ran = [_undisturbed(own, visit) for own, _, visit in parts]
    share = sum(float(own.mean()) for own in ran) / period
    _, (low, high) = mean_interval(np.concatenate(ran) / period)
    truth = limit[0] / limit[1] if limit else None
    checks = [Check(name="gaps_to_throttlings", value=len(gaps[0]) / max(1, throttled[0]), low=0.8, high=1.25)]
    if limit and len(watched) == 1:
        checks.append(Check(name="period_to_told", value=period / limit[1], low=0.95, high=1.05))
    paused = sum(int(each.durations.sum()) for each in watched)
    return Finding(
        value=significant(share),
        interval=(significant(low * len(watched)), significant(high * len(watched))),
        ground_truth=significant(truth) if truth else None,
        samples=len(turns),
        checks=tuple(checks),
        evidence={
            "quota_seconds": significant(share * period / 1e9),
            "period_seconds": significant(period / 1e9),
            "quota_told_seconds": limit[0] / 1e9 if limit else None,
            "period_told_seconds": limit[1] / 1e9 if limit else None,
            "pause_quantiles_seconds": quantiles(pauses / 1e9),
            "turn_quantiles_seconds": quantiles(turns / 1e9),
            "gaps": len(gaps[0]),
            "throttled": throttled[0],
            "visits": sum(len(each.samples) for each in watched) - sum(map(len, gaps)),
            "paused_seconds": significant(paused / 1e9),
            "throttled_seconds": significant(throttled[1] / 1e9),
        },
    )


def _limit(context: Context) -> tuple[int, int] | None:
    asked = context.parameters
    return (asked["quota"], asked["period"]) if asked["quota"] else context.host.quota


def _pauses(samples: Samples) -> Samples:
    """Return the gaps that are pauses of the limit; the others are visits of others."""
    lengths = samples[:, 1] - samples[:, 0]
    if len(lengths) < _FEWEST:
        return samples
    found: Samples = samples[lengths >= _VISIT * np.sort(lengths)[-_FEWEST]]
    return found


def _turns(pauses: Samples, gaps: Samples) -> tuple[Lengths, Lengths, Lengths]:
    """Return for each whole turn between pauses its running time, the pause after it, and the visits of others."""
    ends = np.searchsorted(gaps[:, 0], pauses[:, 0])
    gone = np.concatenate([[0], np.cumsum(gaps[:, 1] - gaps[:, 0])])
    visits = gone[ends[1:]] - gone[ends[:-1] + 1]
    return pauses[1:, 0] - pauses[:-1, 1] - visits, pauses[1:, 1] - pauses[1:, 0], visits


def _undisturbed(turns: Lengths, visits: Lengths) -> Lengths:
    """Return the turns that no visit fell into, if these are enough: a visit can last beyond the end of the period."""
    return turns[visits == 0] if np.count_nonzero(visits == 0) >= 2 * _FEWEST else turns


EXPERIMENT = Experiment(
    name="quota",
    summary="the limit on CPU time that a program here lives under",
    unit="CPUs",
    plan=plan,
    derive=derive,
    parameters={"quota": 0, "period": 100 * MS, "tasks": 1},
    forces=("quota", "tasks"),
    needs_groups=True,
    cost=1.0,
    hours=12,
    rank=4,
    environment={"quota_seconds": "quota_seconds", "period_seconds": "period_seconds"},
)
