"""Windows whose locations wander: autoregressive processes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter


def autoregressive(rng: np.random.Generator, count: int, correlation: float, sd: float) -> NDArray[np.float64]:
    """Return a stationary autoregressive process of order 1."""
    steps = rng.normal(0, sd * np.sqrt(1 - correlation**2), count)
    steps[0] /= np.sqrt(1 - correlation**2)
    return np.asarray(lfilter([1.0], [1.0, -correlation], steps))
