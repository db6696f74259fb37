"""Loads that several experiments are made of. Pure.

The thesis builds its experiments from two frames (sections 5.5.3 and 5.6): one measured task beside equals that do not
end, and equal tasks that repeat one demand.
"""

from __future__ import annotations

from dataclasses import replace

from specmine.experiments.types import Context, Demanded, Kind, Load, Step, Task


def beside(measured: Task, rivals: int, *, label: str) -> Load:
    """Return a load of a measured task that leads, beside rivals that are scheduled as it is and outlast it."""
    rival = replace(measured, steps=(), sensor="none", leads=False, iterations=0, seconds=measured.seconds + 1)
    others = (replace(rival, name=f"rival{each}") for each in range(rivals))
    return Load(tasks=(replace(measured, leads=True), *others), label=label)


def repeating(step: Step, number: int, seconds: float) -> tuple[Task, ...]:
    """Return equal tasks, not pinned, that repeat a demand and note how long each time took."""
    return tuple(
        Task(name=f"task{each}", steps=(step,), sensor="times", leads=True, seconds=seconds) for each in range(number)
    )


def needing(ns: int, *, cpus: int = 1) -> Demanded:
    """Return what names the integer demand to calibrate; nothing where there are fewer CPUs."""

    def demands(context: Context) -> tuple[tuple[Kind, int], ...]:
        return (("integer", ns),) if len(context.host.cpus) >= cpus else ()

    return demands
