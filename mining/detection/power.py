"""Which factor of change would be detected within a minute."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from .detector import FAST_SECONDS, LEAST_FACTOR, LEAST_WINDOWS, THRESHOLD, DetectorState
from .innovations import started, step

WITHIN_SECONDS = 60.0
FACTORS = np.exp(np.arange(0.22, 3.4, 0.02))
KNOWN_WINDOWS = 1_000.0
"""As many windows as leave no doubt about the baseline."""


def detectable(state: DetectorState, *, threshold: float = THRESHOLD, within: float = WITHIN_SECONDS) -> float:
    """Return the smallest factor that would be detected within ``within`` seconds in half of the cases.

    Parameters
    ----------
    state : DetectorState
    threshold : float
        Evidence of a change.
    within : float
        Seconds from the change.

    Returns
    -------
    float
        Of the durations of all calls; inf if none would be, or if nothing was learned yet.
    """
    every = next((one for one in state.streams if one.stream.part == "all" and one.stream.expression == "true"), None)
    if every is None or every.seen < LEAST_WINDOWS:
        return math.inf
    correlation = every.lagged / max(every.square, 1e-12)
    known = (every.variance, every.sampling, correlation, every.interval, every.disturbed)
    return _least_factor(*(_rounded(number) for number in known), round(threshold, 1), within)


def _rounded(number: float) -> float:
    """Return a number to two digits, so that a window that changes little is not computed anew."""
    return float(f"{number:.2g}")


@lru_cache(maxsize=4096)
def _least_factor(
    variance: float,
    sampling: float,
    correlation: float,
    interval: float,
    disturbed: float,
    threshold: float,
    within: float,
) -> float:
    """Return the least of the factors that is detected in time.

    The detector itself watches windows that are all off by a factor, without noise: first the wait for a window, half
    an interval on average, then fast windows.
    """
    count = len(FACTORS)
    streams = started(np.zeros(count), np.full(count, variance), np.full(count, interval))
    streams.lagged[:], streams.square[:], streams.disturbed[:] = correlation * variance, variance, disturbed
    streams.seen[:] = KNOWN_WINDOWS
    streams.doubt[:] = min(0.5 * variance, sampling)  # as after a window
    found, still, errors = np.zeros(count, dtype=bool), np.zeros(count), np.full(count, sampling)
    seconds, elapsed = 0.5 * interval + FAST_SECONDS, np.full(count, max(FAST_SECONDS, interval))
    number = 1
    while seconds <= within:
        streams = step(streams, np.log(FACTORS), errors, elapsed, still, still)
        if number >= LEAST_WINDOWS:
            found |= streams.evidence.max(axis=1) >= threshold
        elapsed[:] = FAST_SECONDS
        seconds, number = seconds + FAST_SECONDS, number + 1
    return max(LEAST_FACTOR, float(FACTORS[found][0])) if found.any() else math.inf
