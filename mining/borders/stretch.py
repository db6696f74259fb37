"""Recorded durations on a stretched log axis, so that narrow classes close together are distinguished.

Buckets are 3 % wide, which is enough for most functions, and all that a kernel counts. Where nearly all durations of a
recording lie close together, a power of them fills the same buckets over the same axis. The density of log durations
is only scaled by that, so valleys, their errors and their significance are the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from specmine.mining.statistics.location import Locations
from specmine.model.buckets import BUCKET_EDGES, bucket_of

from .raw_resolution import Resolution

_BULK = (0.01, 0.98)  # shares of the calls between which durations are close together
_ASIDE = 1.5  # ratio by which the axis reaches beyond on both sides; what lies farther out counts at its ends
_NARROW = 6.0  # greatest ratio of durations that are stretched
_LOW, _HIGH = math.log(float(BUCKET_EDGES[1])), math.log(float(BUCKET_EDGES[-2]))
_COARSE = 0.01  # of a low duration: steps above a third of a bucket show no more if they are stretched
STABLE_Z = 3.4
"""Least significance of a border of stretched durations: buckets no longer smooth the smallest windows."""
_LEAST = 1_000  # durations: fewer do not show more than buckets do


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A power of durations, times a factor."""

    power: float = 1.0
    log_factor: float = 0.0

    def buckets(self, durations_ns: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the buckets of stretched durations."""
        logs = self.power * np.log(np.maximum(durations_ns, 1e-3)) + self.log_factor
        return bucket_of(np.exp(np.clip(logs, 0.0, _HIGH + 0.1)))

    def duration_ns(self, stretched_ns: float) -> float:
        """Return the duration that became this one."""
        return math.exp((math.log(max(stretched_ns, 1.0)) - self.log_factor) / self.power)

    def levels(self, levels: Locations) -> Locations:
        """Return locations of stretched durations as those of the durations."""
        if self == NONE:
            return levels
        return np.stack(((levels[:, 0] - self.log_factor) / self.power, levels[:, 1] / self.power**2), axis=1)


NONE = Stretch()


def stretch_of(durations_ns: NDArray[np.float64], resolution: Resolution) -> Stretch:
    """Return the stretch for a sample of durations of this resolution.

    It is ``NONE`` where they are few, not close together, or hardly finer than buckets.
    """
    positive = durations_ns[durations_ns > 0]
    if len(positive) < _LEAST:
        return NONE
    low, high = (float(value) for value in np.quantile(positive, _BULK))
    first, last = resolution.cells(np.array([low]))
    if high > _NARROW * low or float(last[0] - first[0]) > _COARSE * low:
        return NONE
    power = (_HIGH - _LOW) / math.log(_ASIDE**2 * high / low)
    return Stretch(power=power, log_factor=_LOW - power * math.log(low / _ASIDE))
