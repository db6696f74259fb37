"""A host that exists only as a model: tasks pinned to one CPU take turns of one slice, limits pause them.

It answers a load as the machine would, so that plans and derivations are tested against a truth that is known exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from specmine.experiments.types import (
    DEMANDS,
    MS,
    SECOND,
    Context,
    Counters,
    Experiment,
    Finding,
    Host,
    Load,
    LoadRun,
    Samples,
    Task,
    TaskRun,
)

UNITS_A_MS = 1000
HOST = Host(cpus=(0, 1), hertz=250, slice_ns=1_400_000, siblings=((0,), (1,)), boot_id="boot", kernel="6.18")


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """The truth of a host."""

    slice_ns: int = 4 * MS
    cfs: bool = False
    """The turns of all tasks together take one slice, as under CFS, instead of a slice each."""
    foreign: int = 0
    """Tasks of others on the CPU measured."""
    jitter_ns: int = 2000
    seed: int = 1
    weights: Mapping[int, int] = field(default_factory=lambda: {0: 1024, 5: 335, 10: 110, 19: 15})


def context_for(experiment: Experiment, host: Host = HOST, **parameters: Any) -> Context:
    """Return the context of an experiment on the modelled host."""
    asked = {**experiment.parameters, **parameters}
    context = Context(host=host, cpus=tuple(reversed(host.cpus)), parameters=asked)
    units = {(kind, ns): round(ns / MS * UNITS_A_MS) for kind, ns in experiment.demands(context)}
    return replace(context, units=units)


def perform(experiment: Experiment, model: Model, context: Context) -> tuple[Finding, tuple[LoadRun, ...]]:
    """Run all loads of a plan on the model and derive."""
    runs: tuple[LoadRun, ...] = ()
    while (load := experiment.plan(context, runs)) is not None:
        runs = (*runs, answered(load, model))
        assert len(runs) < 100
    return experiment.derive(context, runs), runs


def answered(load: Load, model: Model) -> LoadRun:
    """Return what the tasks of a load see when those on one CPU take turns."""
    runs = tuple(_task(task, load, model) for task in load.tasks)
    longest = max((run.end_ns for run in runs if run.task.leads), default=0)
    ends = (0, longest)
    busy = [{cpu: at / SECOND for cpu in (0, 1)} for at in ends]
    throttled = {
        leaf: (sum(len(run.samples) for run in runs if run.task.group == leaf), 0)
        for leaf in {t.group for t in load.tasks}
    }
    counters = tuple(
        Counters(at_ns=at, busy=each, steal={0: 0.0, 1: 0.0}, interrupts={0: at * 250 // SECOND, 1: at * 250 // SECOND})
        for at, each in zip(ends, busy, strict=True)
    )
    return LoadRun(load=load, tasks=runs, counters=counters, throttled=throttled)


def _task(task: Task, load: Load, model: Model) -> TaskRun:
    turn, pause = _turns(task, load, model)
    end = round(task.seconds * SECOND)
    random = np.random.default_rng(model.seed)
    if task.sensor == "gaps":
        samples = _gaps(turn, pause, end, random, model.jitter_ns)
    elif task.sensor == "times":
        samples = _times(task, turn, pause, end, random)
    else:
        samples = np.zeros((0, 3), np.int64)
    if task.iterations and len(samples):
        end = int(samples[-1, 1])
    share = turn / (turn + pause) if pause else 1.0
    return TaskRun(task=task, start_ns=0, end_ns=end, cpu_ns=round(end * share), samples=samples, waited_ns=0)


def _turns(task: Task, load: Load, model: Model) -> tuple[float, float]:
    """Return how long the task runs and pauses in turn."""
    limit = load.limits.get(task.group)
    if limit is not None:
        return float(limit[0]), float(limit[1] - limit[0])
    competitors = [each for each in load.tasks if each is not task and each.cpu == task.cpu and each.cpu is not None]
    count = len(competitors) + model.foreign
    if not count:
        return float(SECOND), 0.0
    if len(competitors) == 1 and not model.foreign and competitors[0].nice != task.nice:
        same = competitors[0].group == task.group
        ratio = model.weights[task.nice] / model.weights[competitors[0].nice] if same else 1.0
        return model.slice_ns * max(1.0, ratio), model.slice_ns * max(1.0, 1 / ratio)
    own = task.slice_ns or model.slice_ns
    each = own / (count + 1) if model.cfs else own
    return float(each), float(count * each)


def _gaps(turn: float, pause: float, end: int, random: np.random.Generator, jitter: int) -> Samples:
    if not pause:
        return np.zeros((0, 3), np.int64)
    starts = np.arange(turn / 2, end - pause, turn + pause)
    noise = random.integers(0, jitter + 1, len(starts))
    return np.column_stack([starts, starts + pause + noise, np.zeros(len(starts))]).astype(np.int64)


def _times(task: Task, turn: float, pause: float, end: int, random: np.random.Generator) -> Samples:
    """Return iterations of the steps' CPU time, stretched by the pauses that fall into them."""
    demand = sum(each.amount / UNITS_A_MS * MS if each.kind in DEMANDS else each.amount for each in task.steps)
    most = task.iterations or 100_000
    used, now, rows = float(random.uniform(0, turn)), 0.0, []
    for _ in range(most):
        if now >= end:
            break
        pauses = np.floor((used + demand) / turn) if pause else 0
        used = (used + demand) - pauses * turn
        rows.append((now, now + demand + pauses * pause, 0))
        now = rows[-1][1]
    return np.array(rows, np.int64).reshape(-1, 3)
