"""How much paths of one behaviour vary: checked against scipy's distributions and its analysis of variance."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.special import gammaln, logsumexp

from specmine.mining.behaviours.path_variation import (
    DEVIATIONS,
    PathVariation,
    UsualVariation,
    independent_of_path,
    path_variation,
)
from specmine.mining.statistics.class_shares import Dispersion

NOTHING_KNOWN = UsualVariation(deviation=float(DEVIATIONS[0]), freedom=1e-9)


def drawn(
    rng: np.random.Generator, shares: NDArray[np.float64], deviation: float, calls: int = 100_000
) -> NDArray[np.float64]:
    """Return class counts of a path for each share of the upper class, with an effect of its own."""
    slow = rng.binomial(calls, np.clip(shares + rng.normal(0, deviation, len(shares)), 0, 1))
    return np.stack((calls - slow, slow), axis=1).astype(np.float64)


def varied(rows: NDArray[np.float64], labels: list[int], usual: UsualVariation = NOTHING_KNOWN) -> PathVariation:
    """Return the variation of paths in these groups."""
    return path_variation(rows, np.array(labels, dtype=np.intp), usual)


def test_the_likelihood_is_that_of_dirichlet_multinomial_counts() -> None:
    """As scipy computes it, but for the coefficient that does not depend on the deviation."""
    rows = np.array([[30.0, 10.0], [55.0, 45.0], [2.0, 1.0]])
    got = varied(rows, [0, 0, 0])
    coefficient = gammaln(rows.sum(axis=1) + 1) - gammaln(rows + 1).sum(axis=1)
    labels = np.zeros(3, dtype=np.intp)
    for number in (0, 20, 39):
        sums = independent_of_path(rows, labels, float(DEVIATIONS[number])).sum(axis=0) + 0.5
        share = sums / sums.sum()
        correlation = min(DEVIATIONS[number] ** 2 / (share * (1 - share)).max(), 0.9)
        expected = [stats.dirichlet_multinomial.logpmf(row, (1 / correlation - 1) * share, row.sum()) for row in rows]
        assert got.log_likelihoods()[number] == pytest.approx(np.array(expected) - coefficient)


INTEGRATED = {
    "pure": [[6000, 0], [6000, 0], [6000, 0]],
    "nearly pure": [[5994, 6], [5994, 6]],
    "nearly pure, unlike": [[5994, 6], [5940, 60]],
    "mixed": [[5000, 1000], [5100, 900]],
    "one pure": [[6000, 0], [5000, 1000]],
    "opposite": [[6000, 0], [0, 6000]],
    "few calls": [[6, 2], [5, 0], [3, 3], [1, 0], [0, 2]] * 4,
}


@pytest.mark.parametrize("name", INTEGRATED)
def test_the_shares_of_a_group_are_integrated_out(name: str) -> None:
    """As by a sum over all shares, of scipy's beta-binomial likelihoods of all paths given one, by Jeffreys' prior."""
    rows = np.array(INTEGRATED[name], dtype=np.float64)
    logit = np.linspace(-25, 25, 4001)
    slow, fast = 1 / (1 + np.exp(-logit)), 1 / (1 + np.exp(logit))
    mean = (rows / rows.sum(axis=1, keepdims=True)).mean(axis=0)

    def likelihood(some: NDArray[np.float64], deviation: float) -> float:
        share = mean if len(some) > 1 else some[0] / some.sum()
        precision = 1 / min(deviation**2 / max(share[0] * share[1], 0.05), 0.9) - 1
        each = [stats.betabinom.logpmf(row[1], row.sum(), precision * slow, precision * fast) for row in some]
        return float(logsumexp(np.sum(each, axis=0) + 0.5 * np.log(slow * fast)))

    numbers = [0, 8, 16, 24, 32, 39]
    got = varied(rows, [0] * len(rows)).log_posterior[numbers]
    first = rows.sum(axis=1) / rows.sum()
    expected = np.array(
        [
            likelihood(rows, deviation)
            - sum(part * likelihood(row[None], deviation) for part, row in zip(first, rows, strict=True))
            for deviation in DEVIATIONS[numbers].tolist()
        ]
    )
    assert got - got[0] == pytest.approx(expected - expected[0], abs=0.4, rel=0.005)


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("noise", [0.0, 0.001, 0.3])
def test_a_single_path_says_nothing_of_the_variation(classes: int, noise: float) -> None:
    """Groups of one path leave the usual variation as it is, however many they are and wherever they lie."""
    rows = 10_000 * ((1 - noise) * np.eye(classes) + noise / classes)
    got = varied(rows, list(range(classes)), UsualVariation())
    assert got.log_posterior == pytest.approx(UsualVariation().log_prior(), abs=1e-9)


@pytest.mark.parametrize("paths", [2, 3, 20])
def test_paths_without_a_call_in_a_class_do_not_seem_to_vary(paths: int) -> None:
    """Three groups of one class each: deviations above the usual one gain nothing."""
    rows = 10_000 * np.repeat(np.eye(3), paths, axis=0)
    got = varied(rows, np.repeat(np.arange(3), paths).tolist(), UsualVariation())
    gained = got.log_posterior - UsualVariation().log_prior()
    assert (gained[UsualVariation().deviation < DEVIATIONS] < 0.01).all()
    assert got.p_value(Dispersion(), (0, 1)) < 1e-5


def test_a_group_within_one_class_has_no_shares_to_pay_for() -> None:
    """Two pure groups are worth more than one mixed group, whatever the number of calls; two equal ones are not."""
    for calls in (100, 10_000, 1_000_000):
        rows = calls * np.eye(2)
        apart, together = varied(rows, [0, 1], UsualVariation()), varied(rows, [0, 0], UsualVariation())
        assert apart.evidence > together.evidence
    rows = np.array([[5_000.0, 5_000.0], [5_000.0, 5_000.0]])
    assert varied(rows, [0, 1], UsualVariation()).evidence < varied(rows, [0, 0], UsualVariation()).evidence


def test_with_many_calls_the_p_value_is_that_of_an_analysis_of_variance() -> None:
    """The paths are the units: more calls of the same paths make nothing more significant."""
    rng = np.random.default_rng(1)
    labels = [0] * 12 + [1] * 12
    for gap in (0.0, 0.05, 0.1, 0.15):
        rows = drawn(rng, np.where(np.array(labels) == 1, 0.5 + gap, 0.5), 0.08)
        share = rows[:, 1] / rows.sum(axis=1)
        expected = stats.f_oneway(share[:12], share[12:]).pvalue
        assert np.log(varied(rows, labels).p_value(Dispersion())) == pytest.approx(np.log(expected), rel=0.12, abs=0.15)
        assert varied(10 * rows, labels).p_value(Dispersion()) == pytest.approx(expected, rel=0.5)


@pytest.mark.parametrize("deviation", [0.02, 0.05, 0.1])
def test_the_deviation_is_found_again(deviation: float) -> None:
    """Of forty paths in two groups; that the groups differ says nothing about it."""
    rng = np.random.default_rng(2)
    labels = [0] * 20 + [1] * 20
    found = [
        varied(drawn(rng, np.where(np.array(labels) == 1, 0.7, 0.3), deviation), labels, UsualVariation()).deviation
        for _ in range(20)
    ]
    assert float(np.median(found)) == pytest.approx(deviation, rel=0.15)


def test_of_few_paths_the_usual_variation_decides() -> None:
    """Two paths have no variation to show: a gap of the usual size is nothing, one many times as large is much."""
    rows = drawn(np.random.default_rng(3), np.array([0.40, 0.46]), 0.0)
    assert stats.chi2_contingency(rows).pvalue < 1e-9
    assert varied(rows, [0, 1], UsualVariation()).p_value(Dispersion()) > 0.05
    far = drawn(np.random.default_rng(3), np.array([0.2, 0.8]), 0.0)
    assert varied(far, [0, 1], UsualVariation()).p_value(Dispersion()) < 1e-4
    assert varied(far, [0, 1], UsualVariation(deviation=0.3)).p_value(Dispersion()) > 0.01


def test_a_group_by_lot_costs_its_surprise() -> None:
    """Two kinds far apart, a quarter and three quarters: each path costs the entropy of its kind more than by edges."""
    rows = np.array([[950.0, 50.0]] * 6 + [[100.0, 900.0]] * 18)
    variation = varied(rows, [0] * 6 + [1] * 18)
    cost = variation.log_likelihoods()[5] - variation.by_lot()[5]
    assert cost[:6] == pytest.approx(np.log(4), abs=1e-6)
    assert cost[6:] == pytest.approx(np.log(4 / 3), abs=1e-6)
    same = varied(np.tile([[400.0, 600.0]], (8, 1)), [0, 0, 0, 0, 1, 1, 1, 1])
    assert same.by_lot()[5] == pytest.approx(same.log_likelihoods()[5], abs=1e-6)


def test_small_differences_of_independent_calls_are_judged_as_pearson_does() -> None:
    """Where paths have few calls, their draw is all the variation there is."""
    rows = np.array([[6.0, 4.0], [5.0, 5.0], [3.0, 7.0], [2.0, 8.0]] * 5)
    labels = [0, 0, 1, 1] * 5
    table = np.array([rows[np.array(labels) == group].sum(axis=0) for group in (0, 1)])
    expected = stats.chi2_contingency(table, correction=False).pvalue
    got = varied(rows, labels, UsualVariation(deviation=float(DEVIATIONS[0]), freedom=200)).p_value(Dispersion())
    assert got == pytest.approx(expected, rel=0.05)


def test_noise_known_from_few_windows_does_not_hide_paths_far_apart() -> None:
    """The noise is a small part of the variance of paths with many calls: its few degrees of freedom are no limit."""
    rows = 2000 * np.array([[0.98, 0.02], [0.60, 0.40]])
    noise = Dispersion(factor=3.0, freedom=2.0)
    assert varied(rows, [0, 1], UsualVariation()).p_value(noise) < 1e-3
    near = 2000 * np.array([[0.64, 0.36], [0.60, 0.40]])
    assert varied(near, [0, 1], UsualVariation()).p_value(noise) > 0.05


@pytest.mark.parametrize(("calls", "freedom"), [(50, 5), (400, 2)])
def test_paths_that_only_vary_seldom_count_as_different(calls: int, freedom: int) -> None:
    """Two paths with effects of their own, in windows that vary three times as much as draws do, 400 times."""
    rng = np.random.default_rng(4)
    found, careless = 0, 0
    for _ in range(400):
        spread = np.sqrt(0.03**2 + 3 * 0.25 / calls)
        slow = calls * np.clip(0.5 + rng.normal(0, spread, 2), 0.01, 0.99)
        variation = varied(np.stack((calls - slow, slow), axis=1), [0, 1], UsualVariation())
        factor = max(1.0, 3 * rng.chisquare(freedom) / freedom)
        found += variation.p_value(Dispersion(factor=factor, freedom=freedom)) < 0.05
        careless += variation.p_value(Dispersion()) < 0.05
    assert stats.binomtest(found, 400, 0.05, alternative="greater").pvalue > 0.001
    assert stats.binomtest(careless, 400, 0.05, alternative="greater").pvalue < 1e-9
