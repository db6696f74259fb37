"""Load patterns as YAML: an experiment without code, for a question that no experiment here asks.

    name: wakeup
    summary: how late a sleeper wakes up beside a busy task
    unit: s
    loads:
      - label: alone
        tasks:
          - {name: sleeper, does: [{sleep: 1ms}], measures: times, leads: true, cpu: 0, seconds: 0.5}
      - label: beside
        tasks:
          - {name: sleeper, does: [{sleep: 1ms}], measures: times, leads: true, cpu: 0, seconds: 0.5}
          - {name: rival, does: [{integer: 1ms}], cpu: 0, seconds: 2}
    derive: {task: sleeper, load: beside, statistic: median, relative_to: alone}

``cpu`` counts the CPUs chosen for the experiment, quietest first; without it a task is not pinned. Amounts of the
demands (integer, float, sort, memory) are CPU times and are calibrated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from specmine.experiments.library import EXPERIMENTS
from specmine.experiments.types import (
    DEMANDS,
    MS,
    POLICIES,
    SECOND,
    Context,
    Experiment,
    Finding,
    Kind,
    Load,
    LoadRun,
    Step,
    Task,
    Why,
)
from specmine.model.errors import InputError

from .statistics import median_interval, settled, significant

_UNITS = {"ns": 1, "us": 1000, "ms": MS, "s": SECOND, "": 1, "KiB": 1 << 10, "MiB": 1 << 20}
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*(ns|us|ms|s|KiB|MiB|)")
_KINDS = (*DEMANDS, "sleep", "read", "write", "clock", "syscall", "pingpong")
_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")
_MOST_TASKS, _MOST_SECONDS, _LARGEST = 64, 30.0, 1 << 16

Statistic = Callable[[NDArray[np.float64], float], float]
STATISTICS: Mapping[str, Statistic] = {
    "median": lambda times, elapsed: float(np.median(times)),
    "mean": lambda times, elapsed: float(times.mean()),
    "p95": lambda times, elapsed: float(np.quantile(times, 0.95)),
    "p99": lambda times, elapsed: float(np.quantile(times, 0.99)),
    "lost": lambda times, elapsed: float(times.sum()) / elapsed,
    "rate": lambda times, elapsed: len(times) / elapsed,
}
"""From the times of a task, s, and how long it ran, s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Derivation:
    """Which number is the value."""

    task: str
    load: str = ""
    statistic: str = "median"
    relative_to: str = ""
    """Another load: the value is a ratio to its."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Repeat all loads until the median is known this well, or so often."""

    half_width: float = 0.05
    at_least: int = 10
    rounds: int = 1


class _Mistake(ValueError):
    """Something in the file is wrong."""


def experiment_named(name: str) -> Experiment:
    """Return an experiment of the library, or that of a pattern file.

    Raises
    ------
    InputError
        If it is neither.
    """
    return EXPERIMENTS[name] if name in EXPERIMENTS else read_pattern(Path(name))


def read_pattern(path: Path) -> Experiment:
    """Return the experiment that a file describes.

    Raises
    ------
    InputError
        If the file cannot be read, or something in it is wrong.
    """
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST + 1)
    except OSError as error:
        raise InputError(f"there is no experiment {path}, and no such file: {error.strerror}") from error
    try:
        if len(text) > _LARGEST:
            raise _Mistake("larger than 64 KiB")
        return pattern_of(yaml.safe_load(text.decode("utf-8")))
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        raise InputError(f"the load pattern {path}: {' '.join(str(error).split())}") from error


