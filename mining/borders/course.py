"""How the level of a function goes over time, where windows differ by more than the calls inside them.

All calls together may then show a valley that no single window has: a mixture over time. Its levels may drift, follow
a wave of the load, or change between a few values. A drift may show no valley at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

import numpy as np
from numpy.typing import NDArray

from specmine.mining.statistics.level_step import undisturbed
from specmine.mining.statistics.location import Locations
from specmine.mining.statistics.student_t import two_sided_p

_LEAST = 8  # windows from which a drift or a wave can be told
_BLOCKS = 10  # blocks of windows, of which a drift is tested
_DRIFT = math.log(1.25)  # least drift over all windows, log units
_LEVEL = 0.01
_SIDE = 0.25  # share of the windows on either side of a valley: fewer may be disturbed
_MOSTLY = 0.75  # share of a window's calls on one side
_APART = 0.5  # variance of the shares below it, in units of the largest possible
_LIKE = 0.75  # least share of the variance that a course explains
_PERIODS = np.concatenate((np.arange(0.75, 3.0, 0.05), np.arange(3.0, 30.0, 0.25)))  # in all windows together


class Kind(StrEnum):
    """What the levels do."""

    MIXTURE = "mixture"
    DRIFT = "drift"
    WAVE = "wave"


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """How the level goes over the windows."""

    kind: Kind
    first_ns: float
    """Level of the first tenth of the windows for a drift, the lowest otherwise: median duration."""
    last_ns: float
    """Level of the last tenth for a drift, the highest otherwise."""
    span_ns: int
    """Length of all windows together, or the period of a wave."""


def drift_of(levels: Locations, span_ns: int) -> Course | None:
    """Return the drift of a series; None if it may wander as far by chance.

    Parameters
    ----------
    levels : ndarray of float64, shape (windows, 2)
        Location and its variance, log ns, oldest first.
    span_ns : int
        From the first window's start to the last one's end.

    Notes
    -----
    The median levels of ten blocks are taken. If they wandered at random, even without any force back, their
    differences would have mean 0: that is tested by Student's t at 1 %. So correlated levels are no drift.
    """
    values = levels[np.isfinite(levels[:, 0]), 0]
    if len(values) < _LEAST:
        return None
    blocks = [median(block.tolist()) for block in np.array_split(values, min(_BLOCKS, len(values)))]
    differences = np.diff(blocks)
    total = blocks[-1] - blocks[0]
    error = float(differences.std(ddof=1)) / math.sqrt(len(differences))
    if abs(total) < _DRIFT or two_sided_p(float(differences.mean()) / max(error, 1e-12), len(differences) - 1) > _LEVEL:
        return None
    return Course(kind=Kind.DRIFT, first_ns=math.exp(blocks[0]), last_ns=math.exp(blocks[-1]), span_ns=span_ns)


def mixture_of(levels: Locations, span_ns: int) -> Course:
    """Name the course of levels that differ by more than the calls of a window: drift, wave, or else a mixture.

    The course that explains most of the variance is named; a wave is a sine of the best period.
    """
    values = undisturbed(levels[np.isfinite(levels[:, 0]), 0])
    drift = drift_of(levels, span_ns)
    if drift is not None:
        return drift
    low, high = math.exp(float(np.quantile(values, 0.1))), math.exp(float(np.quantile(values, 0.9)))
    explained, cycles = _wave(values) if len(values) >= _LEAST else (0.0, 1.0)
    if explained >= max(_LIKE, _two_levels(values)):
        return Course(kind=Kind.WAVE, first_ns=low, last_ns=high, span_ns=round(span_ns / cycles))
    return Course(kind=Kind.MIXTURE, first_ns=low, last_ns=high, span_ns=span_ns)


def _wave(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the share of the variance that the best sine explains, and its number of periods."""
    at = (np.arange(len(values)) + 0.5) / len(values)
    most, best = 0.0, 1.0
    total = float(((values - values.mean()) ** 2).sum()) or 1.0
    for cycles in _PERIODS[len(values) / 4 >= _PERIODS].tolist():
        angle = 2 * np.pi * cycles * at
        design = np.stack((np.ones_like(at), np.sin(angle), np.cos(angle)), axis=1)
        rest = values - design @ np.linalg.lstsq(design, values, rcond=None)[0]
        explained = 1 - float((rest**2).sum()) / total
        if explained > most + 1e-9:
            most, best = explained, cycles
    return most, best


def _two_levels(values: NDArray[np.float64]) -> float:
    """Return the share of the variance that the best cut into two levels explains."""
    ordered = np.sort(values)
    total = float(((ordered - ordered.mean()) ** 2).sum()) or 1.0
    sums, count = np.cumsum(ordered), np.arange(1, len(ordered))
    between = (sums[:-1] / count - (sums[-1] - sums[:-1]) / (len(ordered) - count)) ** 2
    return float((between * count * (len(ordered) - count) / len(ordered)).max()) / total


def lies_between(rows: Sequence[Sequence[int]], below: float) -> bool:
    """Return whether a valley of all calls lies between windows: most are on one side of it each, some on either.

    Parameters
    ----------
    rows : sequence of (int, int)
        Calls of each window below and above.
    below : float
        Share of all calls below.
    """
    shares = np.array([low / max(low + high, 1) for low, high in rows])
    least = max(2, round(_SIDE * len(shares)))
    on_either = min(int((shares > _MOSTLY).sum()), int((shares < 1 - _MOSTLY).sum())) >= least
    # 1 if each window lies wholly on one side, 0 if all have the same share
    apart = float(((shares - below) ** 2).mean()) / max(below * (1 - below), 1e-9)
    return on_either and apart >= _APART
