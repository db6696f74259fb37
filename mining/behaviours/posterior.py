"""How sure it is that a call path belongs to its behaviour, given its calls and what edges say of all others."""

from __future__ import annotations

import math
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from .decision_tree import MOST, Trees

_SETS = 40  # sets of edges nearly as good as the best that are looked at


def certainties(
    present: NDArray[np.bool_], likelihood: NDArray[np.float64], stated: tuple[int, ...], *, level: float
) -> NDArray[np.float64]:
    """Return how probable each group is for each path.

    Parameters
    ----------
    present : ndarray of bool, shape (paths, edges)
        Which path has which edge; no two alike.
    likelihood : ndarray of float64, shape (paths, groups)
        Logarithm of the probability of each path's calls in each group.
    stated : tuple of int
        The edges that the expressions use, ascending.
    level : float
        What is less probable is taken for impossible where other sets of edges are looked for.

    Returns
    -------
    ndarray of float64, shape (paths, groups)
        Rows add up to 1.

    Notes
    -----
    A group is as probable as all decision trees together that put the path there, each weighted by the likelihood of
    all calls and the length of its description: all trees over the stated edges, and over edges that tell nearly as
    much. Those are reached by adding, dropping and exchanging single edges as long as no more than the factor
    ``level`` is lost. Where only the calls of a few paths tell two edges apart, those paths are as uncertain as the
    choice of the edge is. With more edges than trees have, calls alone count.
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
