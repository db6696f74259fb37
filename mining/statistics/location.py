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
    mean, variance = _locations([histogram])[0].tolist()
    return mean, variance


def locations(histograms: Sequence[Histogram], edges: Sequence[int]) -> list[Locations]:
    """Return the locations of each class, one row for each histogram; the classes are cut by these first buckets."""
    if not edges:
        return [_locations(histograms)]
    cuts = [0, *edges, len(_LOGS)]
    return [_locations([one.part(low, high) for one in histograms]) for low, high in pairwise(cuts)]


def _locations(histograms: Sequence[Histogram]) -> Locations:
    """Return one row for each histogram; all are worked on at once, as one series of buckets."""
    found = np.full((len(histograms), 2), np.nan)
    rows = [row for row, one in enumerate(histograms) if len(one.counts)]
    if not rows:
        return found
    counts = np.concatenate([histograms[row].counts for row in rows]).astype(np.float64)
    logs = _LOGS[np.concatenate([histograms[row].buckets for row in rows])]
    sizes = np.array([len(histograms[row].counts) for row in rows])
    starts = np.concatenate(([0], np.cumsum(sizes[:-1])))
    totals = np.add.reduceat(counts, starts)
    of_each, before = np.repeat(totals, sizes), np.repeat(np.cumsum(totals) - totals, sizes)
    inside = np.clip(np.cumsum(counts) - before, _TRIMMED * of_each, (1 - _TRIMMED) * of_each)
    below = np.concatenate(([0.0], inside[:-1]))
    below[starts] = _TRIMMED * totals
    weight = (inside - below) / ((1 - 2 * _TRIMMED) * of_each)
    means = np.add.reduceat(weight * logs, starts)
    spreads = np.add.reduceat(weight * (logs - np.repeat(means, sizes)) ** 2, starts) / _LEFT**2
    known = totals >= _LEAST
    found[np.array(rows)[known]] = np.column_stack((means, spreads / totals))[known]
    return found
