"""Valleys of the density: found where there are some, with windows of known calls."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from specmine.mining.borders.valleys import EDGES, has_valleys, lowest, valleys
from specmine.model.histogram import Histogram

SHARES = (0.01, 0.02, 0.05, 0.1, 0.2)


def cdf_of(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the share of the values below each edge."""
    return np.concatenate(([0.0], np.cumsum(Histogram.from_durations(values).dense / values.size)))


def two_classes(rng: np.random.Generator, calls: int, apart: float) -> NDArray[np.float64]:
    """Draw two normal classes of 60 and 40 %, apart by so many sd."""
    return np.asarray(rng.normal(20_000, 1_000, calls) + (rng.random(calls) < 0.4) * apart * 1_000)


def test_a_valley_lies_between_its_peaks_in_windows_of_the_shares_asked_for() -> None:
    """Its window holds a share asked for, those of its peaks 1.8 times as much, and its edge is in the gap."""
    rng = np.random.default_rng(1)
    values = two_classes(rng, 10_000, 8.0)
    cdf = cdf_of(values)
    (valley,) = valleys(cdf, values.size, shares=SHARES, z=3.0, depth=0.15, apart_ns=50.0)
    share = valley.low[1] - valley.low[0]
    assert min(abs(share - each) for each in SHARES) < 1e-9
    assert valley.left[1] - valley.left[0] == pytest.approx(1.8 * share)
    assert valley.right[1] - valley.right[0] == pytest.approx(1.8 * share)
    assert valley.left[0] < valley.low[0] < valley.right[0]
    assert valley.holds(valley)
    assert 22_500 < EDGES[lowest(cdf, valley)] < 26_500


@pytest.mark.parametrize("apart", [0.0, 3.0, 6.0])
def test_the_quick_question_agrees_with_the_full_answer(apart: float) -> None:
    """Over classes that are one, hardly two, and two."""
    rng = np.random.default_rng(2)
    answers = set()
    for _ in range(30):
        values = two_classes(rng, 1_000, apart)
        cdf = cdf_of(values)
        quick = has_valleys(cdf, values.size, shares=SHARES, z=3.0, depth=0.15)
        full = valleys(cdf, values.size, shares=SHARES, z=3.0, depth=0.15, apart_ns=0.0)
        assert quick == bool(full)
        answers.add(quick)
    assert answers == {0.0: {False}, 3.0: {False, True}, 6.0: {True}}[apart]


def test_too_few_calls_for_any_window_have_no_valley() -> None:
    """Windows of fewer than ten calls are not looked at."""
    cdf = cdf_of(np.array([1e3] * 20 + [1e6] * 20))
    assert valleys(cdf, 40, shares=(0.1, 0.2), z=0.1, depth=0.15, apart_ns=50.0) == []
    assert not has_valleys(cdf, 40, shares=(0.1, 0.2), z=0.1, depth=0.15)
