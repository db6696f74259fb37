"""Differences within windows, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from specmine.mining.behaviours.confounding import least_difference


def test_a_difference_between_windows_is_none_within_them() -> None:
    """In each window both groups have the same shares; one has most of its calls in the slow window."""
    windows = np.array([[[90, 10], [9, 1]], [[50, 50], [500, 500]]])
    within, whole = least_difference(windows, [0, 1])
    assert within == pytest.approx(0.0)
    assert whole == pytest.approx(501 / 1010 - 60 / 200)


def test_a_difference_within_windows_is_weighted_as_mantel_and_haenszel_do() -> None:
    """Differences 0.4 at 10 and 30 calls, 0.1 at 20 and 20: weights 7.5 and 10."""
    windows = np.array([[[5, 5], [27, 3]], [[10, 10], [12, 8]]])
    within, _ = least_difference(windows, [0, 1])
    assert within == pytest.approx((7.5 * 0.4 + 10 * 0.1) / 17.5)


def test_of_several_groups_the_two_that_differ_least_decide() -> None:
    """Paths of one group count together, those of none not at all."""
    windows = np.array([[[10, 0], [5, 5], [3, 2], [1, 3], [0, 99]]])
    assert least_difference(windows, [0, 1, 1, 2, None])[0] == pytest.approx(0.75 - 7 / 15)
    assert least_difference(windows, [0, 0, 0, 0, None]) == (1.0, 1.0)
