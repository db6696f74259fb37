"""The slope of the soak's table."""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import linregress, t

from bench.lib.slopes import STRETCHES, slope


def test_slope_is_that_of_the_means() -> None:
    """Value and interval are those that scipy gives for the means of the stretches."""
    rng = np.random.default_rng(3)
    at = np.linspace(0.0, 3.0, 1_080)
    what = 70.0 + 0.4 * at + rng.normal(0.0, 0.5, len(at))
    found = slope(at.tolist(), what.tolist())
    means = [np.array([part.mean() for part in np.split(each, STRETCHES)]) for each in (at, what)]
    expected = linregress(means[0], means[1])
    reach = t.ppf(0.975, STRETCHES - 2) * expected.stderr
    assert math.isclose(found.value, expected.slope, rel_tol=1e-6)
    assert math.isclose(found.high - found.low, 2 * reach, rel_tol=1e-6)


def test_interval_holds_for_samples_that_resemble_their_neighbours() -> None:
    """Of 400 flat series with a memory of twenty samples some 5 % have a slope in the table, not half of them."""
    rng = np.random.default_rng(5)
    at, wrong = np.linspace(0.0, 1.0, 2_400), 0
    for _ in range(400):
        noise = np.convolve(rng.normal(0.0, 1.0, len(at) + 19), np.ones(20), "valid")
        found = slope(at.tolist(), noise.tolist())
        wrong += not found.low <= 0.0 <= found.high
    assert wrong <= 36  # 400 x 5 %, and four standard deviations


def test_too_little_time_has_no_slope() -> None:
    """Nothing is claimed of samples at one moment."""
    assert math.isinf(slope([1.0, 1.0], [5.0, 5.0]).high)