def pattern_of(document: object) -> Experiment:
    """Return the experiment of a parsed document; ValueError if something is wrong."""
    tree = _mapping(document, "the pattern", {"name", "summary", "unit", "cpus", "loads", "derive", "stop", "limit"})
    name = tree.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise _Mistake(f"name: {name!r} is not a word of a-z, 0-9 and -")
    listed = tree.get("loads")
    if not isinstance(listed, list) or not listed:
        raise _Mistake("loads: a list of loads belongs here")
    loads = tuple(_load(each, f"loads[{at}]") for at, each in enumerate(listed))
    derivation = Derivation(**_mapping(tree.get("derive"), "derive", {"task", "load", "statistic", "relative_to"}))
    derivation = replace(derivation, load=derivation.load or loads[-1].label)
    _check(derivation, loads)
    stop = Stop(**_mapping(tree.get("stop") or {}, "stop", {"half_width", "at_least", "rounds"}))
    cpus = tree.get("cpus", "one")
    if cpus not in ("one", "two", "all"):
        raise _Mistake(f"cpus: {cpus!r} is none of one, two, all")
    asked = {(step.kind, step.amount) for load in loads for task in load.tasks for step in task.steps}
    demands: tuple[tuple[Kind, int], ...] = tuple(sorted(each for each in asked if each[0] in DEMANDS))
    seconds = stop.rounds * sum(max(task.seconds for task in load.tasks if task.leads) for load in loads)
    limit = float(tree.get("limit", 2 * seconds))
    if seconds > _MOST_SECONDS or limit > 2 * _MOST_SECONDS:
        raise _Mistake(f"it may take {seconds:g} s, over {_MOST_SECONDS:g} s")
    return Experiment(
        name=name,
        summary=str(tree.get("summary", "")),
        unit="" if derivation.relative_to else str(tree.get("unit", "s")),
        plan=lambda context, runs: _plan(context, runs, loads, derivation, stop),
        derive=lambda context, runs: _derive(runs, derivation),
        demands=lambda context: demands,
        cpus=cpus,
        cost=sum(task.seconds for load in loads for task in load.tasks),
        hours=-1,
        limit=limit,
    )


def _plan(
    context: Context, runs: tuple[LoadRun, ...], loads: tuple[Load, ...], derivation: Derivation, stop: Stop
) -> Load | None:
    if len(runs) % len(loads) == 0 and runs:
        times = _times(runs, derivation, derivation.load)[0]
        known = settled(times, at_least=stop.at_least, half_width=stop.half_width)
        if known or len(runs) >= stop.rounds * len(loads):
            return None
    load = loads[len(runs) % len(loads)]
    return replace(load, tasks=tuple(_placed(task, context) for task in load.tasks))


def _placed(task: Task, context: Context) -> Task:
    cpu = None if task.cpu is None else context.cpus[task.cpu % len(context.cpus)]
    steps = tuple(
        replace(context.demand(step.kind, step.amount), random=step.random) if step.kind in DEMANDS else step
        for step in task.steps
    )
    return replace(task, cpu=cpu, steps=steps)


def _derive(runs: tuple[LoadRun, ...], derivation: Derivation) -> Finding:
    times, elapsed = _times(runs, derivation, derivation.load)
    if len(times) == 0:
        return Finding(why=Why("no-samples", f"task {derivation.task} measured nothing"))
    statistic = STATISTICS[derivation.statistic]
    value, base = statistic(times, elapsed), 1.0
    if derivation.relative_to:
        others, other_elapsed = _times(runs, derivation, derivation.relative_to)
        base = statistic(others, other_elapsed) if len(others) else 0.0
        if base == 0:
            return Finding(why=Why("no-samples", f"load {derivation.relative_to} gives nothing to compare with"))
    interval = None
    if derivation.statistic == "median":
        low, high = median_interval(times)[1]
        interval = significant(low / base), significant(high / base)
    return Finding(value=significant(value / base), interval=interval, samples=len(times))


def _times(runs: tuple[LoadRun, ...], derivation: Derivation, label: str) -> tuple[NDArray[np.float64], float]:
    chosen = [run.task(derivation.task) for run in runs if run.load.label == label]
    times = np.concatenate([np.zeros(0), *(each.durations / 1e9 for each in chosen)])
    return times, sum(each.elapsed_ns for each in chosen) / 1e9


