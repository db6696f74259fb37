"""Which factor of change would be detected within a minute."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from .changes import SUSPECTED
from .detector import FAST_SECONDS, LEAST_FACTOR, LEAST_WINDOWS, THRESHOLD, DetectorState
from .innovations import started, step
from .threshold import more_evidence

WITHIN_SECONDS = 60.0
FACTORS = np.exp(np.arange(0.22, 3.4, 0.02))
LEAST_KNOWN_WINDOWS = 90.0
"""A stream of fewer windows has a spread that is not known well enough to tell what would be found ..."""
KNOWN_WINDOWS = 1_000.0
"""... and so many leave no doubt about the baseline."""


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
        Of the durations of all calls; inf if none would be, nan if too few windows were learned to tell.
    """
    every = next((one for one in state.streams if one.stream.part == "all" and one.stream.expression == "true"), None)
    if every is None or every.seen < LEAST_KNOWN_WINDOWS:
        return math.nan
    return least_factor(
        variance=every.variance,
        sampling=every.sampling,
        correlation=every.lagged / max(every.square, 1e-12),
        interval=every.interval,
        disturbed=every.disturbed,
        seen=every.seen,
        threshold=threshold,
        within=within,
    )


def least_factor(
    *,
    variance: float,
    sampling: float,
    correlation: float,
    interval: float,
    disturbed: float,
    seen: float = KNOWN_WINDOWS,
    threshold: float = THRESHOLD,
    within: float = WITHIN_SECONDS,
) -> float:
    """Return the smallest factor that a stream with these numbers would be found to have changed by."""
    known = (variance, sampling, correlation, interval, disturbed, min(seen, KNOWN_WINDOWS))
    return _least_factor(*(_rounded(number) for number in known), round(threshold, 1), within)


def _rounded(number: float) -> float:
    """Return a number to two digits, so that a window that changes little is not computed anew."""
    return float(f"{number:.2g}")


@lru_cache(maxsize=256)
def _least_factor(
    variance: float,
    sampling: float,
    correlation: float,
    interval: float,
    disturbed: float,
    seen: float,
    threshold: float,
    within: float,
) -> float:
    """Return the least of the factors that is detected in time.

    The detector itself watches windows that are all off by a factor, without noise: first the wait for a window, half
    an interval on average, then fast windows once it suspects something.
    """
    count = len(FACTORS)
    streams = started(np.zeros(count), np.full(count, variance), np.full(count, interval))
    streams.lagged[:], streams.square[:], streams.disturbed[:] = correlation * variance, variance, disturbed
    streams.seen[:] = seen
    streams.doubt[:] = min(0.5 * variance, sampling)  # as after a window
    found, still, errors = np.zeros(count, dtype=bool), np.zeros(count), np.full(count, sampling)
    usual = max(FAST_SECONDS, interval)
    seconds, elapsed = np.full(count, 0.5 * interval + FAST_SECONDS), np.full(count, usual)
    number, enough = 1, threshold + more_evidence(variance - sampling)
    while (seconds <= within).any():
        streams = step(streams, np.log(FACTORS), errors, elapsed, still, still)
        evidence = streams.evidence.max(axis=1)
        if number >= LEAST_WINDOWS:
            found |= (evidence >= enough) & (seconds <= within)
        elapsed = np.where(evidence > SUSPECTED, FAST_SECONDS, usual)
        seconds, number = seconds + elapsed, number + 1
    return max(LEAST_FACTOR, float(FACTORS[found][0])) if found.any() else math.inf
