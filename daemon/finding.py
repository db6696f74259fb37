"""Which functions are worth measuring: where wall-clock time goes, and in what order to look at them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from specmine.mining.observation import bucket_edges
from specmine.probes.batch import Prices

from .knowledge import Knowledge
from .settings import SECOND, Settings

FIRST_LOOK_NS = 1_500 * 1_000_000
"""Sampling lasts this long before the first function is chosen."""
FULL_RATE_NS = 10 * SECOND
"""After this long sampling goes on at a quarter of its rate."""
WORTH_SHARE = 0.005
"""Share of wall-clock or of CPU time from which a function is worth a probe."""
HALF_LIFE_NS = 60 * SECOND
"""What sampling said fades by half in this time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """All the time that sampling saw."""

    wall_ns: float
    cpu_ns: float


def total_of(known: Iterable[Knowledge]) -> Total:
    """Add up the time of all functions."""
    every = tuple(known)
    return Total(wall_ns=sum(each.where.own_ns for each in every), cpu_ns=sum(each.where.cpu_ns for each in every))


def share(known: Knowledge, total: Total) -> float:
    """Return the share of wall-clock time with the function on the stack, at most 1."""
    return min(1.0, known.where.inclusive_ns / total.wall_ns) if total.wall_ns > 0 else 0.0


def is_worth_it(known: Knowledge, total: Total) -> bool:
    """Tell whether a function is hot, waits much, was named by the user, or calls a finished one."""
    if known.hinted or known.climbed:
        return True
    cpu = known.where.cpu_ns / total.cpu_ns if total.cpu_ns > 0 else 0.0
    return known.where.samples >= 2 and max(share(known, total), cpu) >= WORTH_SHARE


def variation(known: Knowledge) -> float:
    """Return calls times spread, ns per second: the rate times the standard deviation of the durations."""
    counts = known.histogram.astype(np.float64)
    number = counts.sum()
    if number < 2 or known.rate is None:
        return 0.0
    edges = bucket_edges()
    middle = 0.5 * (edges[:-1] + edges[1:])
    mean = float(counts @ middle / number)
    return known.rate * float(np.sqrt(max(0.0, counts @ (middle - mean) ** 2 / number)))


def sampling_hertz(now_ns: int, began_ns: int, prices: Prices, settings: Settings) -> int:
    """Return the samples a second on each busy CPU: at most a tenth of the budget, less after the first look.

    With functions named by the user there is no sampling.
    """
    if settings.watch:
        return 0
    affordable = 0.1 * settings.budget * SECOND / max(prices.sample_ns, 1.0)
    hertz = max(1, min(settings.sampling_hertz, int(affordable)))
    return hertz if now_ns - began_ns < FULL_RATE_NS else max(1, hertz // 4)


def in_order(known: Mapping[str, Knowledge], total: Total) -> list[Knowledge]:
    """Return functions not yet counted, the most promising first; waits of a main loop last."""
    return sorted(
        known.values(),
        key=lambda each: (
            not each.hinted,
            each.where.loop_bottom,
            -(each.where.own_ns + 0.1 * each.where.inclusive_ns),
            each.function.key,
        ),
    )
