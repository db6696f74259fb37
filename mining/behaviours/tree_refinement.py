"""Groups of call paths by a few call edges, so that random labels of paths with few calls have no effect.

A grouping shows which behaviours exist. A path of few calls does not show which of them it has: one misplaced path
would change the smallest set of edges. So edges are chosen by the likelihood of all calls. Paths that are equal on
these edges get the same group.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .decision_tree import Trees
from .path_clustering import Rows

_ROUNDS = 10  # of new shares and new edges; two or three suffice


def refined_groups(present: NDArray[np.bool_], totals: Rows, labels: Sequence[int | None]) -> NDArray[np.int64] | None:
    """Return the group of each path by a few edges, given a grouping.

    Parameters
    ----------
    present : ndarray of bool, shape (paths, edges)
        Which path has which edge; the most preferred edge first, no two columns equal.
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
    A decision tree over a few edges puts each path in a group. It maximises the log likelihood less the length of its
    description (Quinlan and Rivest, Information and Computation 80, 1989). The description names the edges, and at
    each fork the edge and a group.

    For given edges the best tree is computed exactly, over all combinations of present, absent and either. The edges
    are searched by a beam search, then by adding, dropping and exchanging single ones while that helps. The groups'
    class shares are then taken from the leaves. This repeats until nothing changes.
    """
    groups = np.array([-1 if label is None else label for label in labels])
    chosen: tuple[int, ...] = ()
    for turn in range(_ROUNDS):
        known = np.unique(groups[groups >= 0])
        if len(known) < 2 or present.shape[1] == 0:
            return None
        sums = np.array([totals[groups == group].sum(axis=0) for group in known]) + 0.5
        search = Trees(present, totals @ np.log(sums / sums.sum(axis=1, keepdims=True)).T)
        chosen = search.improved(search.beam() if turn == 0 else chosen)
        refined = _numbered(search.groups(chosen))
        if np.array_equal(refined, groups):
            break
        groups = refined
    return groups.astype(np.int64) if groups.max() > 0 else None


def _numbered(groups: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the same groups numbered in the order of their first paths."""
    _, first, number = np.unique(groups, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[number.reshape(-1)]