def _load(document: object, where: str) -> Load:
    tree = _mapping(document, where, {"label", "tasks"})
    listed = tree.get("tasks")
    if not isinstance(listed, list) or not listed:
        raise _Mistake(f"{where}.tasks: a list of tasks belongs here")
    tasks = tuple(task for at, each in enumerate(listed) for task in _tasks(each, f"{where}.tasks[{at}]"))
    if len(tasks) > _MOST_TASKS:
        raise _Mistake(f"{where}: more than {_MOST_TASKS} tasks")
    if not any(task.leads for task in tasks):
        raise _Mistake(f"{where}: no task leads, so it would never end")
    return Load(tasks=tasks, label=str(tree.get("label", where)))


_TASK_KEYS = {"name", "does", "measures", "leads", "cpu", "nice", "policy", "group", "seconds", "delay", "iterations",
              "copies"}  # fmt: skip


def _tasks(document: object, where: str) -> list[Task]:
    tree = _mapping(document, where, _TASK_KEYS)
    measures, policy = tree.get("measures", "none"), tree.get("policy", "other")
    if measures not in ("none", "gaps", "times"):
        raise _Mistake(f"{where}.measures: {measures!r} is none of none, gaps, times")
    if policy not in POLICIES or policy in ("fifo", "rr"):
        raise _Mistake(f"{where}.policy: {policy!r} is none of other, batch, idle")
    seconds = float(tree.get("seconds", 1.0))
    if not 0 < seconds <= _MOST_SECONDS:
        raise _Mistake(f"{where}.seconds: {seconds:g} is not between 0 and {_MOST_SECONDS:g}")
    copies, name = int(tree.get("copies", 1)), str(tree.get("name", "task"))
    task = Task(
        name=name,
        steps=tuple(_step(each, f"{where}.does") for each in tree.get("does") or ()),
        sensor=measures,
        leads=bool(tree.get("leads", False)),
        cpu=None if tree.get("cpu") is None else int(tree["cpu"]),
        nice=int(tree.get("nice", 0)),
        policy=policy,
        group=str(tree.get("group", "run")),
        seconds=seconds,
        delay=float(tree.get("delay", 0.0)),
        iterations=int(tree.get("iterations", 0)),
    )
    return [task if copies == 1 else replace(task, name=f"{name}{number}", seed=number + 1) for number in range(copies)]


def _step(document: object, where: str) -> Step:
    tree = _mapping(document, where, {*_KINDS, "random"})
    kinds = [kind for kind in _KINDS if kind in tree]
    random = tree.get("random", "")
    if len(kinds) != 1 or random not in ("", "uniform", "exponential"):
        raise _Mistake(f"{where}: one of {', '.join(_KINDS)} belongs here, and perhaps random: uniform or exponential")
    match = _AMOUNT.fullmatch(str(tree[kinds[0]]))
    if match is None:
        raise _Mistake(f"{where}.{kinds[0]}: {tree[kinds[0]]!r} is not an amount such as 1ms")
    return Step(kind=kinds[0], amount=round(float(match[1]) * _UNITS[match[2]]), random=random)


def _check(derivation: Derivation, loads: tuple[Load, ...]) -> None:
    by_label = {load.label: load for load in loads}
    for label in filter(None, (derivation.load, derivation.relative_to)):
        if label not in by_label:
            raise _Mistake(f"derive: there is no load {label!r}")
        task = next((task for task in by_label[label].tasks if task.name == derivation.task), None)
        if task is None or task.sensor == "none":
            raise _Mistake(f"derive: load {label!r} has no task {derivation.task!r} that measures")
    if derivation.statistic not in STATISTICS:
        raise _Mistake(f"derive.statistic: {derivation.statistic!r} is none of {', '.join(STATISTICS)}")


def _mapping(value: object, where: str, known: set[str]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _Mistake(f"{where}: keys and values belong here")
    unknown = sorted(str(key) for key in value if key not in known)
    if unknown:
        raise _Mistake(f"{where}: unknown key {unknown[0]}; known: {', '.join(sorted(known))}")
    return value
