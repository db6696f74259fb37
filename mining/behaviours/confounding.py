"""Whether groups of calls differ within windows, or only because windows differ.

What calls reach, and how long they take, may both follow the load. Then calls that reached a callee are slower on the
whole, although in no window they are. So differences are taken within each window, and averaged (Mantel and Haenszel,
Journal of the National Cancer Institute 22, 1959; as differences of shares: Greenland and Robins, Biometrics 41, 1985).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray


def least_difference(windows: NDArray[np.int64], labels: Sequence[int | None]) -> tuple[float, float]:
    """Return the difference of the two groups that differ least: within windows, and over all windows together.

    Parameters
    ----------
    windows : ndarray of int64, shape (windows, paths, classes)
        Calls.
    labels : sequence of int or None
        Group of each path, from 0 without gaps.

    Returns
    -------
    tuple of float
        Largest difference of a class share, in [0, 1]; (1, 1) for a single group.
    """
    groups = max((label for label in labels if label is not None), default=0) + 1
    calls = np.zeros((len(windows), groups, windows.shape[2]))
    for path, label in enumerate(labels):
        if label is not None:
            calls[:, label] += windows[:, path]
    found = [_differences(calls[:, one], calls[:, other]) for one, other in combinations(range(groups), 2)]
    return min(found, default=(1.0, 1.0))


def _differences(one: NDArray[np.float64], other: NDArray[np.float64]) -> tuple[float, float]:
    n, m = one.sum(axis=1, keepdims=True), other.sum(axis=1, keepdims=True)
    weight = n * m / np.maximum(n + m, 1)
    difference = one / np.maximum(n, 1) - other / np.maximum(m, 1)
    within = (weight * difference).sum(axis=0) / max(float(weight.sum()), 1e-9)
    whole = one.sum(axis=0) / max(float(n.sum()), 1) - other.sum(axis=0) / max(float(m.sum()), 1)
    return float(np.abs(within).max()), float(np.abs(whole).max())
