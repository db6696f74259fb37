"""Where the durations of a window lie: their trimmed mean on the log axis, and how exactly it is known.

A tenth is trimmed at either end, so that single slow calls do not move it (Tukey and McLaughlin, Sankhya A 25, 1963).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from specmine.model.buckets import BUCKET_MIDDLES
from specmine.model.histogram import Histogram

_LOGS = np.log(BUCKET_MIDDLES)
_TRIMMED = 0.1  # share of the calls at either end
_LEFT = 0.6617  # standard deviation of the middle 80 % of a normal distribution, in units of the whole
_LEAST = 20  # calls from which a location is stated

Locations = NDArray[np.float64]
"""Location and its sampling variance of each window, log ns; shape (windows, 2). Not a number: too few calls."""


def location(histogram: Histogram) -> tuple[float, float]:
    """Return the trimmed mean of log durations in log ns, and its sampling variance; nan for fewer than 20 calls."""
    total = histogram.total
    if total < _LEAST:
        return float("nan"), float("nan")
    below = np.cumsum(histogram.counts, dtype=np.float64)
    inside = np.clip(below, _TRIMMED * total, (1 - _TRIMMED) * total)
    weight = np.diff(inside, prepend=_TRIMMED * total) / ((1 - 2 * _TRIMMED) * total)
    logs = _LOGS[histogram.buckets]
    mean = float(weight @ logs)
    spread = float(weight @ (logs - mean) ** 2) / _LEFT**2
    return mean, spread / total


def locations(histograms: Sequence[Histogram], edges: Sequence[int]) -> list[Locations]:
    """Return the locations of each class, one row for each histogram; the classes are cut by these first buckets."""
    cuts = [0, *edges, len(_LOGS)]
    return [
        np.array([location(one.part(low, high)) for one in histograms]).reshape(-1, 2) for low, high in pairwise(cuts)
    ]
