"""Heaping: some durations are rounded, others are exact. The heaps at round values are no classes.

If a share of the durations was rounded to multiples of a step, each multiple holds that share of the calls within half
a step. Two things distinguish a heap from a narrow class: most calls around it stay where they are, and other multiples
have heaps too. (If all durations are multiples of a step, the clock is coarse: see ``clock_resolution.py``.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from specmine.model.buckets import BUCKET_EDGES

_EDGES = BUCKET_EDGES.copy()
_EDGES[0] = 0.0  # the first bucket also holds all shorter durations
_WIDTH = np.diff(_EDGES)

STEPS_NS = tuple(sorted(m * 10.0**e for e in range(2, 10) for m in (1.0, 2.0, 2.5, 5.0)))
"""Steps of rounding that are recognised, ns."""
MULTIPLES = 31
"""Beyond so many steps a bucket may be wider than a step, so heaps cannot be detected."""
_CLEAR = ((2, 6.0), (3, 3.5))  # number of plain heaps, and the standard errors that all together need then
_EACH = 1.5  # standard errors from which a single heap is plain
_MOST = 0.5  # a heap holds at most this share of the calls within half a step, else it is a class
_CERTAIN = 20.0  # standard errors from which more evidence for a heap does not count
_ALIKE = 0.02  # of steps whose squared z differ by less than this share,
_CHANCE = 6.0  # ... and by less than this, the coarsest is taken
_UNLIKE = 0.1  # a step that explains less by this share and by _DOUBT may still be the true one
_DOUBT = 20.0
_OTHERS = 2
_STEEP = 12.0  # ratio of neighbouring densities from which a distribution begins or ends there
_FAR = 4  # buckets to each side in which one without a multiple is searched
_AS_WIDE = 33  # buckets below this one are together as wide as the first
_PLAIN = 2.0  # standard errors from which a curvature of the density is subtracted
_CROOKED = 0.2  # relative difference of densities that has other reasons
_TOO_MUCH = 3.0  # times the random variation: so much at places beside multiples means a coarse clock


@dataclass(frozen=True, slots=True)
class _Places:
    """Buckets at certain places of every step, shape (steps, places), and their neighbours."""

    at: NDArray[np.int64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    usable: NDArray[np.bool_]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    """Half a step below and above, ns."""

    def excess(self, values: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
        """Return the excess of the buckets over the mean density of their neighbours, its error, and that mean."""
        calls, width = values[self.at], _WIDTH[self.at]
        left, right = values[self.left] + 0.5, values[self.right] + 0.5
        before, after = left / _WIDTH[self.left], right / _WIDTH[self.right]
        # slopes are straight lines in log density, so the geometric mean is taken; half a call avoids 0
        slope = np.maximum(before, after) < _STEEP * np.minimum(before, after)
        expected = width * np.where(slope, np.sqrt(before * after), np.maximum(before, after))
        denser = np.where(before > after, left, right)
        zero = self.at == 0  # the neighbours of the first bucket are far narrower, so a stretch of its width is taken
        beside = float(values[1:_AS_WIDE].sum()) + 0.5
        expected, denser, slope = np.where(zero, beside, expected), np.where(zero, beside, denser), slope & ~zero
        variance = calls + expected**2 * np.where(slope, 0.25 * (1 / left + 1 / right), 1 / denser) + 1.0
        filled = self.usable & (calls + left + right > 1)
        return np.where(filled, calls - expected, 0.0), np.sqrt(variance), expected

    def local(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the calls within half a step."""
        below = np.concatenate(([0.0], np.cumsum(values)))
        return np.interp(self.high, _EDGES, below) - np.interp(self.low, _EDGES, below)


