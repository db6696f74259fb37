"""The design effect of each call path: how many of its calls are equivalent to one independent call.

Calls of one window share load and caches. Class counts of a path therefore vary more between windows than a
multinomial allows. The factor is 1 + (m - 1) rho where the shares themselves vary, with m calls a window and their
correlation rho (Williams, Applied Statistics 31, 1982). It is a constant where calls come in bunches of one class.
So a path of few calls loses little, and a path of many calls loses most. Counts divided by the design effect can be
tested like those of independent calls (Rao and Scott, Biometrics 48, 1992).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .class_shares import Dispersion

_LEAST = 5  # calls of a window that takes part
_WINDOWS = 3  # of a path that takes part
_CORRELATIONS = np.concatenate(([0.0], np.geomspace(1e-5, 0.5, 60)))
_KNOWN = 0.5  # share of the degrees of freedom that counts: a median is less exact, and two numbers are fitted


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignEffect:
    """How many calls of each path are equivalent to one independent call."""

    effects: tuple[float, ...]
    """Of each path, at least 1."""
    noise: Dispersion
    """Dispersion of counts divided by the effect: factor 1, with the degrees of freedom of the estimate."""

    def independent_calls(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return counts, shape (paths, classes), in independent calls."""
        return np.asarray(counts / np.array(self.effects, dtype=np.float64)[:, None])


def design_effect(windows: NDArray[np.int64]) -> DesignEffect:
    """Estimate the design effect of each path.

    Parameters
    ----------
    windows : ndarray of int64, shape (windows, paths, classes)
        Calls per window, path and class.

    Returns
    -------
    DesignEffect

    Notes
    -----
    Pearson's chi-squared between the windows of a path, divided by its degrees of freedom, is modelled as ``base`` +
    (m - 1) ``correlation``. Both numbers are the same for all paths of the function. They minimise the sum of absolute
    differences of logarithms, so a few paths that changed in between do not count as noise.
    """
    sizes = windows.sum(axis=2).astype(np.float64)
    ratios, means, freedom = _observed(windows)
    calls = sizes.sum(axis=0)
    more = (sizes**2).sum(axis=0) / np.maximum(calls, 1) - 1
    if not len(ratios):
        return DesignEffect(effects=(1.0,) * len(calls), noise=Dispersion())
    base, correlation = _fitted(ratios / (1 - 2 / (9 * freedom)) ** 3, means - 1, freedom)
    effect = np.maximum(base + correlation * more, 1.0)
    # if one path has more than half of the freedom, it alone is the median over paths, and is known as exactly
    freely = max(1.0, float(freedom.max()), _KNOWN * float(freedom.sum()))
    known = Dispersion() if (effect == 1).all() else Dispersion(freedom=freely)
    return DesignEffect(effects=tuple(effect.tolist()), noise=known)


def _observed(windows: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return, per path with enough calls: chi-squared by its degrees of freedom, calls a window, degrees of freedom."""
    per_path = []
    for path in range(windows.shape[1]):
        rows = windows[:, path].astype(np.float64)
        rows = rows[rows.sum(axis=1) >= _LEAST]
        rows = rows[:, rows.sum(axis=0) > 0]
        if len(rows) < _WINDOWS or rows.shape[1] < 2:
            continue
        size, total = rows.sum(axis=1), rows.sum()
        expected = np.outer(size, rows.sum(axis=0)) / total
        df = (rows.shape[0] - 1) * (rows.shape[1] - 1)
        chi2 = float(((rows - expected) ** 2 / expected).sum())
        per_path.append((chi2 / df, float(total - (size**2).sum() / total) / (len(rows) - 1), float(df)))
    table = np.array(per_path, dtype=np.float64).reshape(-1, 3)
    return table[:, 0], table[:, 1], table[:, 2]


def _fitted(ratios: NDArray[np.float64], more: NDArray[np.float64], weight: NDArray[np.float64]) -> tuple[float, float]:
    """Return base and correlation; of equally good pairs the one with the least correlation."""
    logs = np.log(np.maximum(ratios, 0.05))
    best, least = (1.0, 0.0), np.inf
    for correlation in _CORRELATIONS.tolist():
        left = ratios - correlation * more
        order = np.argsort(left, kind="stable")
        reached = np.cumsum(weight[order])
        base = max(1.0, float(left[order][np.searchsorted(reached, 0.5 * reached[-1])]))
        loss = float((weight * np.abs(logs - np.log(base + correlation * more))).sum())
        if loss < least - 1e-9:
            best, least = (base, correlation), loss
    return best
