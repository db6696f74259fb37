"""The slope of a measured quantity over time, with an interval that neighbouring samples do not make too narrow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from specmine.mining.statistics.student_t import t_quantile

STRETCHES = 12
"""Samples that follow each other are alike, means of long stretches hardly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slope:
    """Change of a quantity in one unit of time."""

    value: float
    low: float
    high: float


def slope(times: Sequence[float], values: Sequence[float], *, level: float = 0.95) -> Slope:
    """Return the least-squares slope through the means of twelve equal stretches of time.

    Parameters
    ----------
    times, values : sequences of float
        Samples in any regular order of time.
    level : float
        Of the interval: Student's t with ten degrees of freedom, for means that are independent.

    Returns
    -------
    Slope
        Unbounded where fewer than three stretches hold samples.
    """
    at, what = np.asarray(times, float), np.asarray(values, float)
    edges = np.linspace(at.min(), at.max(), STRETCHES + 1)
    stretch = np.clip(np.searchsorted(edges, at, side="right") - 1, 0, STRETCHES - 1)
    there = np.unique(stretch)
    if len(there) < 3:
        return Slope(value=0.0, low=float("-inf"), high=float("inf"))
    x = np.array([at[stretch == each].mean() for each in there])
    y = np.array([what[stretch == each].mean() for each in there])
    spread = ((x - x.mean()) ** 2).sum()
    value = float(((x - x.mean()) * (y - y.mean())).sum() / spread)
    rest = y - y.mean() - value * (x - x.mean())
    error = float(np.sqrt((rest**2).sum() / (len(x) - 2) / spread))
    reach = t_quantile(0.5 + level / 2, len(x) - 2) * error
    return Slope(value=value, low=value - reach, high=value + reach)
