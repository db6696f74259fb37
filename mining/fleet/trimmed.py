"""Trimmed means over hosts, with intervals: a few hosts that lie, or are broken, hardly move them.

Yuen (1974): the mean without the lowest and the highest hosts, its error from the winsorised variance. Values are
logarithms of durations, so a difference is a factor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from specmine.mining.statistics.student_t import t_quantile, two_sided_p

TRIM = 0.1
"""Share of the hosts left out at either end."""
FEWEST = 3
"""Values from which a difference between hosts can be told from nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimmedMean:
    """A mean over hosts."""

    mean: float
    error: float
    """Its standard error."""
    freedom: float
    """Degrees of freedom of the error."""
    deviation: float
    """Standard deviation between hosts, the outermost ones drawn in."""
    number: int
    """Of values, those left out included."""

    def interval(self, level: float) -> tuple[float, float]:
        """Return the interval that holds the mean over all hosts that could have been drawn, with a probability."""
        half = t_quantile(0.5 + 0.5 * level, self.freedom) * self.error
        return self.mean - half, self.mean + half


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How far two trimmed means lie apart."""

    value: float
    error: float
    freedom: float
    """Satterthwaite's."""
    p_value: float
    """Two-sided, of a difference this large although there is none."""

    def interval(self, level: float) -> tuple[float, float]:
        """Return the interval of the difference."""
        half = t_quantile(0.5 + 0.5 * level, self.freedom) * self.error
        return self.value - half, self.value + half


def trimmed_mean(values: ArrayLike, trim: float = TRIM) -> TrimmedMean | None:
    """Return the trimmed mean of values; None if fewer than ``FEWEST`` are left to tell its error.

    Parameters
    ----------
    values : array_like
        One for each host.
    trim : float
        Share left out at either end, rounded down to whole hosts.
    """
    ordered = np.sort(np.asarray(values, np.float64))
    number = len(ordered)
    cut = int(trim * number)
    kept = number - 2 * cut
    if kept < FEWEST:
        return None
    winsorised = np.clip(ordered, ordered[cut], ordered[number - 1 - cut])
    squares = float(np.sum((winsorised - winsorised.mean()) ** 2))
    return TrimmedMean(
        mean=float(ordered[cut : number - cut].mean()),
        error=math.sqrt(squares / (kept * (kept - 1))),
        freedom=kept - 1.0,
        deviation=math.sqrt(squares / (number - 1)),
        number=number,
    )


def difference(base: TrimmedMean, new: TrimmedMean) -> Difference:
    """Return by how much the mean of one group of hosts lies above that of another (Yuen's test)."""
    parts = base.error**2, new.error**2
    error = math.sqrt(sum(parts))
    divisor = parts[0] ** 2 / base.freedom + parts[1] ** 2 / new.freedom
    freedom = sum(parts) ** 2 / divisor if divisor else base.freedom + new.freedom
    value = new.mean - base.mean
    p_value = two_sided_p(value / error, freedom) if error else float(value == 0.0)
    return Difference(value=value, error=error, freedom=freedom, p_value=p_value)
