"""The location of a window: a trimmed mean on the log axis with its sampling error."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from specmine.mining.statistics.location import location, locations
from specmine.model.buckets import BUCKET_MIDDLES, bucket_of
from specmine.model.histogram import Histogram


def test_it_is_scipys_trimmed_mean_of_the_buckets() -> None:
    """The same as a tenth trimmed at either end of the log middles, which scipy does by sorting."""
    values = np.random.default_rng(1).lognormal(10, 0.7, 1_000)
    mean, _ = location(Histogram.from_durations(values))
    assert mean == pytest.approx(float(stats.trim_mean(np.log(BUCKET_MIDDLES[bucket_of(values)]), 0.1)), abs=1e-9)


def test_its_variance_is_that_of_repeated_draws() -> None:
    """Over 400 windows of 500 calls the stated variance agrees with the observed one within a fifth."""
    rng = np.random.default_rng(2)
    got = np.array([location(Histogram.from_durations(rng.lognormal(10, 0.4, 500))) for _ in range(400)])
    assert float(got[:, 1].mean()) == pytest.approx(float(got[:, 0].var()), rel=0.2)


def test_few_slow_calls_do_not_move_it() -> None:
    """Five percent of the calls a thousand times as slow: less than a tenth of a spread."""
    values = np.random.default_rng(3).lognormal(10, 0.3, 2_000)
    slowed = np.where(np.arange(2_000) < 100, values * 1_000, values)
    apart = location(Histogram.from_durations(slowed))[0] - location(Histogram.from_durations(values))[0]
    assert 0 < apart < 0.05


def test_classes_have_their_own_and_few_calls_have_none() -> None:
    """Each class by itself; below twenty calls nothing is stated."""
    rng = np.random.default_rng(4)
    one = Histogram.from_durations(np.concatenate((rng.lognormal(10, 0.1, 500), rng.lognormal(13, 0.1, 10))))
    low, high = locations([one, one], [int(bucket_of(int(math.exp(11.5))))])
    assert low.shape == (2, 2)
    assert low[:, 0] == pytest.approx(10, abs=0.03)
    assert np.isnan(high).all()


def test_windows_together_are_as_each_by_itself() -> None:
    """Also empty ones, and ones of too few calls, anywhere between others."""
    rng = np.random.default_rng(5)
    windows = [Histogram.from_durations(rng.lognormal(10, 0.4, calls)) for calls in (500, 0, 30, 19, 20, 1, 300, 0)]
    (together,) = locations(windows, ())
    alone = np.array([location(one) for one in windows])
    assert together == pytest.approx(alone, nan_ok=True, rel=1e-12)
    assert np.isnan(together[:, 0]).tolist() == [False, True, False, True, False, True, False, True]
