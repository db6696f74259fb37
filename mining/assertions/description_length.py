"""How long a statement is: the logarithm of the number of statements of its size.

It serves two purposes. Of several groupings the one is stated that makes the calls likely by a short statement
(Rissanen, Automatica 14, 1978). And a statement that was chosen among so many must be significant among so many.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

_EXACT = 10  # edges over which the smallest tree is computed; the time grows with three to their number


def forks(patterns: Sequence[int], labels: Sequence[int], edges: int) -> int:
    """Return how many forks the smallest decision tree has that puts each pattern in its group.

    Parameters
    ----------
    patterns : sequence of int
        Bit i: the path has edge i.
    labels : sequence of int
        Group of each pattern, below 62; equal patterns have the same.
    edges : int
        With more than 10, the number of different patterns less one is returned, which no tree exceeds.

    Notes
    -----
    The smallest trees of all combinations of present, absent and either are computed from those of fewer "either".
    """
    if edges > _EXACT:
        return len(set(patterns)) - 1
    seen = np.zeros((2,) * edges, dtype=np.int64)
    for pattern, label in zip(patterns, labels, strict=True):
        seen[tuple(pattern >> i & 1 for i in range(edges))] |= 1 << label
    for axis in range(edges):
        seen = np.concatenate((seen, np.bitwise_or.reduce(seen, axis=axis, keepdims=True)), axis=axis)
    tree = np.where(seen & (seen - 1), 1 << edges, 0)[..., None]  # with one axis more, parts are never single numbers
    for _ in range(edges):
        for axis in range(edges):
            absent, present, either = np.moveaxis(tree, axis, 0)
            np.minimum(either, 1 + absent + present, out=either)
    return int(tree[(2,) * edges][0])


def log_statements(edges: int, known: int, size: int, groups: int) -> float:
    """Return the natural logarithm of the number of statements of a size.

    Parameters
    ----------
    edges : int
        Distinct edges used.
    known : int
        Edges that distinguish paths.
    size : int
        Forks of the smallest decision tree (``forks``).
    groups : int
        Expressions.

    Notes
    -----
    It counts the choices of edges, the shapes of trees (Catalan numbers), the ways to ask each edge at some fork, and
    the ways to give the leaves to the groups.
    """
    if not edges:
        return 0.0
    size = max(size, edges)
    choices = _log_binomial(max(known, edges), edges)
    shapes = _log_binomial(2 * size, size) - math.log(size + 1)
    places = log_partitions(size, edges) + math.lgamma(edges + 1)
    return choices + shapes + places + log_partitions(size + 1, groups)


def log_partitions(members: int, parts: int) -> float:
    """Return the natural logarithm of the number of ways to part members in parts (Stirling, of the second kind).

    It is -inf if there is no way.
    """
    row = [1] + [0] * parts
    for _ in range(members):
        row = [0, *(row[k - 1] + k * row[k] for k in range(1, parts + 1))]
    return math.log(row[parts]) if row[parts] else -math.inf


def _log_binomial(whole: int, chosen: int) -> float:
    return math.lgamma(whole + 1) - math.lgamma(chosen + 1) - math.lgamma(whole - chosen + 1)
