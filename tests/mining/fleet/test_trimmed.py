"""Trimmed means and their difference are those of scipy and statsmodels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.robust_compare import TrimmedMean

from specmine.mining.fleet.trimmed import difference, trimmed_mean


@pytest.mark.parametrize("number", [3, 9, 10, 30, 101])
def test_the_mean_and_its_interval_are_those_of_others(number: int) -> None:
    """Trimmed mean by scipy, winsorised variance by statsmodels; the error is Yuen's, as in scipy's test of two means.

    statsmodels has Wilcox's error of one mean, which divides by n and h where Yuen divides by h and h - 1.
    """
    values = np.random.default_rng(number).normal(5.0, 0.3, number)
    found, other = trimmed_mean(values), TrimmedMean(values, 0.1)
    assert found is not None
    assert found.mean == pytest.approx(stats.trim_mean(values, 0.1))
    kept = other.nobs_reduced
    yuen = float(np.sqrt((number - 1) * other.var_winsorized / (kept * (kept - 1))))
    assert found.error == pytest.approx(yuen)
    assert float(other.std_mean_trimmed) * (1 - 1e-9) <= found.error < 1.03 * float(other.std_mean_trimmed)
    assert found.deviation**2 == pytest.approx(float(other.var_winsorized))
    expected = stats.t.interval(0.95, kept - 1, other.mean_trimmed, yuen)
    assert found.interval(0.95) == pytest.approx(tuple(map(float, expected)))


@pytest.mark.parametrize("sizes", [(3, 3), (30, 10), (200, 30)])
def test_the_difference_is_yuens(sizes: tuple[int, int]) -> None:
    """Probability and interval, as scipy's trimmed Welch test has them."""
    rng = np.random.default_rng(sum(sizes))
    base, new = rng.normal(0.0, 0.1, sizes[0]), rng.normal(0.05, 0.2, sizes[1])
    left, right = trimmed_mean(base), trimmed_mean(new)
    assert left is not None
    assert right is not None
    found = difference(left, right)
    expected = stats.ttest_ind(new, base, equal_var=False, trim=0.1)
    assert found.p_value == pytest.approx(float(expected.pvalue))
    assert found.value / found.error == pytest.approx(float(expected.statistic))


def test_too_few_hosts_have_no_interval() -> None:
    """Two hosts do not tell how hosts differ."""
    assert trimmed_mean([1.0, 2.0]) is None


def test_equal_hosts_have_no_error() -> None:
    """No division by nothing."""
    one = trimmed_mean([1.0] * 5)
    assert one is not None
    assert one.interval(0.95) == (1.0, 1.0)
    assert difference(one, one).p_value == 1.0


def test_liars_hardly_move_it() -> None:
    """Two of thirty hosts that say threefold durations; the plain mean moves ten times as much."""
    rng = np.random.default_rng(4)
    honest = rng.normal(0.0, 0.1, 30)
    lying = honest.copy()
    lying[:2] += np.log(3)
    clean, moved = trimmed_mean(honest), trimmed_mean(lying)
    assert clean is not None
    assert moved is not None
    assert abs(moved.mean - clean.mean) < 0.3 * abs(lying.mean() - honest.mean())
