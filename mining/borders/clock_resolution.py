"""Detection of the step of a coarse clock, or of rounding, in a histogram: its multiples are no classes.

Durations from a coarse clock are multiples of its step. People and tools round, too. The histogram then has narrow
peaks ("teeth") that look like classes. Only steps of known clocks and of decimal rounding are tested.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from specmine.model.buckets import BUCKET_EDGES, BUCKETS

from .heaping import rounding_steps

_CLOCKS_HZ = (25e6, 24e6, 19.2e6, 14.31818e6, 13e6, 12e6, 8e6, 3.579545e6, 32768.0, 1024.0, 300.0, 250.0)
_DECIMAL = tuple(m * 10.0**e for e in range(1, 9) for m in (1.0, 2.0, 2.5, 5.0))
STEPS_NS = tuple(sorted({*_DECIMAL, 4e6, *(1e9 / hertz for hertz in _CLOCKS_HZ)}))
"""Steps that can be detected, ns."""

_ERROR = 0.03  # probability that noise puts a bucket of a coarse clock on the wrong side
_CLEAR = 2.0  # standard errors from which a bucket counts as full or empty
_RIPPLE = 0.05  # least ripple of a clock if all durations are its multiples
_ENOUGH = 6.0  # log likelihood ratio: 1 in 400 without such a step, and only rough histograms are tested;
_PLAINLY = 4.5  # ... 1 in 90 for a step wider than buckets, whose teeth cannot be random heaps
_MANY = 10.0  # steps of a clock from which heaps are rounding, not its teeth
_AS_GOOD = 1.0  # of steps within this log likelihood of the best the coarsest is taken
_TEETH = 4  # full buckets that a step needs: two or three may be classes
_ASTRAY = 0.02  # share of durations that need not be multiples of a step
_MISSED = 50.0  # expected calls between multiples: if so many are missing, the clock is the reason
_FINER = 4 / 3  # least step in units of ripple x bucket width; the teeth of finer steps do not show


@dataclass(frozen=True, slots=True, kw_only=True)
class Grain:
    """The coarseness of durations."""

    clock_ns: float = 0.0
    """Step of the clock: all durations are multiples of it; 0 if none is evident."""
    heaping_ns: float = 0.0
    """Step to whose multiples some durations were rounded; 0 if none is evident."""
    perhaps_ns: tuple[float, ...] = ()
    """Other possible steps of rounding."""


def grain_of(counts: NDArray[np.uint64], *, above_ns: float = 0.0) -> Grain:
    """Return the steps that are evident in a histogram of at least one call; only those above ``above_ns`` matter."""
    clock = clock_step(counts, ripple=_RIPPLE)
    heaps, *others = rounding_steps(counts) or (0.0,)
    # buckets wider than a step always hold a multiple, and a few heaps in them may look like teeth; but only a clock
    # leaves buckets between its multiples empty
    if (
        clock
        and keeps_to(counts, clock)
        and (clock > _middle_width(counts) or heaps <= _MANY * clock or _empties(counts, clock))
    ):
        return Grain(clock_ns=clock)
    clock = clock_step(counts, above_ns=above_ns)
    # heaps look like the teeth of a clock of the same or a coarser step; a finer clock may have heaps on top
    return Grain(clock_ns=0.0 if 0 < heaps <= clock else clock, heaping_ns=heaps, perhaps_ns=tuple(others))


def _empties(counts: ArrayLike, step: float) -> bool:
    """Return whether buckets without a multiple of the step are empty, although many calls were expected there."""
    fine = _fine(step)
    without = np.flatnonzero(_multiples(BUCKET_EDGES[1:fine], BUCKET_EDGES[2 : fine + 1], step) == 0) + 1
    values = np.asarray(counts, dtype=np.float64)
    below = np.concatenate(([0.0], np.cumsum(values)))
    low, high = BUCKET_EDGES[without] - step, BUCKET_EDGES[without + 1] + step
    around = (np.interp(high, BUCKET_EDGES, below) - np.interp(low, BUCKET_EDGES, below)) / (high - low)
    expected = float((around * _WIDTH[without]).sum())
    return expected >= _MISSED and float(values[without].sum()) <= _ASTRAY * expected


def _middle_width(counts: ArrayLike) -> float:
    """Return the width of the bucket of the median, ns."""
    below = np.cumsum(np.asarray(counts, dtype=np.float64))
    return float(_WIDTH[int(np.searchsorted(below, 0.5 * below[-1]))])


def keeps_to(counts: ArrayLike, step: float) -> bool:
    """Return whether nearly all durations are multiples of the step, as far as buckets resolve it."""
    fine = _fine(step)
    calls = np.asarray(counts, dtype=np.float64)[1:fine]
    astray = calls[_multiples(BUCKET_EDGES[1:fine], BUCKET_EDGES[2 : fine + 1], step) == 0].sum()
    return fine > 1 and bool(astray <= _ASTRAY * calls.sum())


def _fine(step: float) -> int:
    """Return the first bucket that is too wide to show the step."""
    return int(np.searchsorted(np.diff(BUCKET_EDGES) * _FINER * _RIPPLE, step)) if step > 0 else 0


def clock_step(counts: ArrayLike, *, above_ns: float = 0.0, ripple: float = 0.15) -> float:
    """Return the step of which durations are multiples.

    Parameters
    ----------
    counts : array_like of float, shape (BUCKETS,)
        At least one call.
    above_ns : float
        Finer steps are not tested.
    ripple : float
        A bucket is full or empty if it differs from the density around it by this share. The finest step tested is a
        third more than this share of a bucket's width.

    Returns
    -------
    float
        The step in ns, 0 if none is evident.

    Notes
    -----
    For each step, each bucket of the bulk is compared with the mean density around it (one step to each side): it is
    full or empty. It also holds one multiple of the step more than its neighbours, or not. If durations are multiples
    of the step, exactly the full buckets hold one more. Otherwise a full bucket holds one more with the share of such
    buckets. The sum of the log likelihood ratios decides. Two or three teeth never suffice.
    """
    values = np.asarray(counts, dtype=np.float64)
    below = np.concatenate(([0.0], np.cumsum(values)))
    first = int(np.searchsorted(below, 0.02 * below[-1], side="right")) - 1
    last = max(int(np.searchsorted(below, 0.98 * below[-1], side="left")), first + 1)
    if not _is_rough(values[first:last]):
        return 0.0
    finest = max(above_ns, _FINER * ripple * float(BUCKET_EDGES[first + 1] - BUCKET_EDGES[first]))
    steps = (finest < _STEPS) & (BUCKET_EDGES[last] >= _STEPS)
    evidence = _evidence(values, below, first, last, steps, ripple)
    evident = evidence > np.where(_STEPS[steps] > _middle_width(values), _PLAINLY, _ENOUGH)
    if not evident.any():
        return 0.0
    return float(_STEPS[steps][np.flatnonzero(evident & (evidence >= evidence[evident].max() - _AS_GOOD))[-1]])


def _is_rough(values: NDArray[np.float64]) -> bool:
    """Return whether neighbouring buckets differ strongly, as teeth do; most histograms are smooth."""
    if values.size < 8:
        return False
    jump = np.abs(values[1:-1] - 0.5 * (values[:-2] + values[2:]))
    noise = np.sqrt(values[1:-1] + 0.25 * (values[:-2] + values[2:]) + 1.0)
    return int((jump > 2.5 * noise).sum()) >= 3


def _evidence(
    values: NDArray[np.float64],
    below: NDArray[np.float64],
    first: int,
    last: int,
    steps: NDArray[np.bool_],
    ripple: float,
) -> NDArray[np.float64]:
    """Return the log likelihood ratio of each tested step, over buckets first to last."""
    density = values[first:last] / _WIDTH[first:last]
    padded = np.concatenate((density[:1], density, density[-1:]))
    neighbours = 0.5 * (padded[:-2] + padded[2:])
    # slopes and edges of the distribution differ from the mean too; teeth also differ from their neighbours
    tested = np.flatnonzero(np.abs(density - neighbours) > ripple * neighbours)
    density, neighbours = density[tested], neighbours[tested]
    width, calls = _WIDTH[first + tested], values[first + tested]
    rows: tuple[NDArray[Any], ...] = np.ix_(steps, first + tested)
    expected = (_between(below, _RIGHT, rows) - _between(below, _LEFT, rows)) * (width / _AROUND[rows])
    deviation = (calls - expected) / np.sqrt(np.maximum(expected, 1.0))
    same_side = (density > neighbours) == (deviation > 0)
    fine = width * _FINER * ripple < _STEPS[steps][:, None]
    significant = (np.abs(deviation) > _CLEAR) & (expected >= 4.0) & fine & same_side
    agrees = (deviation > 0) == _HOLDS[rows]
    ratio = np.where(agrees, math.log(1 - _ERROR), math.log(_ERROR)) - _LIKELY[rows]
    teeth = (significant & agrees & _HOLDS[rows]).sum(axis=1)
    return np.where(teeth >= _TEETH, np.where(significant, ratio, 0.0).sum(axis=1), 0.0)


def _between(
    below: NDArray[np.float64], at: tuple[NDArray[np.int32], NDArray[np.float64]], rows: tuple[NDArray[Any], ...]
) -> NDArray[np.float64]:
    """Interpolate cumulative counts at places given by edge and fraction of the bucket."""
    edge, part = at[0][rows], at[1][rows]
    result: NDArray[np.float64] = below[edge] + part * (below[edge + 1] - below[edge])
    return result


def _multiples(
    low: NDArray[np.float64], high: NDArray[np.float64], step: float | NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return how many multiples of the step each bucket [low, high) holds, rounded to whole ns."""
    return np.asarray(np.floor((high - 0.5) / step) - np.floor((low - 0.5) / step), dtype=np.float64)


