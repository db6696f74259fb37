"""Loads that several experiments are made of. Pure.

The thesis builds its experiments from two patterns (sections 5.5.3 and 5.6): one measured task that competes with equal
tasks that do not end, and equal tasks that repeat one demand.
"""

from __future__ import annotations

from dataclasses import replace

from specmine.experiments.types import Context, Demands, Kind, Load, Step, Task


def competing_load(measured: Task, competitors: int, *, label: str) -> Load:
    """Return a load of a measured task that leads, and competitors that are scheduled as it is and outlast it."""
    competitor = replace(measured, steps=(), sensor="none", leads=False, iterations=0, seconds=measured.seconds + 1)
    others = (replace(competitor, name=f"competitor{number}") for number in range(competitors))
    return Load(tasks=(replace(measured, leads=True), *others), label=label)


def repeated_tasks(step: Step, number: int, seconds: float) -> tuple[Task, ...]:
    """Return equal tasks, not pinned, that repeat a demand and record how long each repetition took."""
    return tuple(
        Task(name=f"task{each}", steps=(step,), sensor="times", leads=True, seconds=seconds) for each in range(number)
    )


def calibrated_demands(ns: int, *, kinds: tuple[Kind, ...] = ("integer",), cpus: int = 1) -> Demands:
    """Return a function that names the demands to calibrate; none where there are fewer CPUs."""

    def demands(context: Context) -> tuple[tuple[Kind, int], ...]:
        return tuple((kind, ns) for kind in kinds) if len(context.host.cpus) >= cpus else ()

    return demands
