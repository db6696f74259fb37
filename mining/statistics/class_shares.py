"""The test whether two rows of class counts have the same shares, although calls of a window are not independent.

Calls inside one window share load, caches and state. So class counts vary more between windows than a multinomial
allows. The factor is the dispersion, estimated from neighbouring windows. Differences are tested in units of it
(quasi-likelihood: McCullagh and Nelder, Generalized Linear Models, 4.5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import numpy as np
from numpy.typing import ArrayLike

from .distributions import f_sf


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispersion:
    """The factor by which class counts vary more than those of independent calls, and how well it is known."""

    factor: float = 1.0
    """At least 1."""
    freedom: float = float("inf")
    """Degrees of freedom of the estimate."""


def homogeneity(first: ArrayLike, second: ArrayLike) -> tuple[float, int]:
    """Return Pearson's chi-squared between two rows of class counts, and its degrees of freedom.

    Classes empty in both rows are left out; an empty row gives (0, 0).
    """
    if len(np.atleast_1d(first)) < 2:
        return 0.0, 0
    # plain numbers are faster: there are two or three classes, and a chain needs some hundred tests
    pairs = [pair for pair in zip(_plain(first), _plain(second), strict=True) if pair[0] + pair[1] > 0]
    one, other = sum(a for a, _ in pairs), sum(b for _, b in pairs)
    if len(pairs) < 2 or one == 0 or other == 0:
        return 0.0, 0
    # both cells of a class differ from their expectations by the same number
    chi2 = sum((a * other - b * one) ** 2 / (a + b) for a, b in pairs) / (one * other)
    return chi2, len(pairs) - 1


def _plain(row: ArrayLike) -> list[float]:
    return [float(number) for number in np.asarray(row).tolist()]


def dispersion(windows: Sequence[ArrayLike]) -> Dispersion:
    """Estimate the dispersion from class counts of windows in the order of time.

    Parameters
    ----------
    windows : sequence of array_like, each of shape (classes,)

    Returns
    -------
    Dispersion
        The factor comes from the median difference of neighbouring windows, so a single change of level does not count
        as noise. With fewer than three windows the factor is 1.
    """
    ratios = []
    for first, second in pairwise(windows):
        chi2, df = homogeneity(first, second)
        if df:
            ratios.append((chi2 / df, df))
    if len(ratios) < 2:
        return Dispersion()
    df = max(d for _, d in ratios)
    middle = median(r for r, _ in ratios)
    # the median of chi2/df is near (1 - 2/(9 df))**3 (Wilson and Hilferty); half of the differences count as freedom,
    # since neighbours share a window and a median holds 0.64 of the information
    return Dispersion(factor=max(1.0, middle / (1 - 2 / (9 * df)) ** 3), freedom=max(1.0, 0.5 * len(ratios) * df))


def agreement(first: ArrayLike, second: ArrayLike, noise: Dispersion) -> float:
    """Return the p-value of equal class shares in two rows of class counts; 1 if nothing can be compared."""
    chi2, df = homogeneity(first, second)
    return f_sf(chi2 / df / noise.factor, df, noise.freedom) if df else 1.0
