"""Of which kind the time is by which calls of a host differ: running, waiting for a CPU, or blocked. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

LEAST_DIFFERENCE = 0.05
"""Of the time of calls; of less it is not said what it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartsOfTime:
    """What a call of one function does of its time, on average, ns; or shares of a difference."""

    running: float
    waiting: float
    blocked: float

    @property
    def total(self) -> float:
        """All of it."""
        return self.running + self.waiting + self.blocked


def mean_parts(parts: list[PartsOfTime]) -> PartsOfTime:
    """Return the mean over hosts; of at least one."""
    return PartsOfTime(
        running=sum(each.running for each in parts) / len(parts),
        waiting=sum(each.waiting for each in parts) / len(parts),
        blocked=sum(each.blocked for each in parts) / len(parts),
    )


def shares_of_difference(
    these: Mapping[str, PartsOfTime], those: Mapping[str, PartsOfTime], *, slower: bool
) -> PartsOfTime | None:
    """Return which shares of the difference between two sides are running, waiting and blocked; they sum to 1.

    Parameters
    ----------
    these, those : mapping from function to PartsOfTime
        Of the host, and what it is compared with. A function counts by how much it differs, relative to its own time.
    slower : bool
        Whether the calls of these take longer.

    Returns
    -------
    PartsOfTime or None
        None if no function is known on both sides, or if the means do not differ, or differ the other way: the medians,
        by which hosts are judged, may do so while a few long calls do the opposite.
    """
    differences = [
        PartsOfTime(
            running=(each.running - those[function].running) / those[function].total,
            waiting=(each.waiting - those[function].waiting) / those[function].total,
            blocked=(each.blocked - those[function].blocked) / those[function].total,
        )
        for function, each in sorted(these.items())
        if function in those and those[function].total > 0
    ]
    if not differences:
        return None
    mean = mean_parts(differences)
    if (mean.total if slower else -mean.total) < LEAST_DIFFERENCE:
        return None
    return PartsOfTime(
        running=mean.running / mean.total, waiting=mean.waiting / mean.total, blocked=mean.blocked / mean.total
    )
