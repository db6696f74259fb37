"""Certainty: the share of all descriptions of the calls, by their weight, that put a path in a group."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from specmine.mining.behaviours.decision_tree import MOST, Trees
from specmine.mining.behaviours.posterior import certainties

LEVEL = 0.01


def trees_over(
    rows: list[int], edges: tuple[int, ...], present: NDArray[np.bool_], groups: int
) -> list[tuple[int, dict[int, int]]]:
    """Return all trees over paths that ask each edge at most once on a way: number of forks, group of each path."""
    found = [(0, dict.fromkeys(rows, group)) for group in range(groups)]
    for edge in edges:
        rest = tuple(other for other in edges if other != edge)
        yes = trees_over([row for row in rows if present[row, edge]], rest, present, groups)
        no = trees_over([row for row in rows if not present[row, edge]], rest, present, groups)
        found += [(1 + a + b, first | second) for (a, first), (b, second) in itertools.product(yes, no)]
    return found


def test_weights_are_those_of_all_trees_spelled_out() -> None:
    """Each tree over two edges is made; all patterns of them occur."""
    rng = np.random.default_rng(1)
    present = np.array([[a, b] for a in (False, True) for b in (False, True)] * 2)
    likelihood = rng.normal(-5, 2, (8, 2))
    search = Trees(present, likelihood)
    expected = np.zeros((8, 2))
    for forks, groups in trees_over(list(range(8)), (0, 1), present, 2):
        told = sum(likelihood[row, group] for row, group in groups.items())
        for row, group in groups.items():
            expected[row, group] += math.exp(told - forks * search.fork(2) - 2 * search.price())
    assert search.weights((0, 1)) == pytest.approx(np.log(expected))


def test_paths_on_which_edges_of_equal_worth_differ_are_uncertain() -> None:
    """Only a path of two calls, one of each class, tells the one edge from the other."""
    present = np.zeros((21, 2), dtype=bool)
    present[:10] = True
    present[20, 0] = True
    totals = np.array([[90.0, 10.0]] * 10 + [[10.0, 90.0]] * 10 + [[1.0, 1.0]])
    shares = np.array([[0.1, 0.9], [0.9, 0.1]])
    got = certainties(present, totals @ np.log(shares).T, (0,), level=LEVEL)
    assert got.sum(axis=1) == pytest.approx(1)
    assert got[:10, 1].min() > 0.999
    assert got[10:20, 0].min() > 0.999
    assert 0.3 < got[20, 0] < 0.7


def test_certain_paths_are_right_and_those_that_are_wrong_were_doubted() -> None:
    """Edges much like the true ones are about: no more is wrong than what is doubted, of certain paths hardly any."""
    sure = wrong_of_sure = doubtful = wrong_of_doubtful = 0
    doubt = 0.0
    for seed in range(40):
        rng = np.random.default_rng([7, seed])
        present = np.unique(rng.random((160, 14)) < 0.4, axis=0)[rng.permutation(60)]
        for edge, like in ((7, 3), (9, 5), (11, 3)):
            present[:, edge] = present[:, like] ^ (rng.random(60) < 0.05)
        truth = np.where(present[:, 3], 1, np.where(present[:, 5], 2, 0))
        calls = np.maximum(rng.pareto(1.2, 60) * 8, 1).astype(np.int64)
        slow = rng.binomial(calls, np.array([0.2, 0.45, 0.8])[truth])
        totals = np.stack((calls - slow, slow), axis=1).astype(np.float64)
        sums = np.array([totals[truth == group].sum(axis=0) for group in range(3)]) + 0.5
        likelihood = totals @ np.log(sums / sums.sum(axis=1, keepdims=True)).T
        search = Trees(present, likelihood)
        stated = search.improved(search.beam())
        likeliest = search.groups(stated)
        probable = certainties(present, likelihood, stated, level=LEVEL)[np.arange(60), likeliest]
        wrong, certain = likeliest != truth, probable >= 1 - LEVEL
        sure, wrong_of_sure = sure + int(certain.sum()), wrong_of_sure + int(wrong[certain].sum())
        doubtful, wrong_of_doubtful = doubtful + int((~certain).sum()), wrong_of_doubtful + int(wrong[~certain].sum())
        doubt += float((1 - probable).sum())
    assert sure > 1_000
    assert wrong_of_sure <= LEVEL * sure
    assert wrong_of_doubtful > 10
    assert wrong_of_doubtful / doubtful > 10 * max(wrong_of_sure, 1) / sure
    assert 0.5 * doubt < wrong_of_sure + wrong_of_doubtful < 1.5 * doubt


def test_with_more_edges_than_trees_have_calls_alone_count() -> None:
    """Nothing is asked of so many edges."""
    present = np.eye(MOST + 3, dtype=bool)
    likelihood = np.log(np.tile([0.25, 0.75], (MOST + 3, 1)))
    got = certainties(present, likelihood, tuple(range(MOST + 1)), level=LEVEL)
    assert got == pytest.approx(np.tile([0.25, 0.75], (MOST + 3, 1)))
