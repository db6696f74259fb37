"""How well two groupings agree, beyond what chance would give: the adjusted mutual information.

Vinh, Epps and Bailey, Journal of Machine Learning Research 11, 2010: (MI - E[MI]) / (mean entropy - E[MI]), where the
expectation is over all groupings with the same sizes of groups.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .gamma import log_gamma

Labels = NDArray[np.int64]


def adjusted_mutual_information(first: Labels, second: Labels, weights: NDArray[np.int64]) -> float:
    """Return the agreement of two groupings: 1 for the same, about 0 for independent ones.

    Parameters
    ----------
    first, second : ndarray of int64, shape (points,)
        Group of each point.
    weights : ndarray of int64, shape (points,)
        How many times each point counts.
    """
    rows = np.unique(first, return_inverse=True)[1].reshape(-1)
    columns = np.unique(second, return_inverse=True)[1].reshape(-1)
    table = np.zeros((int(rows.max(initial=0)) + 1, int(columns.max(initial=0)) + 1), dtype=np.int64)
    np.add.at(table, (rows, columns), weights)
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    if min(table.shape, default=0) == max(table.shape, default=0) <= 1:
        return 1.0
    of_rows, of_columns, calls = table.sum(axis=1), table.sum(axis=0), int(table.sum())
    expected = _expected(of_rows, of_columns, calls)
    entropy = 0.5 * (_entropy(of_rows, calls) + _entropy(of_columns, calls))
    room = entropy - expected
    tiny = float(np.finfo(np.float64).eps)
    room = min(room, -tiny) if room < 0 else max(room, tiny)
    return (_information(table, calls) - expected) / room


def _entropy(sizes: NDArray[np.int64], calls: int) -> float:
    shares = sizes[sizes > 0] / calls
    return float(-(shares * np.log(shares)).sum())


def _information(table: NDArray[np.int64], calls: int) -> float:
    joint = table / calls
    independent = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    there = joint > 0
    return max(0.0, float((joint[there] * np.log(joint[there] / independent[there])).sum()))


def _expected(of_rows: NDArray[np.int64], of_columns: NDArray[np.int64], calls: int) -> float:
    """Return the mean mutual information of groupings with these sizes (equation 24a): sums over a hypergeometric."""
    factorials = log_gamma(np.arange(1, calls + 2))  # of 0!, 1!, ...
    total = 0.0
    for a in of_rows.tolist():
        for b in of_columns.tolist():
            both = np.arange(max(1, a + b - calls), min(a, b) + 1)
            chance = np.exp(
                factorials[a]
                + factorials[b]
                + factorials[calls - a]
                + factorials[calls - b]
                - factorials[calls]
                - factorials[both]
                - factorials[a - both]
                - factorials[b - both]
                - factorials[calls - a - b + both]
            )
            total += float((both / calls * np.log(calls * both / (a * b)) * chance).sum())
    return total
