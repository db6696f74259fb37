"""Weighted k-means, compared with scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans

from specmine.mining.behaviours.k_means import k_means, spread_of


@pytest.mark.parametrize("seed", range(25))
def test_groups_are_as_tight_as_those_of_scikit_learn(seed: int) -> None:
    """On points as they come: roots of class shares, some in groups, some spread, with weights over three decades."""
    random = np.random.default_rng(seed)
    classes, k = int(random.integers(2, 5)), int(random.integers(2, 7))
    points = int(random.integers(k + 2, 120))
    around = random.dirichlet(np.ones(classes), k)[random.integers(0, k, points)]
    shares = np.array([random.dirichlet(60 * each + 0.5) for each in around])
    weights = 10 ** random.uniform(0, 3, points)
    roots = np.sqrt(shares)
    model = KMeans(n_clusters=k, n_init=10, random_state=seed).fit(roots, sample_weight=weights)
    labels = k_means(roots, weights, k, seed)
    assert set(labels.tolist()) == set(range(k))
    assert spread_of(roots, weights, labels) <= 1.003 * float(model.inertia_)


def test_the_spread_is_that_of_scikit_learn() -> None:
    """What both make small is one quantity."""
    random = np.random.default_rng(1)
    points, weights = random.normal(size=(50, 3)), random.random(50)
    model = KMeans(n_clusters=4, n_init=5, random_state=1).fit(points, sample_weight=weights)
    assert spread_of(points, weights, model.labels_.astype(np.int64)) == pytest.approx(float(model.inertia_), rel=1e-3)


def test_the_same_seed_gives_the_same_groups() -> None:
    """A recording is replayed byte for byte."""
    random = np.random.default_rng(2)
    points, weights = random.random((40, 2)), random.random(40)
    assert np.array_equal(k_means(points, weights, 3, 5), k_means(points.copy(), weights.copy(), 3, 5))


def test_points_without_weight_join_and_move_no_centre() -> None:
    """They are in the nearest group."""
    points = np.array([[0.0], [0.1], [1.0], [1.1], [0.2], [5.0]])
    labels = k_means(points, np.array([1.0, 1.0, 1.0, 1.0, 0.0, 0.0]), 2, 1)
    assert labels[0] == labels[1] == labels[4] != labels[2] == labels[3] == labels[5]
