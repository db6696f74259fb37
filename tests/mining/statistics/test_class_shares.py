"""Class shares: counted exactly, compared as scipy does, with the dispersion between windows respected."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from specmine.mining.statistics.class_shares import Dispersion, agreement, dispersion, homogeneity

rows = st.lists(st.integers(0, 500), min_size=3, max_size=3)


@given(rows, rows)
def test_homogeneity_is_pearsons_chi_squared(first: list[int], second: list[int]) -> None:
    """As scipy computes it on the columns that hold calls."""
    table = np.array([first, second])
    table = table[:, table.sum(axis=0) > 0]
    value, df = homogeneity(first, second)
    if table.shape[1] < 2 or 0 in table.sum(axis=1):
        assert (value, df) == (0.0, 0)
        assert agreement(first, second, Dispersion()) == 1.0
        return
    expected = stats.chi2_contingency(table, correction=False)
    assert value == pytest.approx(float(expected.statistic))
    assert df == expected.dof
    assert agreement(first, second, Dispersion()) == pytest.approx(float(expected.pvalue), abs=1e-9)


def test_independent_calls_have_dispersion_one() -> None:
    """Multinomial windows: near 1 on average, and the test at 1 % fires in about 1 %."""
    rng = np.random.default_rng(1)
    factors, alarms = [], 0
    for _ in range(400):
        windows = rng.multinomial(1_000, [0.5, 0.3, 0.2], size=11)
        noise = dispersion(list(windows[:10]))
        factors.append(noise.factor)
        alarms += agreement(windows[10], windows[:10].sum(axis=0), noise) < 0.01
    assert np.mean(factors) < 1.35
    assert alarms <= 12


def test_overdispersed_windows_do_not_alarm() -> None:
    """Dirichlet-multinomial windows of dispersion about 11: at 1 % about 1 % alarms, not 40 %."""
    rng = np.random.default_rng(2)
    alarms = naive = 0
    for _ in range(400):
        windows = np.array([rng.multinomial(1_000, p) for p in rng.dirichlet([50, 30, 20], size=11)])
        noise = dispersion(list(windows[:10]))
        alarms += agreement(windows[10], windows[:10].sum(axis=0), noise) < 0.01
        naive += agreement(windows[10], windows[:10].sum(axis=0), Dispersion()) < 0.01
    assert alarms <= 16
    assert naive > 100


def test_one_change_of_level_is_not_taken_for_noise() -> None:
    """Ten windows, half of them with other shares: the dispersion stays near 1."""
    rng = np.random.default_rng(3)
    windows = [rng.multinomial(1_000, [0.7, 0.3]) for _ in range(5)]
    windows += [rng.multinomial(1_000, [0.4, 0.6]) for _ in range(5)]
    assert dispersion(windows).factor < 3


def test_of_fewer_than_three_windows_no_dispersion_is_known() -> None:
    """Then calls count as independent."""
    assert dispersion([[5, 5], [9, 1]]) == Dispersion()