def _place(at: NDArray[np.float64]) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    edge = np.clip(np.searchsorted(BUCKET_EDGES, at, side="right") - 1, 0, BUCKETS - 1)
    return edge.astype(np.int32), np.asarray((at - BUCKET_EDGES[edge]) / _WIDTH[edge])


# constants of clock_step, for every bucket and every step
_STEPS = np.array(STEPS_NS)
_WIDTH = np.diff(BUCKET_EDGES)
_LEFT_NS, _RIGHT_NS = (
    np.clip(edge + side * np.maximum(_STEPS[:, None], 3 * _WIDTH), BUCKET_EDGES[0], BUCKET_EDGES[-1])
    for edge, side in ((BUCKET_EDGES[:-1], -1), (BUCKET_EDGES[1:], 1))
)
_AROUND = _RIGHT_NS - _LEFT_NS
_LEFT, _RIGHT = _place(_LEFT_NS), _place(_RIGHT_NS)
_HOLDS = _multiples(BUCKET_EDGES[:-1], BUCKET_EDGES[1:], _STEPS[:, None]) > np.floor(_WIDTH / _STEPS[:, None])
_CHANCE = np.clip(np.mod(_WIDTH / _STEPS[:, None], 1.0), _ERROR, 1.0 - _ERROR)
_LIKELY = np.log(np.where(_HOLDS, _CHANCE, 1.0 - _CHANCE))


