"""Groups of call paths as a few call edges tell them: the labels of paths of few calls freed of chance.

A grouping says what behaviours there are; which of them a path of few calls has, its own calls do not say. Were each
path taken at its word, a single misplaced one would change the smallest set of edges. So edges are chosen by what they
tell about all calls, and every path goes where the paths alike on these edges go together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .behaviours import Rows

_ROUNDS = 10  # of new shares and new edges; two or three do
_MOST = 7  # edges of a tree
_BEAM = 8  # sets of edges that are kept of each size
_TRIED = 24  # edges that are asked whether a tree makes use of them: those that tell most if any use is free


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
        search = _Search(present, totals @ np.log(sums / sums.sum(axis=1, keepdims=True)).T)
        chosen = search.bettered(search.beam() if turn == 0 else chosen)
        told = _numbered(search.told(chosen))
        if np.array_equal(told, own):
            break
        own = told
    return own.astype(np.int64) if own.max() > 0 else None


@dataclass(frozen=True, slots=True, eq=False)
class _Search:
    """What sets of edges tell, given the log likelihood of each path in each group, shape (paths, groups)."""

    present: NDArray[np.bool_]
    likelihood: NDArray[np.float64]

    def price(self) -> float:
        """Return what it costs to name an edge of all."""
        return math.log(max(self.present.shape[1], 2))

    def fork(self, edges: int) -> float:
        """Return what it costs to say where the tree forks by which of so many edges, and a group."""
        return math.log(2 * max(edges, 1) * self.likelihood.shape[1])

    def beam(self) -> tuple[int, ...]:
        """Return the best set met when the best few of each size grow by one edge."""
        kept: list[tuple[int, ...]] = [()]
        best: tuple[int, ...] = ()
        value = self.value(best)
        while len(kept[0]) < _MOST:
            grown: dict[tuple[int, ...], float] = {}
            for chosen in kept:
                for told, edge in self.with_each(chosen):
                    grown[tuple(sorted((*chosen, edge)))] = told
            kept = sorted(grown, key=lambda each: (-grown[each], each))[:_BEAM]
            if not kept or grown[kept[0]] <= value:
                break
            best, value = kept[0], grown[kept[0]]
        return best

    def bettered(self, chosen: tuple[int, ...]) -> tuple[int, ...]:
        """Return a set that no single step betters; of steps that tell as much the first."""
        value = self.value(chosen)
        while True:
            fewer = [chosen[:i] + chosen[i + 1 :] for i in range(len(chosen))]
            steps = [(self.value(each), each) for each in fewer]
            for base in [chosen, *fewer] if len(chosen) < _MOST else fewer:
                steps += [(told, (*base, edge)) for told, edge in self.with_each(base)]
            better, following = max(steps, key=lambda step: step[0], default=(value, chosen))
            if better <= value + 1e-6:
                return tuple(sorted(chosen))
            chosen, value = following, better

    def value(self, chosen: tuple[int, ...]) -> float:
        """Return what a set tells, less its price."""
        k = len(chosen)
        tree = _best_trees(self._patterns(self.present[:, chosen])[..., None, :], self.fork(k))
        return float(tree[(2,) * k][0]) - self.price() * k

    def with_each(self, chosen: tuple[int, ...]) -> list[tuple[float, int]]:
        """Return the same for the set with one more edge, for those most promising, with the edge."""
        k = len(chosen) + 1
        yes = np.array([self._patterns(self.present[:, chosen], own) for own in self.likelihood.T])
        both = self._patterns(self.present[:, chosen])
        parts = np.stack([np.moveaxis(both, -1, 0)[..., None] - yes, yes], axis=1)  # group, with edge, patterns, edges
        free = parts.max(axis=0).reshape(-1, parts.shape[-1]).sum(axis=0)  # no tree tells more
        kept = [edge for edge in np.argsort(-free, kind="stable")[:_TRIED].tolist() if edge not in chosen]
        if not kept:
            return []
        tree = _best_trees(np.moveaxis(parts[..., kept], 0, -1), self.fork(k))
        return [(float(told) - self.price() * k, edge) for told, edge in zip(tree[(2,) * k], kept, strict=True)]

    def told(self, chosen: tuple[int, ...]) -> NDArray[np.intp]:
        """Return the group of each path by the best tree over these edges."""
        k = len(chosen)
        sums = _cubes(self._patterns(self.present[:, chosen]), k)
        tree = _best_trees(self._patterns(self.present[:, chosen])[..., None, :], self.fork(k))[..., 0]
        groups = np.zeros(len(self.present), dtype=np.intp)

        def walk(cube: tuple[int, ...], rows: NDArray[np.intp]) -> None:
            for axis in range(k):
                if cube[axis] == 2:
                    parts = [(*cube[:axis], side, *cube[axis + 1 :]) for side in (0, 1)]
                    if tree[parts[0]] + tree[parts[1]] - self.fork(k) >= tree[cube] - 1e-9 > sums[cube].max():
                        has = self.present[rows, chosen[axis]]
                        walk(parts[0], rows[~has])
                        walk(parts[1], rows[has])
                        return
            groups[rows] = int(np.argmax(sums[cube]))

        walk((2,) * k, np.arange(len(self.present)))
        return groups

    def _patterns(self, columns: NDArray[np.bool_], weight: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Return the likelihood of each pattern of columns, shape (2, ..., 2, groups), or by edge if weighted."""
        k = columns.shape[1]
        pattern = columns.astype(np.int64) @ (1 << np.arange(k, dtype=np.int64)[::-1])
        values = self.likelihood if weight is None else self.present * weight[:, None]
        order = np.argsort(pattern, kind="stable")
        first = np.flatnonzero(np.diff(pattern[order], prepend=-1))
        sums = np.zeros((1 << k, values.shape[1]))
        sums[pattern[order][first]] = np.add.reduceat(values[order], first, axis=0)
        return sums.reshape((2,) * k + (values.shape[1],))


def _cubes(patterns: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """Return the sums over all combinations of absent (0), present (1) and not asked (2), along the first k axes."""
    for axis in range(k):
        patterns = np.concatenate((patterns, patterns.sum(axis=axis, keepdims=True)), axis=axis)
    return patterns


def _best_trees(patterns: NDArray[np.float64], fork: float) -> NDArray[np.float64]:
    """Return the best value of a tree on each combination, shape (3, ..., sets), of patterns (2, ..., sets, groups)."""
    k = patterns.ndim - 2
    tree = _cubes(patterns, k).max(axis=-1)
    for _ in range(k):
        for axis in range(k):
            absent, present, either = np.moveaxis(tree, axis, 0)
            np.maximum(either, absent + present - fork, out=either)
    return np.asarray(tree)


def _numbered(groups: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the same groups numbered in the order in which they first come."""
    _, first, own = np.unique(groups, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[own.reshape(-1)]
