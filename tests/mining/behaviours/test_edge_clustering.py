"""Paths of a few calls each, grouped by what their edges have in common."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from specmine.mining.behaviours.edge_clustering import pooled_groups
from specmine.mining.settings import MiningSettings
from specmine.mining.statistics.class_shares import Dispersion

S = MiningSettings()


def drawn(
    rng: np.random.Generator, present: NDArray[np.bool_], upper: NDArray[np.float64], calls: int = 5
) -> NDArray[np.float64]:
    """Draw a few calls for each path, with its share of the upper class."""
    number = rng.poisson(calls, len(present))
    slow = rng.binomial(number, upper)
    return np.stack((number - slow, slow), axis=1).astype(np.float64)


def test_an_edge_tells_where_no_path_could() -> None:
    """1,000 paths of five calls: the one edge of 40 that matters is found, and only it."""
    rng = np.random.default_rng(1)
    present = rng.random((1_000, 40)) < 0.3
    labels = pooled_groups(present, drawn(rng, present, np.where(present[:, 7], 0.6, 0.2)), Dispersion(), settings=S)
    assert np.array_equal(labels == labels[present[:, 7]][0], present[:, 7])
    assert set(labels.tolist()) == {0, 1}


def test_three_groups_of_two_edges_with_parts_alike_joined() -> None:
    """a: 0.9; b without a: 0.1; neither: 0.5. With b, a makes the same 0.9: no fourth group."""
    rng = np.random.default_rng(2)
    present = rng.random((2_000, 20)) < 0.4
    upper = np.where(present[:, 3], 0.9, np.where(present[:, 11], 0.1, 0.5))
    labels = pooled_groups(present, drawn(rng, present, upper), Dispersion(), settings=S)
    assert len(set(zip(labels.tolist(), upper.tolist(), strict=True))) == len(set(upper.tolist())) == 3


def test_alike_paths_stay_one_group() -> None:
    """In all but one of a hundred draws, over 100 edges; with shares that vary between windows too."""
    rng = np.random.default_rng(3)
    told = 0
    for factor in (1.0, 2.5):
        for _ in range(50):
            present = rng.random((300, 100)) < 0.3
            # the same variance as of calls in clusters of `factor`
            rows = drawn(rng, present, np.full(300, 0.4), 5) * int(factor)
            told += len(set(pooled_groups(present, rows, Dispersion(factor=factor), settings=S).tolist())) > 1
    assert told <= 2


def test_a_difference_below_the_minimum_is_none() -> None:
    """0.30 and 0.33 with a million calls."""
    present = np.array([[True], [False]])
    totals = np.array([[700_000.0, 300_000.0], [670_000.0, 330_000.0]])
    assert pooled_groups(present, totals, Dispersion(), settings=S).tolist() == [0, 0]


def test_no_edge_and_no_path_are_one_group() -> None:
    """Nothing to split by, nothing to split."""
    assert (
        pooled_groups(np.zeros((3, 0), dtype=bool), np.full((3, 2), 50.0), Dispersion(), settings=S).tolist() == [0] * 3
    )
    empty = np.zeros((0, 4), dtype=bool)
    assert pooled_groups(empty, np.zeros((0, 2)), Dispersion(), settings=S).tolist() == []
