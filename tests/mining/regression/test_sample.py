"""Summaries of raw durations and of histograms, the warm-up rule, and the impact factor."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from specmine.mining.regression.sample import (
    SUMMARIES,
    granularity_ns,
    mean,
    quantile,
    sample_of_durations,
    sample_of_histogram,
    share_above,
    trimmed,
    variance,
)
from specmine.model.histogram import Histogram

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
    raw, held = sample_of_durations(values - 500.0), sample_of_histogram(Histogram.from_durations(values), 500.0)
    for summarise in SUMMARIES.values():
        assert summarise(held) == pytest.approx(summarise(raw), rel=0.01)
    assert share_above(held, 2e5) == pytest.approx(share_above(raw, 2e5), abs=0.005)


def test_the_step_of_a_clock_is_seen() -> None:
    """Durations in whole microseconds step by 1,000 ns; inside buckets calls lie evenly."""
    assert granularity_ns([sample_of_durations([3000, 5000]), sample_of_durations([4000])]) == 1000.0
    assert granularity_ns([sample_of_durations([7.0, 7.0])]) == 1.0
    assert granularity_ns([sample_of_histogram(Histogram.from_durations([100, 200]))]) == 0.0
