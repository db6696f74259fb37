"""The probability of a call path's behaviour, given its own calls and those of paths with similar edges."""

from __future__ import annotations

import math
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from .decision_tree import MOST, Trees

_SETS = 40  # sets of edges, nearly as good as the best, over which trees are summed


def certainties(
    present: NDArray[np.bool_], likelihood: NDArray[np.float64], stated: tuple[int, ...], *, level: float
) -> NDArray[np.float64]:
    """Return how probable each group is for each path.

    Parameters
    ----------
    present : ndarray of bool, shape (paths, edges)
        Which path has which edge; no two columns are equal.
    likelihood : ndarray of float64, shape (paths, groups)
        Logarithm of the probability of each path's calls in each group.
    stated : tuple of int
        The edges that the expressions use, ascending.
    level : float
        Sets of edges that are less probable than this, relative to the best, are ignored.

    Returns
    -------
    ndarray of float64, shape (paths, groups)
        Rows add up to 1.

    Notes
    -----
    The probability of a group is the total weight of the decision trees that put the path there. Each tree is weighted
    by the likelihood of all calls and the length of its description. The sum runs over all trees over the stated edges,
    and over sets of edges that are nearly as good. Such sets are reached by adding, dropping and exchanging single
    edges, as long as the weight falls by no more than the factor ``level``. If only the calls of a few paths
    distinguish two edges, these paths are as uncertain as the choice of the edge. With more edges than a tree may have,
    only the path's own calls count.
    """
    if len(stated) > MOST:
        return _probabilities(likelihood)
    trees = Trees(present, likelihood)
    slack = -math.log(level)
    values = {stated: trees.value(stated)}
    waiting = [(-values[stated], stated)]
    total = np.full(likelihood.shape, -np.inf)
    for _ in range(_SETS):
        if not waiting:
            break
        _, chosen = heappop(waiting)
        total = np.logaddexp(total, trees.weights(chosen))
        for value, other in trees.steps(chosen):
            following = tuple(sorted(other))
            if following not in values and value >= max(values.values()) - slack:
                values[following] = value
                heappush(waiting, (-value, following))
    return _probabilities(total)


def _probabilities(logs: NDArray[np.float64]) -> NDArray[np.float64]:
    weight = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))