def spread(counts: ArrayLike, step: float) -> NDArray[np.float64]:
    """Return the cumulative counts at the bucket edges, each duration spread over the step that it stands
    for.

    Parameters
    ----------
    counts : array_like of float, shape (BUCKETS,)
    step : float
        Step of the durations, ns; 0 for none.

    Returns
    -------
    ndarray of float64, shape (BUCKETS + 1,)
        Ascending. Buckets too wide to show the step, and those of durations that do not keep to it, stay as
        they are.
    """
    values = np.asarray(counts, dtype=np.float64)
    below = np.concatenate(([0.0], np.cumsum(values)))
    fine = _fine(step)
    if step <= 0 or not keeps_to(values, step):
        return below
    calls = values[1:fine]
    number = _multiples(BUCKET_EDGES[1:fine], BUCKET_EDGES[2 : fine + 1], step)
    heights = np.cumsum(np.repeat(calls / np.maximum(number, 1), number.astype(np.int64)), dtype=np.float64)
    first = np.floor((BUCKET_EDGES[1] - 0.5) / step) + 1
    knots = (first + np.arange(len(heights) + 1) - 0.5) * step
    heights = values[0] + np.concatenate(([0.0], heights * calls.sum() / max(float(heights[-1]), 1.0)))
    # the first bucket holds all that is shorter, 0 too
    inside = np.interp(BUCKET_EDGES[1 : fine + 1], [0.0, *knots], [0.0, *heights])
    return np.concatenate(([0.0], inside[:-1], below[fine:]))
