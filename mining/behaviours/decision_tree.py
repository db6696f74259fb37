"""Decision trees over a few call edges that put call paths in groups.

The value of a tree is its log likelihood less the length of its description.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

MOST = 7
"""Edges of a tree."""
_BEAM = 8  # sets of edges of each size that grow further
_TRIED = 24  # edges for which trees are computed: those of the greatest upper bound of the likelihood


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """The values of sets of edges."""

    present: NDArray[np.bool_]
    """Which path has which edge, shape (paths, edges)."""
    likelihood: NDArray[np.float64]
    """Log likelihood of each path in each group, shape (paths, groups)."""

    def price(self) -> float:
        """Return the description length of one edge."""
        return math.log(max(self.present.shape[1], 2))

    def fork(self, edges: int) -> float:
        """Return the description length of a fork: its place, its edge (of ``edges``) and a group."""
        return math.log(2 * max(edges, 1) * self.likelihood.shape[1])

    def beam(self) -> tuple[int, ...]:
        """Return the best set of a beam search: the best few sets of each size grow by one edge."""
        beam: list[tuple[int, ...]] = [()]
        best: tuple[int, ...] = ()
        value = self.value(best)
        while len(beam[0]) < MOST:
            grown: dict[tuple[int, ...], float] = {}
            for chosen in beam:
                for larger_value, edge in self.with_one_more(chosen):
                    grown[tuple(sorted((*chosen, edge)))] = larger_value
            beam = sorted(grown, key=lambda edges: (-grown[edges], edges))[:_BEAM]
            if not beam or grown[beam[0]] <= value:
                break
            best, value = beam[0], grown[beam[0]]
        return best

    def improved(self, chosen: tuple[int, ...]) -> tuple[int, ...]:
        """Return a set that no single step improves; of steps of equal value the first is taken."""
        value = self.value(chosen)
        while True:
            better, following = max(self.steps(chosen), key=lambda step: step[0], default=(value, chosen))
            if better <= value + 1e-6:
                return tuple(sorted(chosen))
            chosen, value = following, better

    def steps(self, chosen: tuple[int, ...]) -> list[tuple[float, tuple[int, ...]]]:
        """Return the sets with one edge less, one more, or one exchanged, with their values."""
        fewer = [chosen[:i] + chosen[i + 1 :] for i in range(len(chosen))]
        valued = [(self.value(edges), edges) for edges in fewer]
        for base in [chosen, *fewer] if len(chosen) < MOST else fewer:
            valued += [(value, (*base, edge)) for value, edge in self.with_one_more(base)]
        return valued

    def value(self, chosen: tuple[int, ...]) -> float:
        """Return the log likelihood of the best tree over a set, less the description length of both."""
        k = len(chosen)
        tree = _best_trees(self._patterns(self.present[:, chosen])[..., None], self.fork(k))
        return float(tree[(2,) * k][0]) - self.price() * k

    def with_one_more(self, chosen: tuple[int, ...]) -> list[tuple[float, int]]:
        """Return the values of the set with one more edge, and that edge, for the most promising edges."""
        k = len(chosen) + 1
        yes = np.array([self._patterns(self.present[:, chosen], of_group) for of_group in self.likelihood.T])
        both = self._patterns(self.present[:, chosen])
        parts = np.stack([np.moveaxis(both, -1, 0)[..., None] - yes, yes], axis=1)  # group, with edge, patterns, edges
        free = parts.max(axis=0).reshape(-1, parts.shape[-1]).sum(axis=0)  # no tree has a greater likelihood
        tried = [edge for edge in np.argsort(-free, kind="stable")[:_TRIED].tolist() if edge not in chosen]
        if not tried:
            return []
        tree = _best_trees(np.moveaxis(parts[..., tried], 0, -2), self.fork(k))
        return [(float(value) - self.price() * k, edge) for value, edge in zip(tree[(2,) * k], tried, strict=True)]

    def groups(self, chosen: tuple[int, ...]) -> NDArray[np.intp]:
        """Return the group of each path by the best tree over these edges."""
        k = len(chosen)
        sums = _cubes(self._patterns(self.present[:, chosen]), k)
        tree = _best_trees(self._patterns(self.present[:, chosen])[..., None], self.fork(k))[..., 0]
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

    def weights(self, chosen: tuple[int, ...]) -> NDArray[np.float64]:
        """Return the logarithm of the total weight of the trees that put a path in a group, shape (paths, groups).

        All trees over the set count. The weight of a tree is the exponential of its value.
        """
        k = len(chosen)
        columns = self.present[:, chosen]
        cubes = _cubes(self._patterns(columns), k)
        placed = _placed(cubes, _reached(_summed_trees(cubes, self.fork(k)), self.fork(k))) - self.price() * k
        return np.asarray(placed.reshape(-1, placed.shape[-1])[self._numbers(columns)])

    @staticmethod
    def _numbers(columns: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.asarray(columns.astype(np.int64) @ (1 << np.arange(columns.shape[1], dtype=np.int64)[::-1]))

    def _patterns(self, columns: NDArray[np.bool_], weight: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Return the likelihood of each pattern of columns, shape (2, ..., 2, groups); with a weight one per edge."""
        k = columns.shape[1]
        pattern = self._numbers(columns)
        values = self.likelihood if weight is None else self.present * weight[:, None]
        order = np.argsort(pattern, kind="stable")
        first = np.flatnonzero(np.diff(pattern[order], prepend=-1))
        sums = np.zeros((1 << k, values.shape[1]))
        sums[pattern[order][first]] = np.add.reduceat(values[order], first, axis=0)
        return sums.reshape((2,) * k + (values.shape[1],))


