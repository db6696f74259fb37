"""The logarithm of the gamma function, and of sums of exponentials, over arrays and without scipy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

_SHIFT = 8
_COEFFICIENTS = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
"""Of 1/x, 1/x**3, ... in Stirling's series: Bernoulli numbers B(2n) / (2n (2n - 1))."""


def log_gamma(values: ArrayLike) -> NDArray[np.float64]:
    """Return log gamma of positive values.

    Notes
    -----
    Stirling's series (Abramowitz and Stegun 6.1.41) at x + 8, which is exact to 1e-14, and the recurrence back to x.
    """
    x = np.asarray(values, dtype=np.float64)
    far = x + _SHIFT
    below = np.log(x)
    for step in range(1, _SHIFT):
        below = below + np.log(x + step)
    inverse = 1 / far
    square = inverse * inverse
    series = np.zeros_like(far)
    for coefficient in reversed(_COEFFICIENTS):
        series = series * square + coefficient
    return np.asarray((far - 0.5) * np.log(far) - far + 0.5 * math.log(2 * math.pi) + series * inverse - below)


def log_sum_exp(values: ArrayLike, axis: int | None = None) -> Any:
    """Return log(sum(exp(values))) over an axis, or over all; values may be -inf, but not all of a sum."""
    logs = np.asarray(values, dtype=np.float64)
    most = logs.max(axis=axis, keepdims=True)
    sums = np.log(np.exp(logs - most).sum(axis=axis, keepdims=True)) + most
    return sums.squeeze(axis=axis) if axis is not None else sums.reshape(-1)[0]
