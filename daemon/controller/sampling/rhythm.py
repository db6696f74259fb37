"""When stacks are sampled: at the start for a while, then in bursts. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from specmine.daemon.config.settings import MS, SECOND, Settings
from specmine.model.batch import Prices

FIND_NS = 15 * SECOND
"""Sampling is continuous for so long, then in bursts: it costs every process of the host a little."""
SHORTEST_NS, LONGEST_NS = SECOND, 4 * SECOND
"""Length of a burst."""
NEAREST_NS, APART_NS = 5 * SECOND, 15 * SECOND
"""From one burst to the next. Under pressure they are up to twice as far apart: one costs us
about as much as a window, and sees all functions."""
BURST_SAMPLES = 25
"""Samples of the CPU clock that a burst is to bring: of programs that use little, bursts are longer and nearer."""
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
    apart_ns = max(float(NEAREST_NS), enough * APART_NS) * (1 + pressure)
    return Rhythm(length_ns=length_ns, apart_ns=round(apart_ns))


def hertz_in_bursts(prices: Prices, settings: Settings) -> int:
    """Return the samples a second on each busy CPU while there are any: at most a tenth of the budget."""
    if not settings.sampling_hertz:
        return 0
    affordable = 0.1 * settings.overhead * SECOND / max(prices.sample_ns, 1.0)
    return max(1, min(settings.sampling_hertz, int(affordable)))


def waits_in_bursts(prices: Prices, income: float) -> int:
    """Return how many waits a second are followed: a twentieth of the budget, ns of cost per second, pays for them."""
    return max(LEAST_WAITS, min(MOST_WAITS, int(0.05 * income / max(prices.sample_ns, 1.0))))


def is_between(now_ns: int, searching_ns: int, burst_ns: int, length_ns: int, settings: Settings) -> bool:
    """Tell whether no burst goes on, nor the search for functions at the start.

    Functions that the user named are not searched for. Bursts tell who calls them, and their share of the time.

    Parameters
    ----------
    now_ns : int
    searching_ns : int
        Since when functions are searched for: the start, or now while none was found.
    burst_ns : int
        Start of the last burst.
    length_ns : int
        How long it lasts.
    settings : Settings
    """
    searched = bool(settings.watch) or now_ns - searching_ns >= FIND_NS
    return searched and now_ns - burst_ns >= length_ns
