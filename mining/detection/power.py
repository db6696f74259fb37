"""Which factor of change would be detected within a minute."""

from __future__ import annotations

import math

import numpy as np

from .detector import FAST_SECONDS, LEAST_FACTOR, LEAST_WINDOWS, THRESHOLD, DetectorState
from .innovations import DISTURBED, SCALE, WIDER
from .state import StreamState

WITHIN_SECONDS = 60.0
FACTORS = np.exp(np.arange(0.22, 3.4, 0.02))
DISTANCES = np.linspace(-4, 4, 41)
WEIGHTS = np.exp(-0.5 * DISTANCES**2) / np.exp(-0.5 * DISTANCES**2).sum()


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
    for factor in FACTORS.tolist():
        if _delay(every, factor, threshold) <= within:
            return max(LEAST_FACTOR, float(factor))
    return math.inf


def _delay(one: StreamState, factor: float, threshold: float) -> float:
    """Return the expected seconds to detection: the wait for a window, then fast windows until there is evidence.

    The evidence of a window is its mean log likelihood ratio, if it is not disturbed. The filter takes the change into
    its estimate meanwhile, so each window adds less than the one before.
    """
    step = math.log(factor)
    wander = max(one.variance - one.sampling, 1e-6)
    ratio = min(0.985, max(1e-6, one.lagged / max(one.square, 1e-12) * one.variance / wander + 0.04))
    doubt, absorbed, evidence = one.doubt, 0.0, 0.0
    seconds = 0.5 * one.interval
    for number in range(1, 60):
        kept = ratio ** ((one.interval if number == 1 else FAST_SECONDS) / one.interval)
        doubt = kept**2 * doubt + wander * (1 - kept**2)
        width = WIDER * (doubt + one.sampling)
        left = step * (1 - kept * absorbed)
        gained, outlier = _gain(left, math.sqrt(doubt + one.sampling), width, max(one.disturbed, DISTURBED / 4))
        gain = doubt / (doubt + one.sampling) * (1 - outlier)
        evidence += gained
        absorbed = kept * absorbed + gain * (1 - kept * absorbed)
        doubt *= 1 - gain
        seconds += FAST_SECONDS
        if evidence >= threshold and number >= LEAST_WINDOWS:
            return seconds
    return math.inf


def _gain(left: float, sd: float, width: float, share: float) -> tuple[float, float]:
    """Return the mean evidence of a window that is off by ``left`` on average, and its chance to count as disturbed."""
    surprise = left + sd * DISTANCES
    heavy = share * np.exp(-np.abs(surprise) / SCALE) / (2 * SCALE)
    scale = (1 - share) / math.sqrt(2 * math.pi * width)
    usual = scale * np.exp(-0.5 * surprise**2 / width) + heavy
    wider = width + 0.01
    changed = scale * math.sqrt(width / wider) * np.exp(-0.5 * (surprise - left) ** 2 / wider) + heavy
    return float(WEIGHTS @ np.log(changed / usual)), float(WEIGHTS @ (heavy / usual))
