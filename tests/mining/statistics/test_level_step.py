"""Steps of the level: found where they are, and not where levels only vary, wander or are disturbed once."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize

from specmine.mining.statistics import level_step
from specmine.mining.statistics.level_step import newest_step, undisturbed

V = 1e-4


def series(levels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return levels with a sampling variance."""
    return np.stack((levels, np.full(len(levels), V)), axis=1)


def wandering(rng: np.random.Generator, count: int, sd: float, correlation: float) -> NDArray[np.float64]:
    """Return an autoregressive series."""
    levels = [rng.normal(0, sd)]
    for _ in range(count - 1):
        levels.append(correlation * levels[-1] + rng.normal(0, sd * np.sqrt(1 - correlation**2)))
    return np.array(levels)


def test_a_step_is_found_at_its_place() -> None:
    """Half as slow again after 12 of 18 windows that vary by 5 %."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        found = newest_step(series(rng.normal(0, 0.05, 18) + np.log(1.5) * (np.arange(18) >= 12)))
        assert found is not None
        assert abs(found.first - 12) <= 1
        assert found.size == pytest.approx(np.log(1.5), abs=0.1)


def test_of_several_steps_the_newest_is_told() -> None:
    """Up and down again: what counts is the last."""
    rng = np.random.default_rng(2)
    levels = rng.normal(0, 0.03, 100) + np.log(2) * ((np.arange(100) >= 20) & (np.arange(100) < 80))
    found = newest_step(series(levels))
    assert found is not None
    assert abs(found.first - 80) <= 1
    assert found.size == pytest.approx(-np.log(2), abs=0.1)
    old = newest_step(series(rng.normal(0, 0.03, 100) + np.log(2) * (np.arange(100) >= 20)))
    assert old is not None
    assert abs(old.first - 20) <= 1


@pytest.mark.parametrize(("sd", "correlation"), [(0.1, 0.0), (0.2, 0.5), (0.3, 0.8), (0.3, 0.95)])
def test_levels_that_vary_are_no_step(sd: float, correlation: float) -> None:
    """At most one in a hundred by design: of 300 series at most 9 (a binomial tail of 0.4 %)."""
    rng = np.random.default_rng(3)
    found = [newest_step(series(wandering(rng, 10, sd, correlation))) is not None for _ in range(300)]
    assert sum(found) <= 9


def test_one_disturbed_window_is_no_step() -> None:
    """Three times as slow for one window, wherever it lies; for three windows it is a step up and one down."""
    rng = np.random.default_rng(4)
    levels = rng.normal(0, 0.03, 12)
    for place in range(12):
        assert newest_step(series(levels + np.log(3) * (np.arange(12) == place))) is None
    assert newest_step(series(levels + np.log(3) * (np.arange(12) >= 9))) is not None
    assert np.array_equal(undisturbed(np.arange(10) * 0.1), np.arange(10) * 0.1)


def test_small_steps_and_short_series_tell_nothing() -> None:
    """Five percent do not matter, however clear; five windows are too few; windows without a location do not count."""
    assert newest_step(series(np.log(1.05) * (np.arange(20) >= 10))) is None
    assert newest_step(series(np.log(3) * (np.arange(5) >= 3))) is None
    gaps = np.where(np.arange(20) % 2, np.log(2) * (np.arange(20) >= 10), np.nan)
    found = newest_step(series(gaps))
    assert found is not None
    assert found.first == 11


def test_the_likelihood_is_that_of_a_general_optimiser() -> None:
    """Log likelihood ratios of a given place agree with those that scipy finds over the correlation."""
    rng = np.random.default_rng(5)
    values = wandering(rng, 20, 0.1, 0.6) + 0.5 * (np.arange(20) >= 10)

    def best(design: NDArray[np.float64]) -> float:
        def cost(phi: float) -> float:
            shape = phi ** np.abs(np.subtract.outer(np.arange(20), np.arange(20)))
            inverse = np.linalg.inv(shape)
            rest = values - design @ np.linalg.solve(design.T @ inverse @ design, design.T @ inverse @ values)
            return float(10 * np.log(rest @ inverse @ rest / (1 - phi**2)) + 0.5 * np.linalg.slogdet(shape)[1]
                         + 10 * np.log(1 - phi**2))  # fmt: skip

        return -float(optimize.minimize_scalar(cost, bounds=(0, 0.97), method="bounded").fun)

    constant = np.ones((20, 1))
    ratios = [
        best(np.hstack((constant, (np.arange(20) >= place).astype(float)[:, None]))) - best(constant)
        for place in range(2, 19)
    ]
    likeliest = level_step._likeliest(values, 0.0)
    assert likeliest is not None
    assert likeliest.first == 2 + int(np.argmax(ratios))
    assert max(ratios) > level_step._CLEAR
