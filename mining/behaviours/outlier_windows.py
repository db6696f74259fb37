"""Windows in which the call paths behave as in the others.

Something else on the machine may slow down a window or two: there the shares of many paths are other than ever before
and after. What only one window shows is no behaviour, as a border that only one observation shows is none.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from specmine.mining.settings import MiningSettings
from specmine.mining.statistics.distributions import f_sf

_LEAST = 5  # calls of a path in a window that is asked
_WINDOWS = 5  # below, nothing is known of how much they vary
_SPARED = 0.25  # of the windows may be left out; if more stand out, that is how the function is
_MEDIAN = 0.455  # of chi-squared with one degree of freedom
_KNOWN = 0.5  # of the freedom: a median of few holds less than a mean


def typical_windows(windows: NDArray[np.int64], *, settings: MiningSettings) -> NDArray[np.bool_]:
    """Tell the windows in which shares are as in the others from those in which they are not.

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
    Of each window Pearson's chi-squared against the usual shares is summed over its paths. Calls of one window share
    their fate, so it counts as one degree of freedom, in units of the median over the windows: of ten, one that stands
    out has 126 times the usual, of twenty 59 times. The worst is left out and all is asked again.
    """
    usual = np.ones(len(windows), dtype=np.bool_)
    if len(windows) < _WINDOWS:
        return usual
    for _ in range(int(_SPARED * len(windows))):
        own = _apart(windows[usual])
        known = own[np.isfinite(own)]
        middle = float(np.median(known)) if len(known) >= _WINDOWS else 0.0
        if not middle:
            break
        worst = int(np.nanargmax(own))
        chance = f_sf(float(own[worst]) / middle * _MEDIAN, 1, _KNOWN * (len(known) - 1))
        if chance * len(known) >= settings.level:
            break
        usual[np.flatnonzero(usual)[worst]] = False
    return usual


def _apart(windows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return chi-squared of each window against what is usual by its degrees of freedom; NaN if it tells nothing.

    Usual are the medians of the paths' shares over the windows, which a few odd ones do not move.
    """
    own = windows.astype(np.float64)
    calls, both = own.sum(axis=2, keepdims=True), own.sum(axis=0)
    several = (both > 0).sum(axis=1)
    asked = (calls[..., 0] >= _LEAST) & (several > 1)
    shares = np.where(asked[..., None], own / np.maximum(calls, 1.0), np.nan)
    asked[:, asked.sum(axis=0) < _WINDOWS] = False
    with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # paths of which no window tells
        usual = np.nanmedian(shares, axis=0)
        usual /= usual.sum(axis=1, keepdims=True)
        expected = calls * both / both.sum(axis=1, keepdims=True)
        tells = asked[..., None] & (expected > 0)
        chi2 = np.where(tells, (own - calls * usual) ** 2 / expected, 0.0)
        freedom = np.where(asked, several - 1, 0).sum(axis=1)
        return np.asarray(chi2.sum(axis=(1, 2)) / freedom)
