"""What the hypervisor takes: pauses of a task alone on a CPU that nothing inside this machine explains.

Not in the thesis; it names the hypervisor's scheduling as a limitation (section 6.5.2).
"""

from __future__ import annotations

import numpy as np

from specmine.experiments.types import Check, Context, Experiment, Finding, Load, LoadRun, Task

from .statistics import significant

_LONG_NS = 1_000_000
_SECONDS = 2.0
_GRANULE_S = 0.01
"""The kernel reports steal time in units of 10 ms."""


def plan(context: Context, runs: tuple[LoadRun, ...]) -> Load | None:
    """Read the clock alone on a CPU."""
    if runs:
        return None
    watch = Task(name="watch", sensor="gaps", leads=True, cpu=context.cpus[0], seconds=_SECONDS)
    return Load(tasks=(watch,))


def derive(context: Context, runs: tuple[LoadRun, ...]) -> Finding:
    """Return the share of a CPU's time that was stolen: in gaps, less what the task waited for others here."""
    run = runs[0]
    watch, cpu = run.tasks[0], context.cpus[0]
    gaps = watch.durations
    explained = max(0, watch.waited_ns) + sum(ns for _, ns in run.throttled.values())
    unexplained = max(0, int(gaps.sum()) - explained)
    seconds = watch.elapsed_ns / 1e9
    told = run.counters[-1].steal.get(cpu, 0.0) - run.counters[0].steal.get(cpu, 0.0)
    long = gaps[gaps >= _LONG_NS] if not explained else gaps[:0]
    value, truth, error = unexplained / 1e9 / seconds, told / seconds, 2 * _GRANULE_S / seconds
    return Finding(
        value=significant(value),
        interval=(significant(max(0.0, value - error / 2)), significant(value + error / 2)),
        ground_truth=significant(truth),
        samples=len(gaps),
        checks=(Check(name="differs_from_steal_time", value=abs(value - truth), low=0.0, high=max(0.01, error)),),
        evidence={
            "unexplained_gaps": len(gaps),
            "longest_gap_seconds": significant(float(gaps.max(initial=0)) / 1e9),
            "hypervisor_slice_seconds": significant(float(np.median(long)) / 1e9) if len(long) >= 5 else None,
            "waited_for_others_seconds": significant(max(0, watch.waited_ns) / 1e9),
            "hypervisor": context.host.virtual,
        },
    )


EXPERIMENT = Experiment(
    name="steal",
    summary="share of a CPU that the hypervisor takes, and for how long at a time",
    unit="",
    plan=plan,
    derive=derive,
    cost=2.0,
    hours=6,
    rank=5,
    environment={"steal_ratio": "value", "hypervisor_slice_seconds": "hypervisor_slice_seconds"},
)
