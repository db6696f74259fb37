"""How many independent calls those of a call path are worth, given how much its class shares vary between windows.

Calls of one window share load and caches, so the class counts of a path vary more between windows than a multinomial
allows: by 1 + (m - 1) rho where the shares themselves vary (m calls a window, rho their correlation: Williams, Applied
Statistics 31, 1982), and by a constant where calls come in bunches of one class. A path of few calls then loses
little, a path of many calls most. Divided by this design effect, counts can be judged like those of independent
calls (Rao and Scott, Biometrics 48, 1992).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .class_shares import Dispersion

_LEAST = 5  # calls of a window that is asked
_WINDOWS = 3  # of a path that is asked
_CORRELATIONS = np.concatenate(([0.0], np.geomspace(1e-5, 0.5, 60)))
_KNOWN = 0.5  # of the degrees of freedom: medians hold less than means, and two numbers are fitted


@dataclass(frozen=True, slots=True, kw_only=True)
class Independence:
    """What the calls of each path are worth."""

    effect: tuple[float, ...]
    """Calls of each path that are worth one independent call, at least 1."""
    noise: Dispersion
    """Of counts divided by the effect: factor 1, with the degrees of freedom by which the effect is known."""

    def calls(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return counts, shape (paths, classes), in independent calls."""
        return np.asarray(counts / np.array(self.effect, dtype=np.float64)[:, None])


def independence(windows: NDArray[np.int64]) -> Independence:
    """Estimate the design effect of each path.

    Parameters
    ----------
    windows : ndarray of int64, shape (windows, paths, classes)
        Calls per window, path and class.

    Returns
    -------
    Independence

    Notes
    -----
    Pearson's chi-squared between the windows of a path by its degrees of freedom is taken for ``base`` +
    (m - 1) ``correlation``, the two numbers being the same for all paths of the function. They are those of the
    least sum of absolute differences of logarithms, so that a few paths that changed in between do not count as noise.
    """
    sizes = windows.sum(axis=2).astype(np.float64)
    ratios, means, freedom = _observed(windows)
    calls = sizes.sum(axis=0)
    own = (sizes**2).sum(axis=0) / np.maximum(calls, 1) - 1
    if not len(ratios):
        return Independence(effect=(1.0,) * len(calls), noise=Dispersion())
    base, correlation = _fitted(ratios / (1 - 2 / (9 * freedom)) ** 3, means - 1, freedom)
    effect = np.maximum(base + correlation * own, 1.0)
    # the median over paths is that of a single one, and known as well, if one alone has more than half of the freedom
    freely = max(1.0, float(freedom.max()), _KNOWN * float(freedom.sum()))
    known = Dispersion() if (effect == 1).all() else Dispersion(freedom=freely)
    return Independence(effect=tuple(effect.tolist()), noise=known)


def _observed(windows: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return chi-squared by its degrees of freedom, calls a window, and degrees of freedom of the paths that tell."""
    found = []
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
        found.append((chi2 / df, float(total - (size**2).sum() / total) / (len(rows) - 1), float(df)))
    table = np.array(found, dtype=np.float64).reshape(-1, 3)
    return table[:, 0], table[:, 1], table[:, 2]


def _fitted(ratios: NDArray[np.float64], more: NDArray[np.float64], weight: NDArray[np.float64]) -> tuple[float, float]:
    """Return base and correlation; of equally good ones those of the least correlation, which spare no path."""
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
