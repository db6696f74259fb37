"""Tail probability of the noncentral t distribution, and the shift that a test detects with a given power.

T = (Z + shift) / S, where S**2 is chi-squared by its degrees of freedom. So P(T > t) is the mean of
normal(shift - t S) over S, which is a smooth integral in one dimension.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from .student_t import t_quantile

_NODES = 200
_TAIL = 90.0
"""Chi-squared more than this beyond its mean, or ten standard deviations, has a probability below 1e-16."""


def noncentral_t_sf(value: float, freedom: float, shift: float) -> float:
    """Return P(T > value) for noncentral t with at least one degree of freedom, to 1e-10."""
    scales, weights = _scales(freedom)
    beyond = [0.5 * math.erfc((value * scale - shift) / math.sqrt(2.0)) for scale in scales.tolist()]
    return min(1.0, float(weights @ np.array(beyond)))


@lru_cache(maxsize=4096)
def detected_shift(freedom: float, level: float, power: float) -> float:
    """Return the noncentrality that a two-sided t test at ``1 - level`` detects with this power, on its own side."""
    limit = t_quantile(0.5 + 0.5 * level, freedom)
    low, high = 0.0, limit + t_quantile(power, freedom) + 1.0
    while noncentral_t_sf(limit, freedom, high) < power:
        high *= 2.0
    while high - low > 1e-9 * max(1.0, high):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if noncentral_t_sf(limit, freedom, middle) >= power else (middle, high)
    return high


@lru_cache(maxsize=64)
def _scales(freedom: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return places and weights of S for a sum that stands for the integral (Gauss and Legendre)."""
    beyond = 10.0 * math.sqrt(2.0 * freedom)
    low = math.sqrt(max(0.0, 1.0 - beyond / freedom))
    high = math.sqrt(1.0 + (beyond + _TAIL) / freedom)
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    scales = 0.5 * (high + low) + 0.5 * (high - low) * nodes
    front = math.log(2.0) + 0.5 * freedom * math.log(0.5 * freedom) - math.lgamma(0.5 * freedom)
    density = np.exp(front + (freedom - 1.0) * np.log(scales) - 0.5 * freedom * scales**2)
    return scales, 0.5 * (high - low) * weights * density
