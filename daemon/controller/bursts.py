"""When stacks are sampled: at the start for a while, then in bursts. Pure."""

from __future__ import annotations

from specmine.daemon.config.settings import SECOND, Settings
from specmine.model.batch import Prices

FIND_NS = 15 * SECOND
"""Sampling is continuous for so long, then in bursts: it costs every process of the host a little."""
BURST_NS, PAUSE_NS, SHORTEST_PAUSE_NS = SECOND, 15 * SECOND, 4 * SECOND
"""Length of a burst, and from one to the next: usually, and where programs use little CPU time. Under pressure bursts
are up to ten times as far apart."""
LATE_NS = SECOND
"""Samples of a burst arrive until so long after it."""
BURST_SAMPLES = 25
"""Samples of the CPU clock that a burst is to bring: where it brings fewer, the next one comes sooner."""


def hertz_in_bursts(prices: Prices, settings: Settings) -> int:
    """Return the samples a second on each busy CPU while there are any: at most a tenth of the budget."""
    if not settings.sampling_hertz:
        return 0
    affordable = 0.1 * settings.overhead * SECOND / max(prices.sample_ns, 1.0)
    return max(1, min(settings.sampling_hertz, int(affordable)))


def sampling_hertz(now_ns: int, searching_ns: int, burst_ns: int, prices: Prices, settings: Settings) -> int:
    """Return the samples a second on each busy CPU; 0 between bursts.

    Functions that the user named are not searched for. Bursts tell who calls them, and their share of the time.

    Parameters
    ----------
    now_ns : int
    searching_ns : int
        Since when functions are searched for: the start, or now while none was found.
    burst_ns : int
        Start of the last burst.
    prices : Prices
    settings : Settings
    """
    between = (settings.watch or now_ns - searching_ns >= FIND_NS) and now_ns - burst_ns >= BURST_NS
    return 0 if between else hertz_in_bursts(prices, settings)


def next_burst_ns(burst_ns: int, cpu_rate: float, hertz: int, pressure: float) -> int:
    """Return when the burst after one begins.

    Parameters
    ----------
    burst_ns : int
        Start of the last burst.
    cpu_rate : float
        CPU time of the programs, ns per second.
    hertz : int
        Samples a second on each busy CPU, in bursts.
    pressure : float
        How much of our own CPU time must be saved, in [0, 1].
    """
    expected = hertz * cpu_rate / SECOND * BURST_NS / SECOND
    pause_ns = max(SHORTEST_PAUSE_NS, min(1.0, expected / BURST_SAMPLES) * PAUSE_NS)
    return burst_ns + round(pause_ns * (1 + 9 * pressure))
