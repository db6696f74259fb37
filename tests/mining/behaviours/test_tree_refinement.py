"""Refining: every path goes where the few edges that tell most of the calls put it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from specmine.mining.behaviours.tree_refinement import refined_groups


def drawn(
    rng: np.random.Generator, shares: NDArray[np.float64], *, paths: int = 60, edges: int = 14
) -> tuple[NDArray[np.bool_], NDArray[np.float64], NDArray[np.int64]]:
    """Draw paths of skewed weight with behaviours by edges 3 and 5; edges, calls per class, behaviours."""
    present = np.unique(rng.random((4 * paths, edges)) < 0.4, axis=0)[rng.permutation(paths)]
    truth = np.where(present[:, 3], 1, np.where(present[:, 5], 2, 0))
    calls = np.maximum(rng.pareto(1.2, len(present)) * 40, 1).astype(np.int64)
    slow = rng.binomial(calls, shares[truth])
    return present, np.stack((calls - slow, slow), axis=1).astype(np.float64), truth


def alike(first: NDArray[np.int64], second: NDArray[np.int64]) -> bool:
    """Return whether two groupings are the same but for the numbers."""
    pairs = set(zip(first.tolist(), second.tolist(), strict=True))
    return len(pairs) == len(set(first.tolist())) == len(set(second.tolist()))


@pytest.mark.parametrize("seed", range(10))
def test_misplaced_paths_of_few_calls_go_where_their_edges_put_them(seed: int) -> None:
    """A third of the paths of under 40 calls is put anywhere, a third nowhere: all are found again."""
    rng = np.random.default_rng(seed)
    present, totals, truth = drawn(rng, np.array([0.1, 0.5, 0.9]))
    light = totals.sum(axis=1) < 40
    labels: list[int | None] = [
        (int(rng.integers(3)), None, int(group))[int(rng.integers(3))] if few else int(group)
        for group, few in zip(truth, light, strict=True)
    ]
    got = refined_groups(present, totals, labels)
    assert got is not None
    assert alike(got, truth)


def test_the_set_of_edges_is_the_best_of_all() -> None:
    """Against each set of at most three of ten edges: none tells more, less what edges cost, at the same shares."""
    for seed in range(5):
        rng = np.random.default_rng([1, seed])
        present, totals, truth = drawn(rng, np.array([0.2, 0.5, 0.8]), paths=40, edges=10)
        got = refined_groups(present, totals, truth.tolist())
        assert got is not None
        sums = np.array([totals[got == group].sum(axis=0) for group in range(got.max() + 1)]) + 0.5
        likelihood = totals @ np.log(sums / sums.sum(axis=1, keepdims=True)).T

        def told(
            chosen: tuple[int, ...],
            present: NDArray[np.bool_] = present,
            likelihood: NDArray[np.float64] = likelihood,
        ) -> float:
            parts: dict[bytes, NDArray[np.float64]] = {}
            for row, own in zip(present[:, chosen], likelihood, strict=True):
                parts[row.tobytes()] = parts.get(row.tobytes(), np.zeros(likelihood.shape[1])) + own
            return sum(float(part.max()) for part in parts.values()) - math.log(10) * len(chosen)

        best = max(told(each) for size in range(4) for each in itertools.combinations(range(10), size))
        own = sum(float(likelihood[i, group]) for i, group in enumerate(got.tolist()))
        assert own >= best + 2 * math.log(10) - 1e-6  # two edges at least are paid for


def test_chance_alone_is_no_group() -> None:
    """Labels that nothing bears out vanish, or stay on few calls."""
    rng = np.random.default_rng(2)
    kept = 0
    for _ in range(20):
        present, totals, _ = drawn(rng, np.array([0.4, 0.4, 0.4]))
        kept += refined_groups(present, totals, rng.integers(0, 2, len(present)).tolist()) is not None
    assert kept <= 2


def test_the_numbers_of_the_groups_do_not_matter() -> None:
    """Nor does the order of the labels: the result is numbered by first paths."""
    present, totals, truth = drawn(np.random.default_rng(3), np.array([0.1, 0.5, 0.9]))
    turned = np.array([2, 0, 1])[truth]
    first, second = refined_groups(present, totals, truth.tolist()), refined_groups(present, totals, turned.tolist())
    assert first is not None
    assert second is not None
    assert first.tolist() == second.tolist()
    assert first[0] == 0


def test_without_edges_or_groups_there_is_nothing_to_refine() -> None:
    """None says so."""
    totals = np.array([[5.0, 5.0], [50.0, 5.0]])
    assert refined_groups(np.zeros((2, 0), dtype=bool), totals, [0, 1]) is None
    assert refined_groups(np.eye(2, dtype=bool), totals, [0, None]) is None
