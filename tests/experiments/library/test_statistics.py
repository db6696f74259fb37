"""Medians with intervals, clusters, regression trees: against closed forms and the field's own tools."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.tree import DecisionTreeRegressor

from specmine.experiments.library.regression_tree import grow, leaves
from specmine.experiments.library.statistics import clusters, median_interval, median_is_known


def test_the_interval_of_a_median_covers_it() -> None:
    """Of 400 samples of a skewed distribution at least 93 % of the intervals hold the true median."""
    random = np.random.default_rng(1)
    held = 0
    for _ in range(400):
        _, (low, high) = median_interval(random.exponential(1.0, 60))
        held += low <= np.log(2) <= high
    assert held >= 0.93 * 400


def test_enough_is_known_when_the_interval_is_narrow() -> None:
    """Steady values settle with the fewest, scattered ones do not."""
    assert median_is_known([4.0] * 60, at_least=60, half_width=0.02)
    assert not median_is_known([4.0] * 59, at_least=60, half_width=0.02)
    assert not median_is_known(np.linspace(1, 10, 60), at_least=60, half_width=0.02)


def test_clusters_are_the_longest_runs() -> None:
    """Two groups apart and a stray: both are found, the stray is in none."""
    values = [1.0, 1.1, 1.05, 5.0, 5.2, 1.02, 5.1, 9.0]
    found = clusters(values, diameter=0.5, smallest=2)
    assert [each.tolist() for each in found] == [[1.0, 1.02, 1.05, 1.1], [5.0, 5.1, 5.2]]


@given(st.lists(st.floats(0, 100), min_size=1, max_size=60), st.floats(0.01, 20))
def test_clusters_never_span_more_than_their_diameter(values: list[float], diameter: float) -> None:
    """Whatever the values, each is in at most one cluster, and none is wider than allowed."""
    found = clusters(values, diameter=diameter, smallest=1)
    assert sum(map(len, found)) == len(values)
    assert all(each[-1] - each[0] <= diameter + 1e-9 for each in found)


def test_a_tree_predicts_like_scikit_learns() -> None:
    """On a table of three resources the small tree explains as much as CART with as many leaves."""
    rows = [each for each in itertools.product((0, 1, 2), repeat=3) if each[0]]
    random = np.random.default_rng(2)
    values = np.array([1 + 0.8 * (a > 1) * (b > 0) + 0.3 * (c == 2) + random.normal(0, 0.005) for a, b, c in rows])
    tree = grow(rows, values.tolist())
    rules = leaves(tree)
    oracle = DecisionTreeRegressor(max_leaf_nodes=len(rules), min_samples_leaf=2, random_state=0).fit(rows, values)
    own = np.array([tree.predict(row) for row in rows])
    error, others = ((own - values) ** 2).sum(), ((oracle.predict(rows) - values) ** 2).sum()
    assert error <= 1.5 * others + 1e-6
    assert error <= 0.03 * ((values - values.mean()) ** 2).sum()
    assert sum(rule.cells for rule in rules) == len(rows)
    assert any("cpu > 1.5" in rule.told(("cpu", "memory", "disk")) for rule in rules)


def test_a_flat_table_is_one_leaf() -> None:
    """Where load changes nothing there is nothing to split."""
    rules = leaves(grow([(0, 0), (0, 1), (1, 0), (1, 1)], [1.0, 1.0, 1.0, 1.0]))
    assert [rule.told(("cpu", "memory")) for rule in rules] == ["always: 1"]
    assert rules[0].value == pytest.approx(1.0)
