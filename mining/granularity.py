"""The step of a coarse clock, or of rounding, recognised in a histogram: its teeth are no classes.

Durations from a coarse clock are multiples of its step, and people and tools round. The histogram then has
teeth that a density takes for classes. Steps are sought among those that clocks and decimal rounding have.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .observation import Counts, bucket_edges

_EDGES = bucket_edges()
_EDGES.flags.writeable = False

_CLOCKS_HZ = (24e6, 19.2e6, 14.31818e6, 13e6, 12e6, 8e6, 3.579545e6, 32768.0, 1024.0, 300.0, 250.0)
_DECIMAL = tuple(m * 10.0**e for e in range(1, 9) for m in (1.0, 2.0, 2.5, 5.0))
STEPS_NS = tuple(sorted({*_DECIMAL, 4e6, *(1e9 / hertz for hertz in _CLOCKS_HZ)}))
"""Steps that are recognised, ns."""

_ERROR = 0.03  # chance that a bucket of a true comb is on the wrong side by noise
_CLEAR = 2.0  # standard errors from which a bucket counts as full or empty
_STANDS_OUT = 0.15  # share of its neighbours' density by which a bucket differs from them
_ENOUGH = 6.0  # log likelihood ratio: 1 in 400 for a step that is not there, and only histograms with jumps are asked
_ASTRAY = 0.02  # share of durations that need not keep to a step
_FINEST = 0.2  # steps below this share of a bucket leave no trace worth a border


def clock_step(counts: Counts, *, above_ns: float = 0.0) -> float:
    """Return the step that durations come in.

    Parameters
    ----------
    counts : ndarray of uint64, shape (BUCKETS,)
        At least one call.
    above_ns : float
        Finer steps are of no interest.

    Returns
    -------
    float
        The step in ns, 0 if none is evident.

    Notes
    -----
    For each step, each bucket of the bulk is full or empty against the mean of its surroundings (one step to
    each side), and holds a multiple of the step more than its neighbours or not. If the durations come in
    this step, just the full ones hold one more; else they do so with the share of such buckets. The sum of
    the log likelihood ratios decides; two or three teeth never suffice.
    """
    below = np.concatenate(([0.0], np.cumsum(counts, dtype=np.float64)))
    first = int(np.searchsorted(below, 0.02 * below[-1], side="right")) - 1
    last = max(int(np.searchsorted(below, 0.98 * below[-1], side="left")), first + 1)
    if not _is_rough(counts[first:last]):
        return 0.0
    low, high = _EDGES[first:last], _EDGES[first + 1 : last + 1]
    best, step = _ENOUGH, 0.0
    for candidate in STEPS_NS:
        if not max(above_ns, _FINEST * float(high[0] - low[0])) < candidate <= high[-1]:
            continue
        evidence = _evidence(below, low, high, candidate)
        if evidence > best:
            best, step = evidence, candidate
    return step


def _is_rough(counts: Counts) -> bool:
    """Return whether neighbouring buckets jump, as teeth do; most histograms end here."""
    if counts.size < 8:
        return False
    values = counts.astype(np.float64)
    jump = np.abs(values[1:-1] - 0.5 * (values[:-2] + values[2:]))
    noise = np.sqrt(values[1:-1] + 0.25 * (values[:-2] + values[2:]) + 1.0)
    return int((jump > 2.5 * noise).sum()) >= 3


def _evidence(below: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64], step: float) -> float:
    width = high - low
    own = np.interp(high, _EDGES, below) - np.interp(low, _EDGES, below)
    reach = np.maximum(step, 3 * width)
    left, right = np.maximum(low - reach, _EDGES[0]), high + reach
    around = np.interp(right, _EDGES, below) - np.interp(left, _EDGES, below)
    expected = around * width / (right - left)
    density = np.pad(own / width, 1, mode="edge")
    beside = 0.5 * (density[:-2] + density[2:])
    # slopes and edges of the distribution put whole stretches off the mean, teeth also stand out of their neighbours
    stands_out = np.abs(density[1:-1] - beside) > _STANDS_OUT * beside
    holds = _multiples(low, high, step) > np.floor(width / step)
    chance = np.clip(np.mod(width / step, 1.0), _ERROR, 1.0 - _ERROR)
    deviation = (own - expected) / np.sqrt(np.maximum(expected, 1.0))
    same_side = (density[1:-1] > beside) == (deviation > 0)
    telling = (np.abs(deviation) > _CLEAR) & (expected >= 4.0) & (width * _FINEST < step) & stands_out & same_side
    agrees = (deviation > 0) == holds
    likely = np.where(holds, chance, 1.0 - chance)
    ratio = np.where(agrees, np.log((1 - _ERROR) / likely), np.log(_ERROR / likely))
    return float(ratio[telling].sum())


def _multiples(low: NDArray[np.float64], high: NDArray[np.float64], step: float) -> NDArray[np.float64]:
    """Return how many multiples of the step each bucket [low, high) holds, rounded to whole ns."""
    return np.asarray(np.floor((high - 0.5) / step) - np.floor((low - 0.5) / step), dtype=np.float64)


def spread(counts: Counts, step: float) -> NDArray[np.float64]:
    """Return the cumulative counts at the bucket edges, each duration spread over the step that it stands
    for.

    Parameters
    ----------
    counts : ndarray of uint64, shape (BUCKETS,)
    step : float
        Step of the durations, ns; 0 for none.

    Returns
    -------
    ndarray of float64, shape (BUCKETS + 1,)
        Ascending. Buckets too wide to show the step, and those of durations that do not keep to it, stay as
        they are.
    """
    below = np.concatenate(([0.0], np.cumsum(counts, dtype=np.float64)))
    fine = int(np.searchsorted(np.diff(_EDGES) * _FINEST, step)) if step > 0 else 0
    if fine <= 1:
        return below
    own = counts[1:fine].astype(np.float64)  # the first bucket stays: it holds all that is shorter, 0 too
    number = _multiples(_EDGES[1:fine], _EDGES[2 : fine + 1], step)
    if own[number == 0].sum() > _ASTRAY * own.sum():
        return below
    heights = np.cumsum(np.repeat(own / np.maximum(number, 1), number.astype(np.int64)), dtype=np.float64)
    first = np.floor((_EDGES[1] - 0.5) / step) + 1
    knots = (first + np.arange(len(heights) + 1) - 0.5) * step
    heights = np.concatenate(([0.0], heights * own.sum() / max(float(heights[-1]), 1.0)))
    inside = below[1] + np.interp(_EDGES[1 : fine + 1], knots, heights)
    return np.concatenate(([0.0], inside[:-1], below[fine:]))
