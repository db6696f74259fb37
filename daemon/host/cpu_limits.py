"""The CPU limits above a process, and how often they stopped it."""

from __future__ import annotations

from collections.abc import Callable

from specmine.experiments.host.cgroups import cpu_counts, hierarchy, limits_of
from specmine.model.host.cpu_shortage import CpuLimit


def cpu_limits() -> Callable[[int], list[CpuLimit]]:
    """Return a function from a process to its limits: those of its control group and of all groups above that."""
    tree = hierarchy()

    def limits(pid: int) -> list[CpuLimit]:
        found = []
        for folder, (quota, period) in limits_of(pid, tree).items():
            counts = cpu_counts(folder)
            found.append(
                CpuLimit(
                    group=str(folder),
                    cpus=quota / period,
                    periods=counts.get("nr_periods", 0),
                    throttled=counts.get("nr_throttled", 0),
                )
            )
        return found

    return limits
