"""Single calls of lifetimes: do they depend on each other, and do lifetimes shift or spread them?"""

from __future__ import annotations

import numpy as np
import pytest

from specmine.mining.regression.within_lifetime import within_of


def test_independent_calls_of_equal_lifetimes() -> None:
    """Nothing hangs together: no lifetime is dependent, both factors are near 1."""
    rng = np.random.default_rng(1)
    runs = [rng.lognormal(10, 0.3, 256) for _ in range(20)]
    found = within_of(runs, runs)
    assert (found.ordered, found.dependent, found.sampled) == (20, 0, 20)
    assert np.abs(found.autocorrelation).max() < 0.1
    assert found.impact == pytest.approx(1.0, abs=0.08)
    assert found.centred == pytest.approx(1.0, abs=0.08)


def test_turns_are_dependence() -> None:
    """Every third call is slow: the third is like it, those between are not, in each lifetime."""
    rng = np.random.default_rng(2)
    runs = [np.tile([1.0, 1.0, 3.0], 80) * rng.lognormal(0, 0.05, 240) for _ in range(4)]
    found = within_of(runs, runs)
    assert found.dependent == 4
    assert found.autocorrelation[2] > 0.6
    assert max(found.autocorrelation[:2]) < 0


def test_preempted_calls_hide_nothing() -> None:
    """One call in fifty takes a hundred times as long, by chance: turns are still seen, and no shift is invented."""
    rng = np.random.default_rng(5)
    runs = [
        np.tile([20.0, 20.0, 60.0], 80) * rng.lognormal(0, 0.05, 240) * np.where(rng.random(240) < 0.02, 100, 1)
        for _ in range(5)
    ]
    found = within_of(runs, runs)
    assert found.dependent == 5
    assert found.autocorrelation[2] > 0.5
    assert found.centred == pytest.approx(1.0, abs=0.25)


@pytest.mark.parametrize("spread", [False, True])
def test_lifetimes_that_shift_and_lifetimes_that_spread(spread: bool) -> None:
    """Twice the spread between lifetimes as inside: a factor of sqrt(5), gone once centred; spread stays."""
    rng = np.random.default_rng(3)
    levels = np.linspace(-1.7, 1.7, 40) * 2  # evenly, with deviation 2
    scales = np.exp(rng.normal(0, 0.6, 40)) if spread else np.ones(40)
    runs = [100 + level + scale * rng.normal(0, 1, 256) for level, scale in zip(levels, scales, strict=True)]
    found = within_of([], runs)
    assert found.impact is not None and found.centred is not None
    assert found.impact > 1.8 if spread else found.impact == pytest.approx(np.sqrt(5), rel=0.15)
    assert (found.centred > 1.1) is spread
    assert (found.ordered, found.autocorrelation) == (0, ())


def test_too_little_is_said_so_and_the_same_data_say_the_same() -> None:
    """Four lifetimes have no impact factor; the same samples give the same number."""
    rng = np.random.default_rng(4)
    runs = [rng.lognormal(10, 0.3, 256) for _ in range(5)]
    assert within_of([], runs[:4]).impact is None
    assert within_of([], [*runs[:4], runs[4][:10]]).sampled == 4
    assert within_of([], runs) == within_of([], runs)
