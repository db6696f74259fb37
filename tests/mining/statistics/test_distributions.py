"""Tail probabilities against scipy and closed forms."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from specmine.mining.statistics.distributions import beta_cdf, chi2_sf, f_sf


@given(st.floats(0, 1), st.floats(0.1, 500), st.floats(0.1, 500))
def test_incomplete_beta_agrees_with_scipy(x: float, a: float, b: float) -> None:
    """To 1e-10 over the shapes that tests of class shares use."""
    assert beta_cdf(x, a, b) == pytest.approx(float(special.betainc(a, b, x)), abs=1e-10)


@given(st.floats(0, 2_000), st.floats(0.5, 1_000))
def test_chi_squared_agrees_with_scipy(value: float, df: float) -> None:
    """To a relative 1e-8 where the tail is not below 1e-200."""
    expected = float(stats.chi2.sf(value, df))
    assert chi2_sf(value, df) == pytest.approx(expected, rel=1e-8, abs=1e-12)


@given(st.floats(1e-4, 200), st.integers(1, 50), st.integers(1, 500))
def test_f_agrees_with_scipy(value: float, df1: int, df2: int) -> None:
    """To 1e-9."""
    assert f_sf(value, df1, df2) == pytest.approx(float(stats.f.sf(value, df1, df2)), abs=1e-9)


def test_closed_forms() -> None:
    """Exponential tail for two degrees of freedom; the uniform beta; F without end is chi-squared."""
    assert chi2_sf(3.0, 2) == pytest.approx(math.exp(-1.5), rel=1e-12)
    assert beta_cdf(0.3, 1, 1) == pytest.approx(0.3, rel=1e-12)
    assert f_sf(2.5, 4, math.inf) == chi2_sf(10.0, 4)
    assert chi2_sf(0.0, 3) == 1.0
