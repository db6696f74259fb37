"""The share of an idle CPU that ticks and interrupts take: smaller differences of durations are noise.

Not in the thesis, which assumes an idle machine (section 5.9): what remains on one is its resolution.
"""

from __future__ import annotations

import numpy as np

from specmine.experiments.types import Check, Context, Experiment, Finding, Load, LoadRun, Task

from .statistics import mean_interval, quantiles, significant

_THRESHOLD_NS = 5_000
_SECONDS, _SLICES = 1.5, 15
_MOST_RUNS, _QUIET = 3, 0.003
"""It measures again, up to so often, if others had a larger share of the CPU than this."""


def plan(context: Context, runs: tuple[LoadRun, ...]) -> Load | None:
    """Read the clock alone on a CPU; again if other tasks ran there."""
    if len(runs) == _MOST_RUNS or (runs and _to_others(runs[-1]) <= _QUIET):
        return None
    task = Task(
        name="watch",
        sensor="gaps",
        leads=True,
        cpu=context.cpus[0],
        seconds=_SECONDS,
        threshold_ns=_THRESHOLD_NS,
        capacity=200_000,
    )
    return Load(tasks=(task,))


def derive(context: Context, runs: tuple[LoadRun, ...]) -> Finding:
    """Return the share of a CPU's time that is lost to interruptions, that of other tasks left out."""
    run = min(runs, key=_to_others)
    watch, cpu = run.tasks[0], context.cpus[0]
    gaps, seconds = watch.durations, watch.elapsed_ns / 1e9
    edges = np.linspace(watch.start_ns, watch.end_ns, _SLICES + 1)
    lost = np.histogram(watch.samples[:, 0], edges, weights=gaps)[0] / np.diff(edges)
    others = _to_others(run)
    mean, interval = mean_interval(lost - others)
    ticks = _ticks(run, cpu)
    near = gaps[gaps < 10 * max(1.0, float(np.median(gaps)))] if len(gaps) else gaps
    rate, expected = len(gaps) / seconds, max(ticks, float(context.host.hertz))
    return Finding(
        value=significant(max(0.0, mean)),
        interval=(significant(max(0.0, interval[0])), significant(max(0.0, interval[1]))),
        samples=len(gaps),
        checks=(
            Check(name="interruptions_a_tick", value=rate / expected, low=0.7, high=4.0),
            Check(name="lost_to_other_tasks", value=others, low=0.0, high=0.02),
        ),
        evidence={
            "interruptions_per_second": significant(rate),
            "timer_interrupts_per_second": significant(ticks),
            "hertz": context.host.hertz,
            "gap_quantiles_seconds": quantiles(gaps / 1e9),
            "longest_gap_seconds": significant(float(gaps.max(initial=0)) / 1e9),
            "lost_a_tick_seconds": significant(float(near.sum()) / seconds / expected / 1e9),
            "looks": len(runs),
            "threshold_seconds": _THRESHOLD_NS / 1e9,
        },
    )


def _to_others(run: LoadRun) -> float:
    """Return the share of time in which the watcher waited for other tasks, as the kernel reports."""
    return max(0, run.tasks[0].waited_ns) / run.tasks[0].elapsed_ns


def _ticks(run: LoadRun, cpu: int) -> float:
    """Return the local timer interrupts a second that the kernel counted."""
    first, last = run.counters[0], run.counters[-1]
    counted = last.interrupts.get(cpu, 0) - first.interrupts.get(cpu, 0)
    return counted / ((last.at_ns - first.at_ns) / 1e9)


EXPERIMENT = Experiment(
    name="noise",
    summary="share of an idle CPU that ticks and interrupts take; their number and length",
    unit="",
    plan=plan,
    derive=derive,
    cost=1.5,
    hours=12,
    rank=3,
    environment={"noise_ratio": "value", "tick_cost_seconds": "lost_a_tick_seconds"},
)
