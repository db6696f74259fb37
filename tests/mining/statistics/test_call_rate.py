"""Rates from looks at random times: against scipy, and against known calls."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from specmine.mining.statistics.call_rate import Looks


def looked(calls: list[int], seconds: list[float], stands_for: list[float]) -> Looks:
    """Return the sums of some looks."""
    looks = Looks()
    for each in zip(calls, seconds, stands_for, strict=True):
        looks = looks.with_look(*each)
    return looks


def test_equal_weights_are_the_mean_of_rates_with_students_interval() -> None:
    """Looks that stand for the same time have scipy's mean and interval."""
    calls, seconds = [100, 140, 90, 260, 130], [0.1, 0.2, 0.1, 0.2, 0.1]
    looks = looked(calls, seconds, [1.0] * 5)
    rates = np.array(calls) / np.array(seconds)
    low, high = stats.t.interval(0.95, 4, loc=rates.mean(), scale=stats.sem(rates))
    assert looks.rate == pytest.approx(rates.mean())
    assert looks.interval() == pytest.approx((low, high))


def test_weights_are_those_of_a_ratio_of_sums() -> None:
    """Looks that stand for different times: estimate and variance as computed from the residuals."""
    weights, rates = np.array([1.0, 3.0, 2.0, 0.5]), np.array([10.0, 20.0, 40.0, 5.0])
    looks = looked([round(r * 10) for r in rates], [0.1 * 100] * 4, list(weights * 100))
    mean = np.average(rates, weights=weights)
    variance = 4 / 3 * ((weights * (rates - mean)) ** 2).sum() / weights.sum() ** 2
    assert looks.rate == pytest.approx(mean)
    half = stats.t.ppf(0.975, 3) * np.sqrt(variance)
    assert looks.interval() == pytest.approx((max(0.0, mean - half), mean + half))


def test_too_few_looks_have_no_interval() -> None:
    """Two looks do not say how far rates differ; none at all has no rate."""
    assert looked([1, 2], [1.0, 1.0], [1.0, 1.0]).interval() is None
    assert Looks().rate == 0.0


def test_bursts_do_not_bias_looks_that_end_by_calls() -> None:
    """Looks of 1,000 calls each at random times find the calls of a program that bursts half of the time.

    Calls over time would say 18,000 a second where there are 55,000.
    """
    chance, held, estimates = np.random.default_rng(7), 0, []
    for _ in range(400):
        looks = Looks()
        for _ in range(60):
            rate = 100_000.0 if chance.random() < 0.5 else 10_000.0
            looks = looks.with_look(1000, chance.gamma(1000, 1 / rate), 1.0)
        low, high = looks.interval() or (0.0, 0.0)
        estimates.append(looks.rate)
        held += low <= 55_000 <= high
    assert np.mean(estimates) == pytest.approx(55_000, rel=0.01)
    assert 0.92 <= held / 400 <= 0.98


def test_what_looks_take_raises_the_upper_end() -> None:
    """A program that probes slow by a fifth may call a quarter more often without; one that they stop, any number."""
    looks, stopped = Looks(), Looks()
    for number in (100, 110, 90, 105, 95):
        looks, stopped = looks.with_look(number, 1.0, 1.0, 0.2), stopped.with_look(number, 1.0, 1.0, 0.9)
    plain = looked([100, 110, 90, 105, 95], [1.0] * 5, [1.0] * 5).interval() or (0.0, 0.0)
    assert looks.interval() == pytest.approx((plain[0], plain[1] / 0.8))
    assert stopped.interval() == pytest.approx((plain[0], np.inf))


def test_a_look_that_goes_on_is_one_look() -> None:
    """Its parts together weigh as if they had been reported at once; the variance is that between looks."""
    parts, whole = Looks(), Looks()
    for number in (3, 9, 4, 6):
        whole = whole.with_look(10 * number, 2.0, 6.0, 0.1)
        for part in range(4):
            parts = parts.with_look(number * (part + 1), 0.5, 1.5, 0.025, goes_on=part > 0)
    assert parts.number == whole.number == 4
    assert parts.rate == pytest.approx(whole.rate)
    assert parts.interval() == pytest.approx(whole.interval())
    assert Looks().with_look(1, 1.0, 1.0, goes_on=True).number == 1
    low, high = whole.interval(wider=2.0) or (0.0, 0.0)
    once = whole.interval() or (0.0, 0.0)
    assert high * (1 - whole.taken / whole.weight) - whole.rate == pytest.approx(
        2 * (once[1] * (1 - whole.taken / whole.weight) - whole.rate)
    )
    assert low <= once[0]
