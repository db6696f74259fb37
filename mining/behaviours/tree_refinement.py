"""Groups of call paths as a few call edges tell them: the labels of paths of few calls freed of chance.

A grouping says what behaviours there are; which of them a path of few calls has, its own calls do not say. Were each
path taken at its word, a single misplaced one would change the smallest set of edges. So edges are chosen by what they
tell about all calls, and every path goes where the paths alike on these edges go together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .decision_tree import Trees
from .path_clustering import Rows

_ROUNDS = 10  # of new shares and new edges; two or three do


def refined_groups(present: NDArray[np.bool_], totals: Rows, labels: Sequence[int | None]) -> NDArray[np.int64] | None:
    """Return the group of each path by a few edges, given a grouping.

    Parameters
    ----------
    present : ndarray of bool, shape (paths, edges)
        Which path has which edge; the most preferred edge first, no two alike.
    totals : ndarray of float64, shape (paths, classes)
        Independent calls per path and class.
    labels : sequence of int or None
        Group of each path, from 0 without gaps; None where it is not known.

    Returns
    -------
    ndarray of int64, shape (paths,), or None
        Groups from 0 without gaps, in the order of their first paths; None if edges leave fewer than two.

    Notes
    -----
    A decision tree over a few edges puts each path in a group. It is the one of greatest likelihood less what its
    description is worth: the edges it may ask for, and at each fork the edge and a group (Quinlan and Rivest,
    Information and Computation 80, 1989). For given edges the best tree is found exactly, over all combinations of
    present, absent and not asked; the edges are looked for by a beam, then by adding, dropping and exchanging single
    ones while that helps. The groups' class shares are then taken from the leaves, until nothing changes.
    """
    own = np.array([-1 if label is None else label for label in labels])
    chosen: tuple[int, ...] = ()
    for turn in range(_ROUNDS):
        groups = np.unique(own[own >= 0])
        if len(groups) < 2 or present.shape[1] == 0:
            return None
        sums = np.array([totals[own == group].sum(axis=0) for group in groups]) + 0.5
        search = Trees(present, totals @ np.log(sums / sums.sum(axis=1, keepdims=True)).T)
        chosen = search.bettered(search.beam() if turn == 0 else chosen)
        told = _numbered(search.told(chosen))
        if np.array_equal(told, own):
            break
        own = told
    return own.astype(np.int64) if own.max() > 0 else None


def _numbered(groups: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the same groups numbered in the order in which they first come."""
    _, first, own = np.unique(groups, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[own.reshape(-1)]
