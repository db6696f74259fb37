"""The components of variance agree with what was simulated and with scipy's classical estimates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from specmine.mining.levels.variation import WINSOR, WINSORISED, variation
from tests.support.autoregression import autoregressive


def test_the_winsorised_variance_of_a_normal_is_its_variance() -> None:
    """The constant is E[min(z^2, c^2)] of a standard normal."""
    inside = norm.expect(lambda z: z * z, lb=-WINSOR, ub=WINSOR)
    assert pytest.approx(inside + 2 * WINSOR**2 * norm.sf(WINSOR), abs=2e-4) == WINSORISED


@pytest.mark.parametrize(("correlation", "sd"), [(0.0, 0.1), (0.5, 0.2), (0.8, 0.1), (0.9, 0.05)])
def test_one_lifetime_gives_spread_and_correlation_of_windows(correlation: float, sd: float) -> None:
    """Of 3,000 windows both are known to some per cent, with sampling error taken out."""
    rng = np.random.default_rng(3)
    places = 7 + autoregressive(rng, 3_000, correlation, sd) + rng.normal(0, 0.04, 3_000)
    known = variation(places, np.full(3_000, 0.04**2), ["a"] * 3_000)
    assert known.correlation == pytest.approx(correlation, abs=0.06)
    assert np.sqrt(known.window_variance) == pytest.approx(sd, rel=0.12)
    assert known.mean == pytest.approx(7, abs=0.02)


def test_disturbed_windows_do_not_move_the_estimate() -> None:
    """Three windows in a hundred that are five times slower leave mean and spread nearly as they are."""
    rng = np.random.default_rng(4)
    places = 7 + autoregressive(rng, 3_000, 0.5, 0.1) + np.where(rng.random(3_000) < 0.03, np.log(5), 0)
    known = variation(places, np.full(3_000, 1e-5), ["a"] * 3_000)
    assert known.mean == pytest.approx(7, abs=0.02)
    assert np.sqrt(known.window_variance) == pytest.approx(0.1, rel=0.3)


def test_lifetimes_differ_as_simulated() -> None:
    """The spread between lifetimes is told from that of windows within them."""
    rng = np.random.default_rng(5)
    effects = rng.normal(0, 0.1, 200)
    places = np.concatenate([7 + effect + autoregressive(rng, 20, 0.5, 0.1) for effect in effects])
    lifetimes = [str(number) for number in range(200) for _ in range(20)]
    known = variation(places, np.full(len(places), 1e-6), lifetimes)
    assert np.sqrt(known.lifetime_variance) == pytest.approx(0.1, rel=0.15)
    assert np.sqrt(known.window_variance) == pytest.approx(0.1, rel=0.15)
    assert known.lifetime_freedom == 199


def test_windows_of_equal_lifetimes_show_no_spread_between_them() -> None:
    """What windows alone explain is not put down to lifetimes: on average at most a hundredth of the variance."""
    rng = np.random.default_rng(6)
    found = []
    for _ in range(100):
        places = rng.normal(7, 0.1, 200)
        found.append(variation(places, np.full(200, 1e-6), [str(n // 20) for n in range(200)]).lifetime_variance)
    assert np.median(found) < 0.0003
