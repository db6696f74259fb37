"""The smoothed_cdf CDF is that of durations with a triangular error."""

from __future__ import annotations

import numpy as np
import pytest

from specmine.mining.borders.smoothing import smoothed_cdf
from specmine.mining.borders.valleys import EDGES
from specmine.model.buckets import BUCKETS
from specmine.model.histogram import Histogram


@pytest.mark.parametrize("resolution_ns", [50.0, 400.0])
def test_blurring_adds_a_triangular_error(resolution_ns: float) -> None:
    """Held against drawn errors: the sum of two uniform ones of half the resolution each."""
    rng = np.random.default_rng(1)
    values = np.concatenate((rng.uniform(1_984, 2_016, 200_000), rng.uniform(5_888, 6_144, 200_000)))  # whole buckets
    below = np.concatenate(([0.0], np.cumsum(Histogram.from_durations(values).dense / values.size)))
    last = int(np.searchsorted(EDGES, 9_000))
    wrong = values + rng.uniform(-0.5, 0.5, (2, values.size)).sum(axis=0) * resolution_ns
    expected = np.concatenate(([0.0], np.cumsum(Histogram.from_durations(wrong).dense / values.size)))
    got = smoothed_cdf(below, resolution_ns, last)
    inside = slice(1, last)
    # between the edges the CDF is linear, which shows where the error is hardly wider than a bucket (32 ns)
    assert np.abs(got - expected)[inside].max() < (0.02 if resolution_ns < 100 else 0.005)
    assert np.diff(got).min() > -1e-12


def test_above_the_last_edge_nothing_changes() -> None:
    """There the CDF stays as it is, and it ends at 1."""
    rng = np.random.default_rng(2)
    below = np.concatenate(([0.0], np.cumsum(Histogram.from_durations(rng.exponential(5_000, 10_000)).dense / 10_000)))
    last = int(np.searchsorted(EDGES, 3_000))
    got = smoothed_cdf(below, 200.0, last)
    assert np.array_equal(got[last + 5 :], below[last + 5 :])
    assert got.shape == (BUCKETS + 1,)
    assert got[-1] == pytest.approx(1.0)


def test_no_probability_is_lost_below_the_layout() -> None:
    """Durations of nearly 0 cannot become less: what an error puts there stays below the first edges."""
    below = np.concatenate(([0.0], np.cumsum(Histogram.from_durations(np.full(100, 40)).dense / 100)))
    got = smoothed_cdf(below, 50.0, 200)
    assert got[0] > 0
    assert got[-1] == pytest.approx(1.0)
