"""Ratios, their intervals and plans agree with scipy, with closed forms, and with simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from specmine.mining.regression.false_discovery_rate import e_discoveries, q_values
from specmine.mining.regression.ratio_estimate import ratio_estimate
from specmine.mining.regression.sample_size import (
    builds_needed,
    calls_for_quantile,
    calls_worth_timing,
    needed_lifetimes,
    optimal_counts,
    smallest_detectable,
)
from specmine.mining.statistics.student_t import t_cdf, t_quantile, two_sided_p


@given(st.floats(0.5, 1e5), st.floats(1e-6, 1 - 1e-6))
@example(67929.0, 0.5000597264726203)
def test_students_t_is_scipys(df: float, probability: float) -> None:
    """Quantile and distribution function to nine digits."""
    value = float(stats.t.ppf(probability, df))
    assert t_quantile(probability, df) == pytest.approx(value, rel=1e-6, abs=1e-6)
    assert t_cdf(value, df) == pytest.approx(float(stats.t.cdf(value, df)), rel=1e-8, abs=1e-12)
    assert two_sided_p(value, df) == pytest.approx(2 * float(stats.t.sf(abs(value), df)), rel=1e-7, abs=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_equal_counts_are_welchs_test(seed: int) -> None:
    """With as many lifetimes on each side interval and p-value are scipy's Welch on logarithms."""
    rng = np.random.default_rng(seed)
    base, new = np.exp(rng.normal(0, 0.1, 6)), np.exp(rng.normal(0.1, 0.3, 6))
    found = ratio_estimate({"h": base}, {"h": new}, level=0.9)
    assert found is not None
    oracle = stats.ttest_ind(np.log(new), np.log(base), equal_var=False)
    between = oracle.confidence_interval(0.9)
    assert (found.low, found.high) == pytest.approx((math.exp(between.low), math.exp(between.high)), rel=1e-9)
    assert found.p_value == pytest.approx(oracle.pvalue, rel=1e-8)
    assert found.freedom == pytest.approx(oracle.df)
    assert found.ratio == pytest.approx(math.exp(np.log(new).mean() - np.log(base).mean()))


@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
@pytest.mark.parametrize(("few", "share"), [(2, 0.0), (3, 0.3)])
def test_unequal_counts_lie_nearer_the_more_careful_test(level: float, few: int, share: float) -> None:
    """Few against twenty: the wider of Welch's and the pooled interval, less three tenths from three on."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        base, new = np.exp(rng.normal(0, 0.1, 20)), np.exp(rng.normal(0, 0.1, few))
        found = ratio_estimate({"h": base}, {"h": new}, level=level)
        assert found is not None
        oracles = [stats.ttest_ind(np.log(new), np.log(base), equal_var=equal) for equal in (True, False)]
        narrow, wide = sorted(float(np.diff(each.confidence_interval(level))[0]) for each in oracles)
        assert math.log(found.high / found.low) == pytest.approx(wide - share * (wide - narrow))
        assert (found.p_value < 1 - level) == (not found.low <= 1 <= found.high)


@pytest.mark.parametrize("draw", ["normal", "uniform"])
def test_unequal_counts_keep_the_level_and_use_it(draw: str) -> None:
    """Three against twenty at 5 %: 3 to 6 % of unchanged comparisons are called a change, whatever the distribution."""
    rng = np.random.default_rng(8)
    sides = [
        rng.normal(0, 0.05, (1500, count)) if draw == "normal" else np.log(rng.uniform(0.7, 1.3, (1500, count)))
        for count in (3, 20)
    ]
    found = [ratio_estimate({"": np.exp(a)}, {"": np.exp(b)}, level=0.95) for a, b in zip(*sides, strict=True)]
    share = np.mean([each is not None and not each.low <= 1 <= each.high for each in found])
    assert 0.021 < share < 0.072  # two standard errors of 1,500 draws beyond either


def test_three_hosts_are_a_paired_test() -> None:
    """Differences of hosts are draws: a one-sample t on them."""
    rng = np.random.default_rng(4)
    base = {f"h{k}": np.exp(rng.normal(k, 0.05, 4)) for k in range(4)}
    new = {f"h{k}": np.exp(rng.normal(k + 0.1, 0.05, 5)) for k in range(4)}
    found = ratio_estimate(base, new, level=0.95)
    assert found is not None
    differences = [np.log(new[h]).mean() - np.log(base[h]).mean() for h in base]
    oracle = stats.ttest_1samp(differences, 0.0)
    assert found.method == "across-hosts"
    assert found.p_value == pytest.approx(oracle.pvalue, rel=1e-8)
    assert math.log(found.high) == pytest.approx(oracle.confidence_interval(0.95).high)


@pytest.mark.parametrize(
    ("base", "new"),
    [({"h": [1.0]}, {"h": [1.0, 2.0]}), ({"h": []}, {"h": [1.0, 2.0]}), ({"a": [1.0], "b": [2.0]},) * 2],
)
def test_what_does_not_repeat_has_no_interval(base: dict[str, list[float]], new: dict[str, list[float]]) -> None:
    """One lifetime a side says nothing about restarts."""
    assert ratio_estimate(base, new, level=0.95) is None


def test_equal_values_are_known_no_better_than_their_clock() -> None:
    """Medians that are all 100 or 101 ns on a clock of 1 ns are not a change known for sure."""
    found = ratio_estimate({"h": [100.0, 100.0]}, {"h": [101.0, 101.0]}, level=0.95, step=1.0)
    assert found is not None
    assert found.low < 1.0 < found.high
    exact = ratio_estimate({"h": [100.0, 100.0]}, {"h": [101.0, 101.0]}, level=0.95)
    assert exact is not None
    assert exact.low == exact.high == pytest.approx(1.01)


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


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30))
def test_q_values_are_scipys(p_values: list[float]) -> None:
    """Benjamini and Hochberg's adjustment."""
    assert q_values(p_values) == pytest.approx(list(stats.false_discovery_control(p_values)))


def test_e_values_are_rejected_by_their_rank() -> None:
    """The k largest with e >= n / (rate k): 100 alone of ten at 10 % is enough, 60 and 55 are together."""
    assert e_discoveries({"a": math.log(101.0), "b": 0.0}, 10, 0.1) == {"a"}
    assert e_discoveries({"a": math.log(99.0), "b": 0.0}, 10, 0.1) == frozenset()
    assert e_discoveries({"a": math.log(60.0), "b": math.log(55.0), "c": 0.0}, 10, 0.1) == {"a", "b"}
    with pytest.raises(ValueError, match="2 values of 1 tests"):
        e_discoveries({"a": 1.0, "b": 2.0}, 1, 0.1)
