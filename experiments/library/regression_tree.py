"""Regression trees over levels of load (CART, Breiman et al. 1984), small enough to be read. Pure.

A node splits where the squared error falls most, until a split gains little or a leaf would be a single
cell; a leaf says the mean of its cells. The thesis (section 6.4.3) uses R's ``rpart`` for the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_LEAST_GAIN = 0.01
_LEAST_LEAF = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A leaf, or a split: ``low`` holds what is at most ``bound`` in ``column``, ``high`` the rest."""

    value: float
    cells: int
    column: int = -1
    bound: float = 0.0
    low: Tree | None = None
    high: Tree | None = None

    def predict(self, levels: Sequence[float]) -> float:
        """Return the mean of the region that the levels lie in."""
        if self.low is None or self.high is None:
            return self.value
        return (self.low if levels[self.column] <= self.bound else self.high).predict(levels)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A leaf with the way to it."""

    conditions: tuple[tuple[int, str, float], ...]
    value: float
    cells: int

    def told(self, names: Sequence[str]) -> str:
        """Write the rule, such as ``cpu > 1: 1.75``."""
        way = " and ".join(f"{names[column]} {sign} {bound:g}" for column, sign, bound in self.conditions)
        return f"{way or 'always'}: {self.value:.4g}"


def grow(rows: Sequence[Sequence[float]], values: Sequence[float]) -> Tree:
    """Return the tree of these cells.

    Parameters
    ----------
    rows : sequence of sequence of float
        Levels, (n, columns), n >= 1.
    values : sequence of float
        What was found at them.
    """
    levels, found = np.asarray(rows, dtype=np.float64), np.asarray(values, dtype=np.float64)
    return _grown(levels, found, _LEAST_GAIN * max(1e-300, _error(found)))


def leaves(tree: Tree, conditions: tuple[tuple[int, str, float], ...] = ()) -> list[Rule]:
    """Return the rules of a tree, from the lowest levels up."""
    if tree.low is None or tree.high is None:
        return [Rule(conditions=conditions, value=tree.value, cells=tree.cells)]
    low = leaves(tree.low, (*conditions, (tree.column, "<=", tree.bound)))
    return low + leaves(tree.high, (*conditions, (tree.column, ">", tree.bound)))


def _grown(levels: np.ndarray, found: np.ndarray, least: float) -> Tree:
    mean, whole = float(found.mean()), _error(found)
    best: tuple[float, int, float] | None = None
    for column in range(levels.shape[1]):
        steps = np.unique(levels[:, column])
        for bound in (steps[:-1] + steps[1:]) / 2:
            low = levels[:, column] <= bound
            if min(np.count_nonzero(low), np.count_nonzero(~low)) < _LEAST_LEAF:
                continue
            gain = whole - _error(found[low]) - _error(found[~low])
            if gain > least and (best is None or gain > best[0] + 1e-12):
                best = gain, column, float(bound)
    if best is None:
        return Tree(value=mean, cells=len(found))
    _, column, bound = best
    low = levels[:, column] <= bound
    return Tree(
        value=mean,
        cells=len(found),
        column=column,
        bound=bound,
        low=_grown(levels[low], found[low], least),
        high=_grown(levels[~low], found[~low], least),
    )


def _error(values: np.ndarray) -> float:
    return float(((values - values.mean()) ** 2).sum())
