"""What disturbed windows look like: how far off their prediction they are, and how long a disturbance lasts."""

from __future__ import annotations

import numpy as np

from .streams import Floats

DISTURBED = 0.04
"""Share of disturbed windows assumed until a stream's own is known."""
LEAST_DISTURBED, MOST_DISTURBED, MOST_SHARE = 0.003, 0.1, 0.75
LASTING_SECONDS = 10.0
"""A disturbance lasts at most so long, ..."""
LONG_SECONDS, LONG = 30.0, 0.002
"""... but this share of them about three times as long."""
LEAST_CHANCE = 1e-300
"""After a pause of hours no disturbance goes on: its age does not matter then, but must stay a number."""
UP, UP_MOST, UP_EDGE = 0.8, 1.7, 0.2
"""Most disturbances make calls slower: by any factor up to exp(1.7) equally likely, in log units ..."""
DOWN, DOWN_SCALE = 0.15, 0.4
"""... some make them faster ..."""
FAR, FAR_SCALE = 0.05, 3.0
"""... and some are far off, either way."""
FAR_WINDOWS = 100.0
"""The share of windows that are far off is learned for each stream. At first it counts as if so many windows had shown
it, ..."""
LEAST_FAR, MOST_FAR = 5e-4, 0.1
"""... and it is always between these."""


def goes_on(age: Floats, elapsed: Floats) -> Floats:
    """Return the probability that a disturbance of this age still lasts after so many seconds more.

    Most last for half of ``LASTING_SECONDS`` at least, and for all of it at most, any time in between equally likely.
    """
    still = np.minimum(1.0, np.maximum(0.0, LASTING_SECONDS - age - elapsed) / (0.5 * LASTING_SECONDS))
    before = np.minimum(1.0, np.maximum(1e-3, LASTING_SECONDS - age) / (0.5 * LASTING_SECONDS))
    return np.asarray((1 - LONG) * np.minimum(1.0, still / before) + LONG * np.exp(-elapsed / LONG_SECONDS))


def first_age(elapsed: Floats) -> Floats:
    """Return how long a disturbance has lasted by the window that shows it first; more if windows are far apart."""
    return np.asarray(np.minimum(0.5 * np.maximum(elapsed - 0.5 * LASTING_SECONDS, 0.0), 0.25 * LASTING_SECONDS))


def disturbed_density(surprise: Floats) -> Floats:
    """Return the density of windows that are newly disturbed, but not far off."""
    distance = np.abs(surprise)
    up = UP / UP_MOST / (1 + np.exp(np.minimum((distance - UP_MOST) / UP_EDGE, 50.0)))
    down = DOWN / DOWN_SCALE * np.exp(-distance / DOWN_SCALE)
    return np.asarray(np.where(surprise > 0, up, down))


def far_density(surprise: Floats) -> Floats:
    """Return the density of windows that are far off, either way."""
    return np.asarray(np.exp(-np.abs(surprise) / FAR_SCALE) / (2 * FAR_SCALE))


def normal_density(distance: Floats, variance: Floats) -> Floats:
    """Return the density of a normal law at some distances from its mean."""
    return np.asarray(np.exp(-0.5 * distance**2 / variance) / np.sqrt(2 * np.pi * variance))
