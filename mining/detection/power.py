"""Which factor of change would be detected within a minute."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .detector import FAST_SECONDS, LEAST_FACTOR, LEAST_WINDOWS, THRESHOLD, DetectorState
from .innovations import step
from .state import StreamState, to_arrays

WITHIN_SECONDS = 60.0
FACTORS = np.exp(np.arange(0.22, 3.4, 0.04))


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
    found = FACTORS[_found(every, threshold, within)]
    return max(LEAST_FACTOR, float(found[0])) if len(found) else math.inf


def _found(one: StreamState, threshold: float, within: float) -> NDArray[np.bool_]:
    """Return which of the factors would be detected in time.

    The detector itself watches windows that are all off by a factor, without noise: first the wait for a window, half
    an interval on average, then fast windows.
    """
    streams = to_arrays([replace(one, excursions=(), place=0.0, outlier=0.0, moved=0.0)] * len(FACTORS))
    places, sampling = one.baseline + np.log(FACTORS), np.full(len(FACTORS), one.sampling)
    found = np.zeros(len(FACTORS), dtype=bool)
    seconds = 0.5 * one.interval + FAST_SECONDS
    elapsed, number = np.full(len(FACTORS), max(FAST_SECONDS, one.interval)), 1
    while seconds <= within:
        streams = step(streams, places, sampling, elapsed, np.zeros(len(FACTORS)), np.zeros(len(FACTORS)))
        if number >= LEAST_WINDOWS:
            found |= streams.evidence.max(axis=1) >= threshold
        elapsed[:] = FAST_SECONDS
        seconds, number = seconds + FAST_SECONDS, number + 1
    return found
