"""Ratios, their intervals and plans agree with scipy, with closed forms, and with simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from specmine.mining.regression.ratio_estimate import ratio_estimate


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
