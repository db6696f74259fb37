"""How much dearer a probe is in a program than in calibration's loop: measured at the probe itself.

A trap runs some thousand bytes of kernel code. In a loop they stay in the first-level cache; between other work they do
not, and what they push out the program has to fetch again. The return's handler takes its own time at one call in
32; that time over what it is in the loop is the function's *coldness*, 1 in a loop.

The laws below were fitted to an empty function between work on 0 to 4 MiB of data and 32 KiB to 1 MiB of code
(docs/measured/overhead.md, "In cold caches"): with coldness, what a call costs the program grows about as the
handler's own time does, and what the probe leaves in a duration more slowly. A shorter handler has other laws: fit
them again.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from specmine.model.batch import Prices
from specmine.model.buckets import BUCKET_EDGES, BUCKETS
from specmine.model.probe_kind import TIMED, ProbeKind

MOST = 4.0
"""Greater values are of calls that something else disturbed."""
PRIOR = 16
"""Measured handlers that weigh as much as what was known before."""
_BIAS_GROWTH = {"replaced": 0.43, "site": 0.28}
"""Half of what was measured of the empty function: of functions that spin for 5 to 20 us far less was added, though
their handlers took as long. So the uncertainty is as large: it reaches from nothing to the most that was seen."""
_BIAS_POWER = 0.75
"""Of the coldness beyond 1: three runs of bench/overhead/cold_caches.py; linear was too wide, the root too narrow."""
STEP_ERROR = 0.45
"""Relative uncertainty of what a single-stepped entry adds: in a virtual machine the same step takes 8, 10.5 or 12 us,
for seconds at a time, and calibration meets one of these."""


def coldness(before: float, took_ns: float, handlers: int, loop_ns: float) -> float:
    """Return a function's coldness after more handlers were measured.

    Parameters
    ----------
    before : float
        What was known of it before, 1 or more.
    took_ns : float
        What these handlers took together, ns.
    handlers : int
        Their number.
    loop_ns : float
        What one takes in calibration's loop, ns; 0: not known.
    """
    if loop_ns <= 0:
        return before
    mean = (PRIOR * before + took_ns / loop_ns) / (PRIOR + handlers)
    return min(MOST, max(1.0, mean))


def geometric_mean(handlers: int, buckets: int) -> float:
    """Return the ns that handlers took, from their number and the sum of the histogram's buckets of their times."""
    return float(np.interp(buckets / handlers, np.arange(BUCKETS + 1), BUCKET_EDGES))


def price_factor(coldness: float, probe: ProbeKind) -> float:
    """Return what a hit costs the program, relative to calibration's loop."""
    return 1.0 + probe.price_slope * (coldness - 1.0)


def nested_factor(coldness: float, probe: ProbeKind) -> float:
    """Return what a hit adds to the calls around it, relative to calibration's loop: half of what it costs more, since
    the program fetches much of what was pushed out after they have ended, and too short is as wrong as too long."""
    return (1.0 + price_factor(coldness, probe)) / 2


def coldness_for(factor: float) -> float:
    """Return the coldness at which a timed call costs so much more than in the loop."""
    return 1.0 + (factor - 1.0) / TIMED.price_slope


def bias_factor(coldness: float, *, by_site: bool) -> tuple[float, float]:
    """Return what the function's own probes leave in its durations, relative to calibration's loop, and how well that
    is known: the uncertainty that comes with coldness, in the same unit."""
    more = _BIAS_GROWTH["site" if by_site else "replaced"] * max(0.0, coldness - 1.0) ** _BIAS_POWER
    return 1.0 + more, more


def scaled(prices: Prices, factor: float) -> Prices:
    """Return the prices by which to plan where hits cost so much more."""
    return replace(
        prices,
        count_ns=prices.count_ns * factor,
        time_ns=prices.time_ns * factor,
        path_ns=prices.path_ns * factor,
        untimed_ns=prices.untimed_ns * factor,
    )
