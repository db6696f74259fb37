"""More calls of one lifetime are worth nothing once lifetimes differ by more than calls could show."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from specmine.mining.regression.lifetime_utility import Lifetimes, utility_over_lifetimes, windows_worth, with_window
from specmine.mining.statistics.distributions import f_quantile


def lived(lifetimes: int, windows: int, between: float, inside: float, seed: int = 1) -> Lifetimes:
    """Return lifetimes with such deviations of log medians."""
    rng = np.random.default_rng(seed)
    seen = Lifetimes()
    for number in range(lifetimes):
        level = rng.normal(0, between)
        for _ in range(windows):
            seen = with_window(seen, str(number), level + rng.normal(0, inside))
    return seen


def test_a_lifetime_seen_enough_is_worth_nothing_and_a_new_one_all() -> None:
    """Lifetimes differ by 2 %, windows by 0.5 %: some windows are enough, but not of a lifetime not seen yet."""
    seen = lived(8, 10, 0.02, 0.005)
    assert 0.5 < windows_worth(seen) < 10
    assert utility_over_lifetimes(0.8, seen, {"3": True}) == 0.0
    assert utility_over_lifetimes(0.8, seen, {"new": True}) == 1.0
    assert utility_over_lifetimes(0.8, seen, {"1": True, "2": True, "3": True, "new": True}) == 0.25
    assert utility_over_lifetimes(0.8, seen, {"never called in it": False}) == 0.8
    assert utility_over_lifetimes(0.8, seen, {}) == 0.8


def test_where_lifetimes_do_not_differ_age_decides() -> None:
    """Nothing is known to dominate: windows of a lifetime seen often are worth what the age says."""
    assert utility_over_lifetimes(0.8, lived(2, 10, 0.02, 0.005), {"1": True}) == 0.8


def test_what_it_stops_at_narrows_by_less_than_five_per_cent() -> None:
    """With so many windows a lifetime the error is within 5 % of what endless ones would leave, in nearly all cases."""
    between, inside, wider = 0.02, 0.01, []
    for seed in range(200):
        windows = windows_worth(lived(10, 5, between, inside, seed))
        wider.append(np.sqrt(1 + inside**2 / between**2 / windows) if np.isfinite(windows) else 1.0)
    assert np.mean(np.array(wider) > 1.05) < 0.15  # the bound is of 90 %
    assert np.median(wider) > 1.005  # and not for nothing


def test_equal_lifetimes_are_seldom_taken_for_different_ones() -> None:
    """Where only calls vary, chance stops observing in at most one of ten, and then late."""
    found = np.array([windows_worth(lived(6, 6, 0.0, 0.01, seed)) for seed in range(400)])
    assert np.mean(np.isfinite(found)) < 0.13
    assert np.mean(found < 6) == 0.0


@pytest.mark.parametrize(("lifetimes", "windows"), [(0, 0), (2, 50), (5, 1)])
def test_too_little_is_known_to_stop(lifetimes: int, windows: int) -> None:
    """Two lifetimes, or one window each, say nothing of what lies between and inside."""
    assert windows_worth(lived(lifetimes, windows, 0.1, 0.001)) == float("inf")


def test_windows_that_do_not_vary() -> None:
    """One window says all of a lifetime in which nothing varies; nothing at all that varies stops nothing."""
    assert windows_worth(lived(4, 3, 0.1, 0.0)) == 1.0
    assert windows_worth(lived(4, 3, 0.0, 0.0)) == float("inf")


def test_only_the_latest_lifetimes_are_held() -> None:
    """Memory is bounded: the oldest go."""
    seen = lived(50, 2, 0.1, 0.1)
    assert len(seen.moments) == 32
    assert (seen.windows("17"), seen.windows("18")) == (0, 2)


@pytest.mark.parametrize("first", [2, 7, 31])
@pytest.mark.parametrize("second", [1, 3, 20, 200])
def test_quantiles_are_those_of_scipy(first: int, second: int) -> None:
    """The F quantile agrees to 9 digits."""
    assert f_quantile(0.9, first, second) == pytest.approx(stats.f.ppf(0.9, first, second), rel=1e-9)