def _cubes(patterns: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """Return the sums over all combinations of absent (0), present (1) and either (2), along the first k axes."""
    sums = np.empty((3,) * k + patterns.shape[k:])
    sums[(slice(2),) * k] = patterns
    for axis in range(k):
        known = (*(slice(None),) * axis, slice(None), *(slice(2),) * (k - axis - 1))
        absent, present, either = np.moveaxis(sums[known], axis, 0)
        np.add(absent, present, out=either)
    return sums


def _best_trees(patterns: NDArray[np.float64], fork: float) -> NDArray[np.float64]:
    """Return the best value of a tree on each combination, shape (3, ..., sets), of patterns (2, ..., groups, sets)."""
    k, sets = patterns.ndim - 2, patterns.shape[-1]
    tree = _cubes(patterns, k).max(axis=-2).reshape(-1, sets)
    for combinations, parts in _smaller(k):
        forked = tree[parts[0]] + tree[parts[1]]  # shape (axes that may be asked first, combinations, sets)
        tree[combinations] = np.maximum(tree[combinations], forked.max(axis=0) - fork)
    return np.asarray(tree.reshape((3,) * k + (sets,)))


@cache
def _smaller(k: int) -> tuple[tuple[NDArray[np.intp], NDArray[np.intp]], ...]:
    """Return the combinations that leave 1, 2, ... k edges open, and what asking each of these edges makes of them.

    Both are numbers of combinations: of shapes (combinations,) and (absent or present, open edges, combinations).
    """
    size, where = _size(k).reshape(-1), np.indices((3,) * k).reshape(k, 3**k)
    found = []
    for asked in range(1, k + 1):
        combinations = np.flatnonzero(size == asked)
        open_edges = np.nonzero(where[:, combinations].T == 2)[1].reshape(-1, asked).T
        step = 3 ** (k - 1 - open_edges)  # "either" is 2, "absent" 0, "present" 1
        found.append((combinations, np.stack((combinations - 2 * step, combinations - step))))
    return tuple(found)


def _summed_trees(cubes: NDArray[np.float64], fork: float) -> NDArray[np.float64]:
    """Return the logarithm of the sum over all trees on each combination, shape (3, ...), of sums (3, ..., groups)."""
    k = cubes.ndim - 1
    alone = np.logaddexp.reduce(cubes, axis=-1)
    tree, size = alone.copy(), _size(k)
    for asked in range(1, k + 1):  # a tree over so many edges has trees over fewer below it
        grown = alone.copy()
        for axis in range(k):
            absent, present, _ = np.moveaxis(tree, axis, 0)
            parts = np.moveaxis(grown, axis, 0)
            parts[2] = np.logaddexp(parts[2], absent + present - fork)
        tree[size == asked] = grown[size == asked]
    return np.asarray(tree)


def _reached(tree: NDArray[np.float64], fork: float) -> NDArray[np.float64]:
    """Return the logarithm of the weight of all trees around a subtree on each combination, shape (3, ...)."""
    k = tree.ndim
    around, size = np.full(tree.shape, -np.inf), _size(k)
    around[(2,) * k] = 0.0
    for asked in range(k, 0, -1):
        parents = np.where(size == asked, around, -np.inf)
        for axis in range(k):
            forked = np.moveaxis(parents, axis, 0)[2] - fork
            below, sibling = np.moveaxis(around, axis, 0), np.moveaxis(tree, axis, 0)
            for side in (0, 1):
                below[side] = np.logaddexp(below[side], forked + sibling[1 - side])
    return around


def _placed(cubes: NDArray[np.float64], around: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the logarithm of the weight of all trees in which a pattern is in a group, shape (2, ..., groups)."""
    placed = around[..., None] + cubes
    for axis in range(around.ndim):
        absent, present, either = np.moveaxis(placed, axis, 0)
        placed = np.stack((np.logaddexp(absent, either), np.logaddexp(present, either)), axis=axis)
    return np.asarray(placed)


def _size(k: int) -> NDArray[np.int64]:
    """Return how many edges each combination leaves open, shape (3, ...)."""
    return np.asarray((np.indices((3,) * k) == 2).sum(axis=0))
