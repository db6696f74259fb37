"""Variance components of nested random effects: host / build / lifetime / window / call, unbalanced.

Estimates are unbiased, so they can be negative where a level adds nothing; they are reported as they are and
taken as 0 where a variance is needed. Searle, Casella and McCulloch, Variance Components, 1992, chapter 5
(Henderson's method 1).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """One group of the finest level: the calls of one lifetime, say."""

    labels: tuple[Hashable, ...]
    """Of each level from the coarsest to this group's own, e.g. (build, lifetime)."""
    calls: int
    mean: float
    variance: float = 0.0
    """Of the calls inside, divisor calls - 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """One level's part of the variance."""

    variance: float
    """Unbiased, possibly negative."""
    freedom: float
    """Satterthwaite's degrees of freedom of the estimate; 0 if there are none."""
    groups: int

    @property
    def at_least_zero(self) -> float:
        """The variance, 0 if its estimate is negative."""
        return max(0.0, self.variance)


def components(leaves: Sequence[Leaf]) -> tuple[Component, ...]:
    """Split the variance of calls among nested levels.

    Parameters
    ----------
    leaves : sequence of Leaf
        With the same number of labels each; groups are distinguished by all labels up to their level.

    Returns
    -------
    tuple of Component
        One per label, coarsest first, then the calls. NaN where a level has no degree of freedom.
    """
    if not leaves:
        raise ValueError("no leaves to split the variance of")
    depth = len(leaves[0].labels)
    sizes = np.array([leaf.calls for leaf in leaves], dtype=np.float64)
    sums = sizes * np.array([leaf.mean for leaf in leaves])
    grouped = [_codes([leaf.labels[:level] for leaf in leaves]) for level in range(depth + 1)]
    calls = [np.bincount(codes, sizes).astype(np.float64) for codes in grouped]
    totals = [np.bincount(codes, sums) for codes in grouped]
    centre = float(sums.sum() / sizes.sum())  # squares around the mean lose no digits
    squares = [float((n * (t / n - centre) ** 2).sum()) for n, t in zip(calls, totals, strict=True)]
    inside = float(sum((leaf.calls - 1) * leaf.variance for leaf in leaves))
    steps = [*np.diff(squares).tolist(), inside]
    counts = [len(n) for n in calls] + [int(sizes.sum())]
    freedom = np.diff(counts).tolist()
    weight = _expected(grouped, calls, depth)
    means = [step / df if df > 0 else float("nan") for step, df in zip(steps, freedom, strict=True)]
    return _solved(means, freedom, weight, counts)


def _codes(keys: Sequence[Hashable]) -> NDArray[np.int64]:
    known: dict[Hashable, int] = {}
    return np.array([known.setdefault(key, len(known)) for key in keys], dtype=np.int64)


def _expected(
    grouped: Sequence[NDArray[np.int64]],
    calls: Sequence[NDArray[np.float64]],
    depth: int,
) -> list[list[float]]:
    """Return how often each level's variance occurs in each level's expected sum of squares."""
    whole = [
        [float((n_fine**2 / calls[coarse][_parent(grouped[fine], grouped[coarse], len(n_fine))]).sum())
         for fine, n_fine in enumerate(calls)]
        for coarse in range(depth + 1)
    ]  # fmt: skip
    # a level no finer than the grouping appears once a call
    total = float(calls[0][0])
    rows = [
        [total if fine <= coarse else whole[coarse][fine] for fine in range(depth + 1)] for coarse in range(depth + 1)
    ]
    return [
        [rows[step][level] - rows[step - 1][level] for level in range(1, depth + 1)] for step in range(1, depth + 1)
    ]


def _parent(
    fine: NDArray[np.int64],
    coarse: NDArray[np.int64],
    groups: int,
) -> NDArray[np.int64]:
    parent = np.zeros(groups, dtype=np.int64)
    parent[fine] = coarse
    return parent


def _solved(
    means: Sequence[float], freedom: Sequence[int], weight: Sequence[Sequence[float]], counts: Sequence[int]
) -> tuple[Component, ...]:
    """Solve for the components from the finest level up; each is a linear combination of mean squares."""
    levels = len(means)
    # rows: the component of a level as coefficients of the mean squares
    solution = np.zeros((levels, levels))
    solution[-1, -1] = 1.0
    for step in range(levels - 2, -1, -1):
        df = freedom[step]
        if df <= 0:
            solution[step] = np.nan
            continue
        row = np.zeros(levels)
        row[step] = 1.0
        row -= solution[-1]  # every mean square contains the calls' variance once
        for level in range(step + 1, levels - 1):
            row -= weight[step][level] / df * np.nan_to_num(solution[level])
        solution[step] = row / (weight[step][step] / df)
    found = []
    for step in range(levels):
        if freedom[step] <= 0:
            found.append(Component(variance=float("nan"), freedom=0.0, groups=counts[step + 1]))
            continue
        parts = np.array([c * m if c else 0.0 for c, m in zip(solution[step], means, strict=True)])
        value = float(parts.sum())
        spread = float(sum(p * p / df for p, df in zip(parts, freedom, strict=True) if df > 0))
        found.append(
            Component(variance=value, freedom=value * value / spread if spread > 0 else 0.0, groups=counts[step + 1])
        )
    return tuple(found)
