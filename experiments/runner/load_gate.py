"""When load may start, and whether a run was left alone. Pure.

The gate is passed twice: the caller checks the host before it starts a process, and that process checks it again before
it starts load. Contamination is what other processes used of the measured CPUs during the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specmine.experiments.host.counters import busy_ratio, pressure_ratio
from specmine.experiments.types import REAL_TIME, Counters, Experiment, Host, LoadRun
from specmine.model.function import Reason

FIRST_CHECK_S = 0.5
"""How long the caller reads counters. A busy host is reported within two seconds, so there is no time for more."""
CHECK_S = 1.0
MOST_BUSY = 0.10
MOST_BUSY_ALL = 0.20
"""Mean over all CPUs, for experiments that load all of them."""
MOST_STALLED = 0.05
"""Share of time in which tasks waited for memory or the disk."""


def dangerous(experiment: Experiment, parameters: Mapping[str, Any], *, allowed: bool) -> Reason | None:
    """Return why an experiment needs --dangerous because it affects other programs, None if it may run."""
    if allowed:
        return None
    if parameters.get("policy") in REAL_TIME:
        text = "real-time tasks starve all others on their CPU"
        return Reason(
            code="dangerous", text=text, remedy="ask for it with --dangerous; the kernel reports their slice anyway"
        )
    if experiment.weight == "ordinary":
        text = "the kernel balances tasks of the lowest weight otherwise than others, so its load has ordinary weight"
        return Reason(code="dangerous", text=text, remedy="ask for it with --dangerous while nothing else here matters")
    return None


def candidates(host: Host, forbidden: frozenset[int], busy: Mapping[int, float]) -> tuple[int, ...]:
    """Return the CPUs that may be loaded, quietest first, CPU 0 last: much of the kernel's own work is bound to it."""
    allowed = [cpu for cpu in host.cpus if cpu not in forbidden]
    # CPUs whose load differs by less than noise stay in order, so that runs can be compared
    return tuple(sorted(allowed, key=lambda cpu: (cpu == 0, round(busy.get(cpu, 0.0), 1), cpu)))


def refused(experiment: Experiment, cpus: tuple[int, ...], before: Counters, after: Counters) -> Reason | None:
    """Return why a load may not start now, None if it may."""
    busy, stalled = busy_ratio(before, after), pressure_ratio(before, after)
    for name in ("memory", "io"):
        if stalled.get(name, 0.0) > MOST_STALLED:
            return Reason(
                code="busy-host",
                text=f"tasks wait for {name} {100 * stalled[name]:.0f} % of the time",
                remedy="try again later",
            )
    if not cpus:
        return Reason(code="no-cpu", text="no CPU may be loaded: all are isolated or forbidden to this process")
    wanted = {"none": 0, "one": 1, "two": 2, "all": len(cpus)}[experiment.cpus]
    measured = cpus[:wanted]
    if experiment.cpus == "all":
        mean = sum(busy.get(cpu, 0.0) for cpu in measured) / len(measured)
        if mean > MOST_BUSY_ALL:
            return Reason(
                code="busy-host",
                text=f"the CPUs are {100 * mean:.0f} % busy, over {100 * MOST_BUSY_ALL:.0f} %",
                remedy="try again later",
            )
        return None
    for cpu in measured:
        if busy.get(cpu, 0.0) > MOST_BUSY:
            return Reason(
                code="busy-host",
                text=f"CPU {cpu} is {100 * busy[cpu]:.0f} % busy, over {100 * MOST_BUSY:.0f} %",
                remedy="try again later",
            )
    return None


def foreign_share(run: LoadRun, cpus: tuple[int, ...]) -> float:
    """Return the CPU time of others on the CPUs that a load used, as a share of their time.

    For tasks under a limit that are alone on their CPUs it is how long they waited for others, throttling left out.

    Parameters
    ----------
    run : LoadRun
        Its counters were read at its two ends.
    cpus : tuple of int
        All CPUs that tasks which are not pinned could run on.
    """
    if not run.tasks:
        return 0.0
    pinned = {each.task.cpu for each in run.tasks}
    if run.load.limits and None not in pinned and len(pinned) == len(run.tasks):
        waited = [each.waited_ns for each in run.tasks]
        if min(waited) >= 0:
            # CPU time counted by ticks shows 6 ticks of 4 ms where a limit lets 10 of 20 ms run: 12 % too much
            throttled = sum(ns for _, ns in run.throttled.values())
            return max(0, sum(waited) - throttled) / max(1, sum(each.elapsed_ns for each in run.tasks))
    used = set(cpus) if None in pinned else {cpu for cpu in pinned if cpu is not None}
    before, after = run.counters[0], run.counters[-1]
    busy = sum(after.busy.get(cpu, 0.0) - before.busy.get(cpu, 0.0) for cpu in used)
    own = sum(each.cpu_ns for each in run.tasks) + (run.own_ns if None in pinned or used >= set(cpus) else 0)
    seconds = len(used) * (after.at_ns - before.at_ns) / 1e9
    return max(0.0, busy - own / 1e9) / max(1e-9, seconds)


def contamination(experiment: Experiment, runs: tuple[LoadRun, ...], cpus: tuple[int, ...]) -> Reason | None:
    """Return why what was measured cannot be believed, None if nobody disturbed it."""
    weights = [(run.counters[-1].at_ns - run.counters[0].at_ns, foreign_share(run, cpus)) for run in runs if run.tasks]
    total = sum(weight for weight, _ in weights)
    if experiment.cpus == "none" or not total:
        return None
    foreign = sum(weight * ratio for weight, ratio in weights) / total
    if foreign <= experiment.contamination:
        return None
    return Reason(
        code="foreign-load",
        text=f"others used {100 * foreign:.0f} % of the CPUs measured, over {100 * experiment.contamination:.0f} %",
        remedy="try again when the host is quiet, or wait for it with --wait",
    )
