"""Summaries of raw durations and of histograms, the warm-up rule, and the impact factor."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from specmine.mining.regression.impact_factor import (
    autocorrelation,
    expected_impact,
    impact_factor,
    is_dependent,
)
from specmine.mining.regression.sample import (
    SUMMARIES,
    granularity_ns,
    mean,
    quantile,
    sample_of_counts,
    sample_of_durations,
    share_above,
    trimmed,
    variance,
)
from specmine.mining.regression.warmup import warmup_calls
from specmine.model.histogram import histogram_of

durations = st.lists(st.floats(0.0, 1e9), min_size=1, max_size=80)


@given(durations, st.floats(0.0, 1.0))
def test_raw_durations_are_summarised_as_numpy_and_scipy_do(values: list[float], probability: float) -> None:
    """Quantiles of type 7, mean, variance, trimmed mean, share above a limit."""
    sample = sample_of_durations(values)
    assert quantile(sample, probability) == pytest.approx(np.quantile(values, probability), rel=1e-9, abs=1e-6)
    assert mean(sample) == pytest.approx(np.mean(values), rel=1e-9)
    assert trimmed(sample) == pytest.approx(float(stats.trim_mean(values, 0.05)), rel=1e-9)
    if len(values) > 1:
        assert variance(sample) == pytest.approx(np.var(values, ddof=1), rel=1e-6, abs=1e-6)
    assert share_above(sample, values[0]) == pytest.approx(np.mean(np.array(values) > values[0]))


def test_a_histogram_is_summarised_within_its_buckets() -> None:
    """Buckets are at most 3.2 % wide: every summary is within 1 % of the raw one, bias taken off."""
    rng = np.random.default_rng(1)
    values = np.round(rng.lognormal(12, 0.5, 20_000))
    raw, held = sample_of_durations(values - 500.0), sample_of_counts(histogram_of(values), 500.0)
    for summarise in SUMMARIES.values():
        assert summarise(held) == pytest.approx(summarise(raw), rel=0.01)
    assert share_above(held, 2e5) == pytest.approx(share_above(raw, 2e5), abs=0.005)


def test_the_step_of_a_clock_is_seen() -> None:
    """Durations in whole microseconds step by 1,000 ns; inside buckets calls lie evenly."""
    assert granularity_ns([sample_of_durations([3000, 5000]), sample_of_durations([4000])]) == 1000.0
    assert granularity_ns([sample_of_durations([7.0, 7.0])]) == 1.0
    assert granularity_ns([sample_of_counts(histogram_of([100, 200]))]) == 0.0


@pytest.mark.parametrize("calls", [200, 2000])
def test_a_slow_start_is_cut(calls: int) -> None:
    """Fifty calls three times slower are found, with hardly any others."""
    rng = np.random.default_rng(calls)
    values = rng.normal(1000, 30, calls) * np.where(np.arange(calls) < 50, 3.0, 1.0)
    assert 50 <= warmup_calls(values) <= 75


def test_steady_lifetimes_keep_their_calls() -> None:
    """Of 300 steady lifetimes, skewed and with rare long calls, hardly one loses any."""
    rng = np.random.default_rng(5)
    cut = [warmup_calls(rng.lognormal(10, 0.5, 400) * np.where(rng.random(400) < 0.01, 50, 1)) for _ in range(300)]
    assert sum(each > 0 for each in cut) <= 6


@pytest.mark.parametrize(
    "values", [np.arange(400.0), np.arange(400.0)[::-1], np.repeat([1.0, 3.0], 200), np.ones(400), np.arange(30.0)]
)
def test_what_never_comes_to_rest_has_no_warmup(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> None:
    """Sorted, drifting, half and half, constant and short series stay whole."""
    assert warmup_calls(values) == 0


@pytest.mark.parametrize(("ratio", "slack"), [(0.0, 0.02), (0.4583, 0.03), (1.0, 0.1), (2.41, 0.25), (25.79, 2.0)])
def test_impact_factors_follow_theory(ratio: float, slack: float) -> None:
    """sqrt(1 + ratio^2) for additive normal effects that lie where they should; 1 once they are centred."""
    rng = np.random.default_rng(3)
    shifts = ratio * stats.norm.ppf((np.arange(100) + 0.5) / 100)
    runs = [shift + rng.normal(0, 1, 1000) for shift in shifts]
    assert impact_factor(runs, rng, 1000) == pytest.approx(expected_impact(ratio**2, 1.0), abs=slack)
    assert impact_factor([run - run.mean() for run in runs], rng, 1000) == pytest.approx(1.0, abs=0.03)


def test_spread_that_differs_stays_after_centring() -> None:
    """Lifetimes with deviations of their own keep an impact factor above 1.15."""
    rng = np.random.default_rng(4)
    runs = [rng.normal(0, np.exp(rng.normal(0, 0.5)), 1000) for _ in range(100)]
    assert impact_factor([run - run.mean() for run in runs], rng, 1000) > 1.15


def test_impact_factors_of_constant_runs() -> None:
    """Nothing varies: 1; only lifetimes vary: infinite; too little data is refused."""
    rng = np.random.default_rng(1)
    assert impact_factor([[5.0] * 10] * 4, rng, 50) == 1.0
    assert impact_factor([[float(k)] * 10 for k in range(4)], rng, 50) == np.inf
    with pytest.raises(ValueError, match="3 lifetimes"):
        impact_factor([[1.0, 2.0]] * 2, rng)
    with pytest.raises(ValueError, match="calls of each"):
        impact_factor([[1.0, 2.0]] * 8, rng)


def test_autocorrelation_of_a_known_pattern() -> None:
    """10, 12, 11, 13 repeated: -0.8, 0.6, -0.8, 1; shuffled there is none."""
    rng = np.random.default_rng(6)
    series = np.tile([10.0, 12.0, 11.0, 13.0], 250) + rng.normal(0, 0.01, 1000)
    assert autocorrelation(series, 4) == pytest.approx([-0.8, 0.6, -0.8, 1.0], abs=0.01)
    assert is_dependent(series)
    assert not is_dependent(rng.permutation(series))
    assert autocorrelation([1.0, 1.0, 1.0], 2).tolist() == [0.0, 0.0]
