"""The experiments, one file each."""

from __future__ import annotations

from collections.abc import Mapping

from specmine.experiments.types import Experiment

from . import (
    additional,
    balancing,
    cores,
    noise,
    placement,
    quota,
    smt,
    steal,
    timers,
    timeslice,
    virtualization,
    weights,
)

EXPERIMENTS: Mapping[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        cores.EXPERIMENT,
        smt.EXPERIMENT,
        timeslice.EXPERIMENT,
        weights.EXPERIMENT,
        placement.EXPERIMENT,
        balancing.EXPERIMENT,
        virtualization.CONSTANT,
        virtualization.LOADED,
        additional.EXPERIMENT,
        quota.EXPERIMENT,
        noise.EXPERIMENT,
        timers.EXPERIMENT,
        steal.EXPERIMENT,
    )
}
"""By name, in the order in which they are listed."""
REPEATED: tuple[str, ...] = tuple(
    experiment.name
    for experiment in sorted(EXPERIMENTS.values(), key=lambda experiment: experiment.rank)
    if experiment.hours >= 0
)
"""Names of those that a daemon repeats unless it is configured otherwise, the most important first."""
