"""Typical windows: those in which the call paths behave as in the others. Outliers are left out.

Other load on the host may slow down a window or two. There the shares of many paths differ from all other windows.
What only one window shows is no behaviour, just as a border that only one observation shows is none.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from specmine.mining.settings import MiningSettings
from specmine.mining.statistics.distributions import f_sf

_LEAST = 5  # calls of a path in a window that takes part
_WINDOWS = 5  # with fewer, their variation is not known
_SPARED = 0.25  # share of the windows that may be left out; if more differ, the function itself varies
_MEDIAN = 0.455  # of chi-squared with one degree of freedom
_KNOWN = 0.5  # share of the degrees of freedom that counts: a median is less exact than a mean


def typical_windows(windows: NDArray[np.int64], *, settings: MiningSettings) -> NDArray[np.bool_]:
    """Return which windows are typical: their class shares are as in the others.

    Parameters
    ----------
    windows : ndarray of int64, shape (windows, paths, classes)
        Calls per window, path and class.
    settings : MiningSettings
        ``level``, divided by the number of windows.

    Returns
    -------
    ndarray of bool, shape (windows,)
        False for at most a quarter of them; all True where there are fewer than five.

    Notes
    -----
    Pearson's chi-squared of each window against the median shares is summed over its paths. Calls of one window are
    not independent, so the sum counts as one degree of freedom, in units of its median over the windows. Of ten
    windows, an outlier has 126 times the median; of twenty, 59 times. The worst is left out, and the test is repeated.
    """
    typical = np.ones(len(windows), dtype=np.bool_)
    if len(windows) < _WINDOWS:
        return typical
    for _ in range(int(_SPARED * len(windows))):
        distances = _distances(windows[typical])
        known = distances[np.isfinite(distances)]
        middle = float(np.median(known)) if len(known) >= _WINDOWS else 0.0
        if not middle:
            break
        worst = int(np.nanargmax(distances))
        p_value = f_sf(float(distances[worst]) / middle * _MEDIAN, 1, _KNOWN * (len(known) - 1))
        if p_value * len(known) >= settings.level:
            break
        typical[np.flatnonzero(typical)[worst]] = False
    return typical


def _distances(windows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return chi-squared of each window against the median shares by its degrees of freedom; NaN without enough calls.

    The medians of the paths' shares over the windows are robust against a few outliers.
    """
    counts = windows.astype(np.float64)
    calls, both = counts.sum(axis=2, keepdims=True), counts.sum(axis=0)
    several = (both > 0).sum(axis=1)
    asked = (calls[..., 0] >= _LEAST) & (several > 1)
    shares = np.where(asked[..., None], counts / np.maximum(calls, 1.0), np.nan)
    asked[:, asked.sum(axis=0) < _WINDOWS] = False
    with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # paths without a window of enough calls
        usual = np.nanmedian(shares, axis=0)
        usual /= usual.sum(axis=1, keepdims=True)
        expected = calls * both / both.sum(axis=1, keepdims=True)
        valid = asked[..., None] & (expected > 0)
        chi2 = np.where(valid, (counts - calls * usual) ** 2 / expected, 0.0)
        freedom = np.where(asked, several - 1, 0).sum(axis=1)
        return np.asarray(chi2.sum(axis=(1, 2)) / freedom)
