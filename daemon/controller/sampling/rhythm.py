"""When stacks are sampled: at the start for a while, then in bursts. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from specmine.daemon.config.settings import MS, SECOND, Settings
from specmine.model.batch import Prices

FIND_NS = 15 * SECOND
"""Sampling is continuous for so long, then in bursts: it costs every process of the host a little."""
SHORTEST_NS, LONGEST_NS = SECOND, 4 * SECOND
"""Length of a burst."""
APART_NS, MOST_PART = 15 * SECOND, 1 / 4
"""From one burst to the next, and the part of the time that bursts may last. With no CPU time of our own left ..."""
RARER = 1 / 3
"""... they are so much further apart: one costs us about as much as a window, and sees all functions."""
BURST_SAMPLES = 100
"""Samples of the CPU clock that a burst is to bring: of programs that use little, bursts are longer and nearer."""
BURST_TIMES = 4
"""In bursts samples come so many times as often as in the search: on average over time they are fewer."""
LEAST_WAITS, MOST_WAITS = 2, 20
"""Waits a second whose stacks are walked in a burst."""
LATE_NS = 500 * MS
"""Samples of a burst arrive until so long after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rhythm:
    """How long bursts are, and how far apart they begin."""

    length_ns: int
    apart_ns: int


def rhythm(cpu_rate: float, hertz: int, pressure: float) -> Rhythm:
    """Return when bursts begin and end.

    Parameters
    ----------
    cpu_rate : float
        CPU time of the programs, ns per second.
    hertz : int
        Samples a second on each busy CPU, in bursts.
    pressure : float
        How much of our own CPU time must be saved, in [0, 1].
    """
    per_second = max(hertz * cpu_rate / SECOND, 1e-3)
    length_ns = min(LONGEST_NS, max(SHORTEST_NS, round(BURST_SAMPLES / per_second * SECOND)))
    enough = min(1.0, per_second * length_ns / SECOND / BURST_SAMPLES)
    apart_ns = max(length_ns / MOST_PART, enough * APART_NS) * (1 + RARER * pressure)
    return Rhythm(length_ns=length_ns, apart_ns=round(apart_ns))


def hertz_in_bursts(prices: Prices, settings: Settings, cpu_rate: float) -> int:
    """Return the samples a second on each busy CPU in a burst: as many as the shortest needs, as far as they go.

    Of programs that keep several CPUs busy it needs fewer; ``cpu_rate`` is their CPU time, ns per second.
    """
    least = hertz_in_search(prices, settings)
    needed = BURST_SAMPLES / (max(cpu_rate, 1.0) * SHORTEST_NS / SECOND**2)
    return max(least, math.ceil(min(needed, BURST_TIMES * least)))


def hertz_in_search(prices: Prices, settings: Settings) -> int:
    """Return the samples a second on each busy CPU in the search for functions: at most a tenth of the budget."""
    if not settings.sampling_hertz:
        return 0
    affordable = 0.1 * settings.overhead * SECOND / max(prices.sample_ns, 1.0)
    return max(1, min(settings.sampling_hertz, int(affordable)))


def waits_in_bursts(prices: Prices, income: float) -> int:
    """Return how many waits a second are followed: a twentieth of the budget, ns of cost per second, pays for them."""
    return max(LEAST_WAITS, min(MOST_WAITS, int(0.05 * income / max(prices.sample_ns, 1.0))))


def is_searching(now_ns: int, since_ns: int, settings: Settings) -> bool:
    """Tell whether functions are searched for: not those that the user named. Bursts tell who calls these.

    Parameters
    ----------
    now_ns : int
    since_ns : int
        Since when: the start, or now while none was found.
    settings : Settings
    """
    return not settings.watch and now_ns - since_ns < FIND_NS
