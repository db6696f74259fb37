"""The test whether the level of a series of windows stepped, although windows vary and neighbours are alike.

The levels of windows are modelled as autoregressive of order one. A step is found by the ratio of likelihoods with and
without it, each at its own best correlation. The place of the step is free (Robbins, Gallagher, Lund and Aue, Journal
of Time Series Analysis 32, 2011). So wandering of a correlated series is no step, and a healthy program that varies
much needs a larger step.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .location import Locations

LEAST_STEP = float(np.log(1.1))
"""Smaller steps do not matter, in log units."""
_LEAST = 6  # windows from which a step can be told
_SIDE = 2  # windows on each side of a step: a single one may be disturbed
_CLEAR = 10.0  # log likelihood ratio that 1 % of series without a step reach, whatever their length and correlation
_CORRELATIONS = np.array([0.0, 0.2, 0.4, 0.55, 0.7, 0.8, 0.88, 0.94, 0.97])
_NEWEST = 40  # windows tested at once
_OUTLIER = 3.0  # robust standard deviations from the median with both neighbours
_FLOOR = 1e-4  # variance that levels have at least: 1 %


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step of the level."""

    first: int
    """Number of the first window after it."""
    size: float
    """Log factor from the windows before to those after."""


def newest_step(levels: Locations) -> Step | None:
    """Return the newest step in a series of levels; None if there is none.

    Parameters
    ----------
    levels : ndarray of float64, shape (windows, 2)
        Location and its sampling variance, log ns, oldest first; windows that are not a number are passed over.

    Notes
    -----
    Series of more than 40 windows are tested in stretches that overlap by half, from the newest back. A single window
    that lies far from both its neighbours is replaced by their median: something else disturbed it.
    """
    known = np.flatnonzero(np.isfinite(levels[:, 0]))
    values, variances = levels[known, 0], levels[known, 1]
    end = len(values)
    while end >= _LEAST:
        begin = max(0, end - _NEWEST)
        found = _newest_of(values, variances, begin, end)
        if found is not None:
            return Step(first=int(known[found.first]), size=found.size)
        if begin == 0:
            return None
        end -= _NEWEST // 2
    return None


def _newest_of(values: NDArray[np.float64], variances: NDArray[np.float64], begin: int, end: int) -> Step | None:
    """Return the newest step within [begin, end): after one is found the windows after it are tested alone."""
    newest = None
    while end - begin >= _LEAST:
        cleaned = undisturbed(values[begin:end])
        if float(np.ptp(cleaned)) < LEAST_STEP:
            break
        step = _likeliest(cleaned, median(variances[begin:end].tolist()) + _FLOOR)
        if step is None:
            break
        begin += step.first
        newest = Step(first=begin, size=step.size)
    return newest


def undisturbed(values: NDArray[Any]) -> NDArray[np.float64]:
    """Return a series in which values far from both neighbours are replaced by the median of the three."""
    if len(values) < _LEAST:
        return values
    # the first and the last value are compared with the two next to them
    before, after = np.concatenate((values[2:3], values[:-1])), np.concatenate((values[1:], values[-3:-2]))
    middle = np.maximum(np.minimum(before, values), np.minimum(np.maximum(before, values), after))
    usual = median(np.abs(np.diff(values)).tolist()) * 1.4826 / np.sqrt(2)
    return np.where(np.abs(values - middle) > _OUTLIER * usual, middle, values)


@dataclass(frozen=True, slots=True, eq=False)
class _Design:
    """Whitened regressors for each correlation, of one length of series."""

    constant: NDArray[np.float64]
    """Of shape (correlations, windows)."""
    steps: NDArray[np.float64]
    """Less their part along the constant, shape (correlations, places, windows)."""
    squares: NDArray[np.float64]
    determinant: NDArray[np.float64]
    """Half the log determinant of the whitening, per correlation."""


@lru_cache(maxsize=64)
def _design(length: int) -> _Design:
    places = np.arange(_SIDE, length - _SIDE + 1)
    steps = _whitened((np.arange(length) >= places[:, None]).astype(np.float64))
    constant = _whitened(np.ones((1, length)))[:, 0]
    along = np.einsum("cpw,cw->cp", steps, constant) / (constant**2).sum(axis=1)[:, None]
    steps = steps - along[:, :, None] * constant[:, None]
    return _Design(
        constant=constant,
        steps=steps,
        squares=(steps**2).sum(axis=2),
        determinant=0.5 * np.log1p(-(_CORRELATIONS**2)),
    )


def _whitened(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return rows, shape (rows, windows), whitened by each correlation, shape (correlations, rows, windows)."""
    phi = _CORRELATIONS[:, None, None]
    return np.concatenate(
        (np.sqrt(1 - phi**2) * rows[None, :, :1], rows[None, :, 1:] - phi * rows[None, :, :-1]), axis=2
    )


def _likeliest(values: NDArray[np.float64], floor: float) -> Step | None:
    """Return the likeliest step if it is significant and large enough."""
    length = len(values)
    design = _design(length)
    errors = _whitened((values - values.mean())[None, :])[:, 0]
    constant = design.constant
    errors = errors - (errors * constant).sum(axis=1)[:, None] / (constant**2).sum(axis=1)[:, None] * constant
    without = (errors**2).sum(axis=1)
    product = np.einsum("cpw,cw->cp", design.steps, errors)
    with_step = without[:, None] - product**2 / design.squares
    # no series varies less than its calls allow
    null = design.determinant - 0.5 * length * np.log(np.maximum(without, (length - 1) * floor))
    other = design.determinant[:, None] - 0.5 * length * np.log(np.maximum(with_step, (length - 2) * floor))
    row, column = divmod(int(np.argmax(other)), other.shape[1])
    size = float(product[row, column] / design.squares[row, column])
    if other[row, column] - null.max() < _CLEAR or abs(size) < LEAST_STEP:
        return None
    return Step(first=_SIDE + column, size=size)
