"""What else runs on this host: distributions over time of how busy its CPUs, disks and network are. Runs no load.

The thesis sketches it as *additional load* (section 6.5.1).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from specmine.experiments.types import SECOND, Context, Experiment, Finding, Load, LoadRun

from .statistics import mean_interval, quantiles, significant

_EVERY_S = 0.25
_DECILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99)


def plan(context: Context, runs: tuple[LoadRun, ...]) -> Load | None:
    """Read the counters for a while."""
    seconds = context.parameters["seconds"] / SECOND
    return None if runs else Load(seconds=seconds, sample_every=min(_EVERY_S, seconds / 8))


def derive(context: Context, runs: tuple[LoadRun, ...]) -> Finding:
    """Return the mean share of all CPUs' time that was busy."""
    counters = runs[0].counters
    pairs = list(pairwise(counters))
    seconds = np.array([(after.at_ns - before.at_ns) / 1e9 for before, after in pairs])
    busy = np.array([sum(after.busy.values()) - sum(before.busy.values()) for before, after in pairs])
    used = np.clip(busy / seconds / max(1, len(counters[0].busy)), 0, 1)
    disk = np.array([after.disk_bytes - before.disk_bytes for before, after in pairs]) / seconds
    network = np.array([after.network_bytes - before.network_bytes for before, after in pairs]) / seconds
    mean, interval = mean_interval(used)
    whole = (counters[-1].at_ns - counters[0].at_ns) / 1e9
    stalled = {
        name: significant((total - counters[0].pressure.get(name, total)) / whole)
        for name, total in counters[-1].pressure.items()
    }
    steal = sum(counters[-1].steal.values()) - sum(counters[0].steal.values())
    return Finding(
        value=significant(mean),
        interval=(significant(max(0.0, interval[0])), significant(min(1.0, interval[1]))),
        samples=len(pairs),
        evidence={
            "quantiles": list(_DECILES),
            "cpu_busy": quantiles(used, _DECILES),
            "disk_bytes_per_second": quantiles(disk, _DECILES),
            "network_bytes_per_second": quantiles(network, _DECILES),
            "stalled": stalled,
            "steal": significant(steal / whole / max(1, len(counters[0].busy))),
        },
    )


EXPERIMENT = Experiment(
    name="additional-load",
    summary="how busy this host is besides: distributions of CPU, disk and network use",
    unit="",
    plan=plan,
    derive=derive,
    parameters={"seconds": 10 * SECOND},
    cpus="none",
    cost=0.1,
    hours=1,
    rank=10,
    limit=3600.0,
)
