"""Agreement of groupings, compared with scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_mutual_info_score

from specmine.mining.statistics.mutual_information import adjusted_mutual_information


@pytest.mark.parametrize("seed", range(20))
def test_agreement_is_that_of_scikit_learn(seed: int) -> None:
    """Random groupings, alike and not, with points that count several times or not at all."""
    random = np.random.default_rng(seed)
    points, groups = int(random.integers(2, 60)), int(random.integers(1, 9))
    first = random.integers(0, groups, points)
    second = np.where(random.random(points) < random.random(), first, random.integers(0, groups, points))
    weights = random.integers(0, 80, points)
    weights[0] = 1
    expected = adjusted_mutual_info_score(np.repeat(first, weights), np.repeat(second, weights))
    assert adjusted_mutual_information(first, second, weights) == pytest.approx(float(expected), abs=1e-9)


def test_the_same_groups_agree_by_whatever_number() -> None:
    """Numbers of groups are names only; a single group agrees with itself."""
    first, weights = np.array([0, 0, 1, 2, 2]), np.full(5, 100)
    assert adjusted_mutual_information(first, 2 - first, weights) == pytest.approx(1.0)
    assert adjusted_mutual_information(first * 0, first * 0, weights) == 1.0
