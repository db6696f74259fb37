"""Lengths of statements: counts of small cases, one by one."""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import pytest

from specmine.mining.assertions.description_length import forks, log_partitions, log_statements


@pytest.mark.parametrize(("members", "parts"), [(1, 1), (4, 2), (5, 3), (6, 6), (7, 4)])
def test_partitions_are_counted(members: int, parts: int) -> None:
    """Each is a way to label the members, but for the names of the labels."""
    ways = {
        frozenset(frozenset(np.flatnonzero(np.array(labels) == part).tolist()) for part in range(parts))
        for labels in itertools.product(range(parts), repeat=members)
        if len(set(labels)) == parts
    }
    assert log_partitions(members, parts) == pytest.approx(math.log(len(ways)))


def test_more_parts_than_members_are_impossible() -> None:
    """No way has no logarithm but minus infinity."""
    assert log_partitions(2, 3) == -math.inf


@pytest.mark.parametrize("seed", range(20))
def test_the_smallest_tree_is_that_of_an_exhaustive_search(seed: int) -> None:
    """Random labels over four edges, some patterns never seen."""
    rng = np.random.default_rng(seed)
    patterns = rng.permutation(16)[: int(rng.integers(2, 16))].tolist()
    labels = dict(zip(patterns, rng.integers(0, 3, len(patterns)).tolist(), strict=True))

    @cache
    def least(left: frozenset[int]) -> int:
        if len({labels[pattern] for pattern in left}) < 2:
            return 0
        return min(
            1 + least(frozenset(p for p in left if p >> i & 1)) + least(frozenset(p for p in left if not p >> i & 1))
            for i in range(4)
            if 0 < sum(p >> i & 1 for p in left) < len(left)
        )

    assert forks(patterns, [labels[pattern] for pattern in patterns], 4) == least(frozenset(patterns))


def test_one_edge_costs_the_choice_of_it() -> None:
    """Two groups by one of forty edges: forty statements; no edge: one."""
    assert log_statements(1, 40, 1, 2) == pytest.approx(math.log(40))
    assert log_statements(0, 40, 0, 1) == 0.0
    assert log_statements(2, 40, 3, 2) > log_statements(2, 40, 2, 3) > log_statements(1, 40, 1, 2)
