"""Counts of calls, lifetimes and builds are those that a comparison needs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from specmine.mining.regression.ratio_estimate import ratio_estimate
from specmine.mining.regression.sample_size import (
    builds_needed,
    calls_for_quantile,
    calls_worth_timing,
    lifetimes_for_change,
    lifetimes_for_equivalence,
    needed_lifetimes,
    optimal_counts,
    smallest_detectable,
)


def test_optimal_counts_of_the_worked_example() -> None:
    """S_E^2 4, S_B^2 1, S_V^2 0.25, w 100, b 10000: 20 calls, 20 lifetimes, 13 builds for a half-width of 0.4."""
    found = optimal_counts(4, 1, 0.25, warmup=100, build_cost=10_000)
    assert found.rounded == (20, 20)
    assert optimal_counts(4, 1, 0.25, warmup=100, build_cost=10_000, repeated=4).rounded == (20, 10)
    assert builds_needed(4, 1, 0.25, counts=(20, 20), half=0.4, level=0.99) == 13

    def loss(calls: float, lifetimes: float) -> float:
        return (10_000 + (100 + calls) * lifetimes) * (4 / (lifetimes * calls) + 1 / lifetimes + 0.25)

    assert loss(20, 20) == pytest.approx(3844)
    assert [loss(10, 20) / loss(20, 20), loss(20, 40) / loss(20, 20)] == pytest.approx([1.0156, 1.0780], abs=1e-4)
    assert min((loss(n, m), n, m) for n in range(2, 60) for m in range(2, 60))[1:] == (20, 20)


def test_counts_without_a_limit() -> None:
    """Where lifetimes add nothing a single long one is as good as many; the planner says so and never fails."""
    assert optimal_counts(1, -0.1, 0.2, warmup=100, build_cost=10).rounded == (math.inf, 2)
    assert optimal_counts(1, 0.5, 0, warmup=4, build_cost=10).rounded == (3, math.inf)
    assert optimal_counts(1, 13, 0, warmup=4, build_cost=10).rounded[0] == 2
    assert optimal_counts(1, 13, 0, warmup=4, build_cost=10).calls == pytest.approx(0.5547, abs=1e-4)


@pytest.mark.parametrize(
    ("probability", "error", "calls"),
    [
        (0.5, 0.005, 38415),
        (0.9, 0.005, 13830),
        (0.5, 0.01, 9604),
        (0.95, 0.01, 1825),
        (0.99, 0.02, 96),
        (0.999, 0.02, 10),
    ],
)
def test_calls_for_a_quantile(probability: float, error: float, calls: int) -> None:
    """Chen and Kelton's counts, as in the digest's table."""
    assert calls_for_quantile(probability, error, 0.95) == calls


def test_calls_are_not_worth_timing_once_lifetimes_dominate() -> None:
    """Ten times the ratio of variances, within what was asked for."""
    assert calls_worth_timing(4.0, 1.0, fewest=30, most=1000) == 40
    assert calls_worth_timing(4.0, 100.0, fewest=30, most=1000) == 30
    assert calls_worth_timing(4.0, 0.0, fewest=30, most=1000) == 1000


@pytest.mark.parametrize(("deviation", "count"), [(0.01, 5), (0.05, 10), (0.2, 20)])
def test_the_smallest_detectable_change_is_detected_as_often_as_said(deviation: float, count: int) -> None:
    """At the predicted ratio four of five comparisons find it."""
    rng = np.random.default_rng(count)
    shift = math.log(smallest_detectable(deviation * math.sqrt(2 / count), 2 * count - 2, 0.95))
    found = 0
    for _ in range(1500):
        sides = rng.normal(0, deviation, (2, count))
        estimate = ratio_estimate({"h": np.exp(sides[0])}, {"h": np.exp(sides[1] + shift)}, level=0.95)
        assert estimate is not None
        found += estimate.low > 1.0
    assert found / 1500 == pytest.approx(0.8, abs=0.04)


@pytest.mark.parametrize("shift", [0.0, 0.01, 0.05])
def test_needed_lifetimes_decide_and_a_quarter_of_them_do_not(shift: float) -> None:
    """With so many lifetimes most comparisons are decided, with a quarter of them clearly fewer."""
    rng = np.random.default_rng(9)
    deviation, tolerance = 0.02, 0.02
    number = needed_lifetimes(shift, (deviation, deviation), 0.95, tolerance)

    def decided(count: int) -> float:
        hits = 0
        for _ in range(400):
            sides = rng.normal(0, deviation, (2, count))
            one = ratio_estimate({"h": np.exp(sides[0])}, {"h": np.exp(sides[1] + shift)}, level=0.95)
            assert one is not None
            hits += one.low > 1 or one.high < 1 or (one.low >= 1 / 1.02 and one.high <= 1.02)
        return hits / 400

    assert decided(number) >= 0.72
    assert decided(max(2, number // 4)) < decided(number) - 0.1


@pytest.mark.parametrize(
    ("log_ratio", "deviation"), [(0.003, 0.02), (0.015, 0.05), (0.05, 0.02), (0.0, 0.1), (0.1, 0.3)]
)
def test_needed_lifetimes_are_the_smallest_number_that_decides(log_ratio: float, deviation: float) -> None:
    """Every number of lifetimes is tried with scipy's quantiles: change and equivalence each for itself."""
    numbers = np.arange(2, 4000)
    freedom, error = 2.0 * (numbers - 1), deviation * np.sqrt(2.0 / numbers)
    change = (stats.t.ppf(0.975, freedom) + stats.t.ppf(0.8, freedom)) * error <= log_ratio
    same = (stats.t.ppf(0.975, freedom) + stats.t.ppf(0.9, freedom)) * error <= math.log(1.02) - log_ratio
    found = (
        lifetimes_for_change(log_ratio, (deviation, deviation), 0.95),
        lifetimes_for_equivalence(log_ratio, (deviation, deviation), 0.95, 0.02),
    )
    for number, decided in zip(found, (change, same), strict=True):
        first = int(numbers[np.argmax(decided)]) if decided.any() else None
        assert number == first if first is not None else number > 3999
    assert needed_lifetimes(log_ratio, (deviation, deviation), 0.95, 0.02) == min(found)