def rounding_steps(counts: NDArray[np.uint64]) -> tuple[float, ...]:
    """Return the steps to whose multiples some durations may have been rounded.

    Parameters
    ----------
    counts : ndarray of uint64, shape (BUCKETS,)

    Returns
    -------
    tuple of float
        Steps in ns, the most plausible first, at most ``_OTHERS`` more; none if none is evident.

    Notes
    -----
    The excess of a bucket with a multiple is its calls beyond the mean density of the nearest buckets without one. A
    step is evident if the sum of its excesses reaches ``_CLEAR`` standard errors, and two or three single ones are
    plain. Stouffer's sum is used, so a wide bucket counts no more than others. Of the steps that explain the most, the
    coarsest is taken.

    Places a third of a step to each side should have no excess. What both have in common is the curvature of the
    density, and is subtracted. Where they differ by more than random variation, the errors are widened, so that the
    multiples of an unknown clock are not taken for heaps.
    """
    values = counts.astype(np.float64)
    excess, error, expected = _MULTIPLE.excess(values)
    aside = [places.excess(values) for places in (_BEFORE, _AFTER)]
    local = _MULTIPLE.local(values)
    known = _MULTIPLE.usable & _BEFORE.usable & _AFTER.usable & (local > 0)
    ratios = [np.divide(beyond, mean, out=np.zeros_like(excess), where=known) for beyond, _, mean in aside]
    spread = [np.divide(its_error, mean, out=np.zeros_like(excess), where=known) for _, its_error, mean in aside]
    bend, its_error = 0.5 * (ratios[0] + ratios[1]), 0.5 * np.sqrt(spread[0] ** 2 + spread[1] ** 2)
    sure = np.abs(bend) > _PLAIN * its_error
    bent = np.where(sure, expected * bend, 0.0)
    error = np.sqrt(error**2 + np.where(sure, expected * its_error, 0.0) ** 2)
    teeth = np.where(known, (ratios[0] - ratios[1]) / np.sqrt(spread[0] ** 2 + spread[1] ** 2 + _CROOKED**2), 0.0)
    factor = np.maximum((teeth**2).sum(axis=1) / np.maximum(known.sum(axis=1), 1), 1.0)
    error = error * np.sqrt(np.where(factor > _TOO_MUCH, factor, 1.0))[:, None]
    small = known & (excess <= _MOST * local)
    excess = np.where(small, excess - bent, 0.0)
    single = np.divide(excess, error, out=np.zeros_like(excess), where=small)
    z = single.sum(axis=1) / np.sqrt(np.maximum(small.sum(axis=1), 1))
    plain = (single > _EACH).sum(axis=1)
    evident = np.zeros(len(STEPS_NS), dtype=bool)
    for least, clear in _CLEAR:
        evident |= (plain >= least) & (z >= clear)
    if not evident.any():
        return ()
    heaps = np.where(single > _EACH, np.minimum(single, _CERTAIN), 0.0)[:, 1:]  # every step has a heap at 0
    explained = np.where(evident, (heaps**2).sum(axis=1), -np.inf)
    most = float(explained.max())
    # parts of the true step have its heaps and random ones; multiples of it lack some of its heaps
    best = int(np.flatnonzero(explained >= most * (1 - _ALIKE) - _CHANCE)[-1])
    others = np.flatnonzero(explained >= most * (1 - _UNLIKE) - _DOUBT)
    nearest = sorted((i for i in others.tolist() if i != best), key=lambda i: (-float(explained[i]), i))
    return tuple(STEPS_NS[i] for i in (best, *nearest[:_OTHERS]))


def without_heaping(counts: ArrayLike, step: float) -> NDArray[np.float64]:
    """Return the counts with each heap spread over half a step to each side, like the other calls there.

    Parameters
    ----------
    counts : array_like of float, shape (BUCKETS,)
    step : float
        One of ``STEPS_NS``, or 0: nothing changes.

    Returns
    -------
    ndarray of float64, shape (BUCKETS,)
        The sum is the same.
    """
    values = np.array(counts, dtype=np.float64)
    if step not in STEPS_NS:
        return values
    row = STEPS_NS.index(step)
    excess, local = _MULTIPLE.excess(values)[0][row], _MULTIPLE.local(values)[row]
    heap = np.where(excess <= _MOST * local, np.maximum(excess, 0.0), 0.0)
    np.subtract.at(values, _MULTIPLE.at[row], heap)
    below = np.concatenate(([0.0], np.cumsum(values)))
    low, high = (np.interp(at[row], _EDGES, below)[:, None] for at in (_MULTIPLE.low, _MULTIPLE.high))
    # rounded calls are distributed like exact ones: in proportion to the calls in the half steps
    way = (np.clip(below, low, high) - low) / np.maximum(high - low, 1e-9)
    return np.asarray(values + np.diff(heap @ way))


def _places(parts: NDArray[np.float64], whole: bool) -> _Places:
    """Return the places at these multiples of each step.

    Whole multiples are compared with the nearest buckets without one. Other places are compared with their direct
    neighbours, and only if none of the three buckets holds a multiple.
    """
    steps = np.array(STEPS_NS)[:, None]
    values = steps * parts
    last = len(_WIDTH) - 1
    at = np.clip(np.searchsorted(_EDGES, values, side="right") - 1, 0, last)
    holds = np.floor((_EDGES[1:] - 0.5) / steps) > np.floor((_EDGES[:-1] - 0.5) / steps)
    holds[:, 0] = True
    left, right = np.maximum(at - 1, 0), np.minimum(at + 1, last)
    rows = np.arange(len(steps))[:, None]
    for _ in range(_FAR if whole else 0):
        left, right = left - (holds[rows, left] & (left > 0)), right + (holds[rows, right] & (right < last))
    left = np.where(values < _EDGES[1], right, left)  # nothing lies below 0
    usable = (_WIDTH[at] < steps) & (values < _EDGES[-1]) & ~holds[rows, left] & ~holds[rows, right]
    if not whole:
        usable &= ~holds[rows, at]
    return _Places(at, left, right, usable, np.maximum(values - 0.5 * steps, 0.0), values + 0.5 * steps)


_MULTIPLE = _places(np.arange(MULTIPLES + 1.0), whole=True)
_BEFORE = _places(np.abs(np.arange(MULTIPLES + 1.0) - 1 / 3), whole=False)
_AFTER = _places(np.arange(MULTIPLES + 1.0) + 1 / 3, whole=False)
