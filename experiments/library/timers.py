"""What a sleep and a reading of the clock cost: timer slack, overshoot, price of clock and system call.

Not in the thesis.
"""

from __future__ import annotations

import numpy as np

from specmine.experiments.types import MS, Check, Context, Experiment, Finding, Load, LoadRun, Step, Task

from .statistics import median_interval, quantiles, significant

_SLEEP_NS, _SLEEPS = 100_000, 300
_LONG_SLACK_NS, _LONG_SLEEPS = 5 * MS, 40
_READINGS, _ROUNDS = 1000, 60


def plan(context: Context, runs: tuple[LoadRun, ...]) -> Load | None:
    """Sleep with three slacks, then read the clock and enter the kernel."""
    loads = (
        _one("default", Step(kind="sleep", amount=_SLEEP_NS), _SLEEPS, context),
        _one("least", Step(kind="sleep", amount=_SLEEP_NS), _SLEEPS, context, slack_ns=1),
        _one("long", Step(kind="sleep", amount=_SLEEP_NS), _LONG_SLEEPS, context, slack_ns=_LONG_SLACK_NS),
        _one("clock", Step(kind="clock", amount=_READINGS), _ROUNDS, context),
        _one("syscall", Step(kind="syscall", amount=_READINGS), _ROUNDS, context),
    )
    return loads[len(runs)] if len(runs) < len(loads) else None


def derive(context: Context, runs: tuple[LoadRun, ...]) -> Finding:
    """Return the median overshoot of a sleep under the default slack, seconds."""
    over = {run.load.label: run.tasks[0].durations - _SLEEP_NS for run in runs}
    median, (low, high) = median_interval(over["default"])
    least, long = float(np.median(over["least"])), float(np.median(over["long"]))
    slack = median - least
    told = context.host.slack_ns
    per = {run.load.label: float(np.median(run.tasks[0].durations)) / _READINGS for run in runs[3:]}
    return Finding(
        value=significant(median / 1e9),
        interval=(significant(low / 1e9), significant(high / 1e9)),
        samples=len(over["default"]),
        checks=(
            Check(name="default_slack_seconds", value=slack / 1e9, low=0.6 * told / 1e9, high=1.6 * told / 1e9),
            Check(name="slack_of_5_ms_seconds", value=(long - least) / 1e9, low=4.8e-3, high=5.2e-3),
        ),
        evidence={
            "slack_seconds": significant(slack / 1e9),
            "slack_told_seconds": told / 1e9,
            "overshoot_quantiles_seconds": quantiles(over["default"] / 1e9),
            "overshoot_least_slack_seconds": significant(least / 1e9),
            "overshoot_5_ms_slack_seconds": significant(long / 1e9),
            "clock_seconds": significant(per["clock"] / 1e9),
            "syscall_seconds": significant(per["syscall"] / 1e9),
            "clocksource": context.host.clocksource,
            "hertz": context.host.hertz,
        },
    )


def _one(label: str, step: Step, times: int, context: Context, *, slack_ns: int = 0) -> Load:
    task = Task(
        name=label,
        steps=(step,),
        sensor="times",
        leads=True,
        cpu=context.cpus[0],
        slack_ns=slack_ns,
        iterations=times,
        seconds=2.0,
    )
    return Load(tasks=(task,), label=label)


EXPERIMENT = Experiment(
    name="timers",
    summary="how much longer a sleep takes than asked for; what clock and system call cost",
    unit="s",
    plan=plan,
    derive=derive,
    cost=0.05,
    hours=24,
    rank=1,
    environment={"sleep_overshoot_seconds": "value"},
)
