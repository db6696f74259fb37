"""Steps of clocks and of rounding: recognised, spread, and no source of borders."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from specmine.mining.borders.clock_resolution import clock_step, grain_of, spread
from specmine.mining.borders.detection import borders
from specmine.mining.settings import MiningSettings
from specmine.model.buckets import BUCKETS
from specmine.model.histogram import Histogram

S = MiningSettings()


def rounded(values: NDArray[np.float64], step: float) -> NDArray[np.float64]:
    """Round to the step."""
    return np.asarray(np.round(values / step) * step)


@pytest.mark.parametrize("step", [1_000.0, 2_500.0])
def test_a_coarse_step_is_recognised(step: float) -> None:
    """Durations in whole steps are recognised from 2,000 calls, to the very step."""
    rng = np.random.default_rng(1)
    values = rounded(rng.lognormal(np.log(2e4), 0.4, 2_000), step)
    assert clock_step(Histogram.from_durations(values).dense, above_ns=50) == step


def test_a_smooth_distribution_has_no_step() -> None:
    """Noise and curvature are not taken for teeth."""
    rng = np.random.default_rng(2)
    for calls in (1_000, 100_000):
        assert clock_step(Histogram.from_durations(rng.lognormal(np.log(2e4), 0.4, calls)).dense) == 0
        assert clock_step(Histogram.from_durations(rng.exponential(2e4, calls)).dense) == 0


def test_two_narrow_classes_are_no_comb() -> None:
    """Two teeth may be two classes: they never make a step."""
    assert clock_step(Histogram.from_durations([1_000] * 500 + [2_000] * 500).dense) == 0


@pytest.mark.parametrize("step", [10.0, 20.0, 40.0, 100.0, 1_000.0, 2_500.0])
def test_a_coarse_clock_makes_no_border_beyond_doubt(step: float) -> None:
    """One class seen by a coarse clock stays one class."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        values = rounded(rng.lognormal(np.log(2e4), 0.3, 1_000), step)
        got = borders(Histogram.from_durations(values), settings=S)
        assert not [b for b in got if b.evidence.significance >= S.firm_z]


def test_two_classes_are_still_found_behind_a_coarse_clock() -> None:
    """The teeth are closed, the gap between classes is not."""
    rng = np.random.default_rng(4)
    values = np.concatenate((rng.lognormal(np.log(2e4), 0.15, 600), rng.lognormal(np.log(8e4), 0.15, 400)))
    got = borders(Histogram.from_durations(rounded(values, 1_000)), settings=S)
    (border,) = [b for b in got if b.evidence.significance >= S.firm_z]
    assert border.cdf == pytest.approx(0.6, abs=0.02)


def test_spreading_keeps_calls_and_order() -> None:
    """The spread cumulative counts ascend from 0 to all calls and stay within a step of the true ones."""
    rng = np.random.default_rng(5)
    values = rounded(rng.lognormal(np.log(2e4), 0.4, 5_000), 1_000)
    counts = Histogram.from_durations(values).dense
    got = spread(counts, 1_000.0)
    assert got.shape == (BUCKETS + 1,)
    assert got[0] == 0
    assert got[-1] == 5_000
    assert (np.diff(got) >= 0).all()


def test_durations_that_keep_to_no_step_stay_where_they_are() -> None:
    """A step that the durations do not have changes nothing."""
    counts = Histogram.from_durations(np.random.default_rng(6).lognormal(np.log(2e4), 0.4, 5_000)).dense
    assert np.array_equal(spread(counts, 5_000.0)[1:], np.cumsum(counts))


@pytest.mark.parametrize("calls", [10_000, 100_000, 1_000_000])
@pytest.mark.parametrize("shape", [0.6, 1.0])
def test_a_fine_clock_is_no_heaps_of_rounding(calls: int, shape: float) -> None:
    """Its multiples are also those of coarser steps, but between them lies nothing, as rounding leaves it nowhere."""
    rng = np.random.default_rng([3, calls])
    histogram = Histogram.from_durations(rounded(2e4 * rng.weibull(shape, calls), 40.0))
    assert grain_of(histogram.dense, above_ns=S.resolution_ns).heaping_ns == 0
    assert borders(histogram, settings=S, z=S.stable_z) == ()
