"""The noncentral t distribution, compared with scipy."""

from __future__ import annotations

import pytest
from scipy.optimize import brentq
from scipy.stats import nct, t

from specmine.mining.statistics.noncentral_t import detected_shift, noncentral_t_sf


@pytest.mark.parametrize("freedom", [1.0, 2.0, 3.7, 8.0, 30.0, 200.0, 5000.0])
@pytest.mark.parametrize("shift", [0.0, 0.7, 2.8, 6.0])
def test_the_tail_is_that_of_scipy(freedom: float, shift: float) -> None:
    """From one degree of freedom to thousands."""
    for value in (-1.0, 0.0, 1.96, 4.3):
        expected = float(nct.sf(value, freedom, shift)) if shift else float(t.sf(value, freedom))
        assert noncentral_t_sf(value, freedom, shift) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("freedom", [2.0, 5.5, 18.0, 400.0])
@pytest.mark.parametrize(("level", "power"), [(0.95, 0.8), (0.99, 0.9), (0.5, 0.6)])
def test_the_shift_has_the_power(freedom: float, level: float, power: float) -> None:
    """Found by another search over another distribution function."""
    limit = float(t.isf(0.5 - 0.5 * level, freedom))
    expected = brentq(lambda shift: float(nct.sf(limit, freedom, shift)) - power, 0.0, 200.0, xtol=1e-10)
    assert detected_shift(freedom, level, power) == pytest.approx(expected, rel=1e-6)
