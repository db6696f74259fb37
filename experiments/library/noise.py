"""What an idle CPU takes from a program: ticks and interrupts, below which differences are noise.

Not in the thesis, which assumes an idle machine (section 5.9): what remains on one is its resolution.
"""

from __future__ import annotations

import numpy as np

from specmine.experiments.statistics import mean_interval, quantiles, significant
from specmine.experiments.vocabulary import Check, Context, Experiment, Finding, Load, LoadRun, Task

_THRESHOLD_NS = 5_000
_SECONDS, _SLICES = 1.5, 15


def plan(context: Context, runs: tuple[LoadRun, ...]) -> Load | None:
    """Watch the clock alone on a CPU."""
    if runs:
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
    """Return the share of a CPU's time that is lost to interruptions."""
    run = runs[0]
    watch, cpu = run.tasks[0], context.cpus[0]
    gaps, seconds = watch.durations, watch.elapsed_ns / 1e9
    edges = np.linspace(watch.start_ns, watch.end_ns, _SLICES + 1)
    lost = np.histogram(watch.samples[:, 0], edges, weights=gaps)[0] / np.diff(edges)
    mean, interval = mean_interval(lost)
    ticks = _ticks(run, cpu)
    near = gaps[gaps < 10 * max(1.0, float(np.median(gaps)))] if len(gaps) else gaps
    rate, expected = len(gaps) / seconds, max(ticks, float(context.host.hertz))
    return Finding(
        value=significant(mean),
        interval=(significant(max(0.0, interval[0])), significant(interval[1])),
        samples=len(gaps),
        checks=(
            Check(name="interruptions_a_tick", value=rate / expected, low=0.7, high=4.0),
            Check(name="lost_to_other_tasks", value=max(0, watch.waited_ns) / watch.elapsed_ns, low=0.0, high=0.02),
        ),
        evidence={
            "interruptions_per_second": significant(rate),
            "timer_interrupts_per_second": significant(ticks),
            "hertz": context.host.hertz,
            "gap_quantiles_seconds": quantiles(gaps / 1e9),
            "longest_gap_seconds": significant(float(gaps.max(initial=0)) / 1e9),
            "lost_a_tick_seconds": significant(float(near.sum()) / seconds / expected / 1e9),
            "threshold_seconds": _THRESHOLD_NS / 1e9,
        },
    )


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
    needs_native=True,
)
