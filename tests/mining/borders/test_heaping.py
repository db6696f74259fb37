"""Heaps at round values: recognised by their step, spread, and told from narrow classes."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from specmine.mining.borders.clock_resolution import Grain, grain_of
from specmine.mining.borders.detection import borders
from specmine.mining.borders.heaping import rounding_steps, without_heaping
from specmine.mining.settings import MiningSettings
from specmine.model.histogram import Histogram

S = MiningSettings()


def partly_rounded(
    rng: np.random.Generator, values: NDArray[np.float64], share: float, step: float
) -> NDArray[np.float64]:
    """Round a share of the values to multiples of the step."""
    return np.where(rng.random(values.size) < share, np.round(values / step) * step, values)


@pytest.mark.parametrize(("share", "step"), [(0.1, 5_000.0), (0.2, 10_000.0), (0.1, 2_000.0)])
def test_the_step_of_rounding_is_recognised(share: float, step: float) -> None:
    """From 20,000 exponential durations, to the very step: not half of it, not twice."""
    rng = np.random.default_rng(1)
    for _ in range(10):
        assert (
            rounding_steps(
                Histogram.from_durations(partly_rounded(rng, rng.exponential(2e4, 20_000), share, step)).dense
            )[0]
            == step
        )


@pytest.mark.parametrize("calls", [2_000, 100_000])
def test_smooth_distributions_have_no_heaps(calls: int) -> None:
    """Slopes, bends, sharp beginnings and ends are none."""
    rng = np.random.default_rng(2)
    found = 0
    for _ in range(20):
        for values in (
            rng.lognormal(np.log(2e4), 0.5, calls),
            rng.normal(2e4, 1e3, calls),
            rng.uniform(1e4, 3e4, calls),
            1e4 * (1 + rng.pareto(1.5, calls)),
        ):
            found += len(rounding_steps(Histogram.from_durations(values).dense)) > 0
    assert found <= 2


def test_narrow_classes_at_round_values_are_no_heaps() -> None:
    """Sleeps of 10, 20 and 30 ms hold all that is near them: nothing there stays where it is."""
    rng = np.random.default_rng(3)
    values = np.concatenate([rng.normal(n * 1e7 + 6e4, 2e4, 500) for n in (1, 2, 3)])
    histogram = Histogram.from_durations(values)
    assert rounding_steps(histogram.dense) == ()
    assert len(borders(histogram, settings=S)) == 2


def test_the_teeth_of_a_clock_are_no_heaps() -> None:
    """Durations in whole microseconds have a clock and no heaps."""
    rng = np.random.default_rng(4)
    for calls in (2_000, 50_000):
        counts = Histogram.from_durations(np.round(rng.lognormal(np.log(2e4), 0.5, calls) / 1_000) * 1_000).dense
        assert grain_of(counts, above_ns=50) == Grain(clock_ns=1_000.0)


def test_spreading_keeps_the_calls_and_brings_them_back() -> None:
    """The sum stays, and the distribution comes closer to that before rounding."""
    rng = np.random.default_rng(5)
    values = rng.exponential(2e4, 50_000)
    before = np.cumsum(Histogram.from_durations(values).dense.astype(float))
    counts = Histogram.from_durations(partly_rounded(rng, values, 0.2, 10_000)).dense
    after = without_heaping(counts, 10_000.0)
    assert after.sum() == pytest.approx(50_000)
    assert after.min() > -1e-6
    assert np.abs(np.cumsum(after) - before).max() < 0.3 * np.abs(np.cumsum(counts.astype(float)) - before).max()


def test_no_step_changes_nothing() -> None:
    """0 is none."""
    counts = Histogram.from_durations(np.random.default_rng(6).exponential(2e4, 1_000)).dense
    assert np.array_equal(without_heaping(counts, 0.0), counts)


@pytest.mark.parametrize("calls", [2_000, 100_000])
def test_heaps_make_no_borders_and_hide_none(calls: int) -> None:
    """One class stays one, two stay two, with 10 % rounded to a quarter of the typical duration."""
    rng = np.random.default_rng(7)
    one = two = 0
    for _ in range(20):
        single = partly_rounded(rng, rng.lognormal(np.log(2e4), 0.5, calls), 0.1, 5_000)
        one += len(borders(Histogram.from_durations(single), settings=S, z=S.stable_z))
        far = rng.lognormal(np.log(2e4), 0.2, calls) * np.where(rng.random(calls) < 0.3, 4.0, 1.0)
        got = borders(Histogram.from_durations(partly_rounded(rng, far, 0.1, 5_000)), settings=S, z=S.stable_z)
        two += [abs(b.cdf - 0.7) < 0.05 for b in got] == [True]
    assert one <= 1
    assert two >= 19


@pytest.mark.parametrize(
    ("share", "step", "calls"), [(0.1, 5_000.0, 10_000), (0.2, 10_000.0, 2_000), (0.3, 1_000.0, 2_000)]
)
def test_rounding_of_broad_distributions_makes_no_borders(share: float, step: float, calls: int) -> None:
    """Gamma durations of half the typical one and more rounded off: no border, whichever step explains the heaps."""
    rng = np.random.default_rng(8)
    false = 0
    for _ in range(120):
        values = partly_rounded(rng, rng.gamma(0.7, 2e4, calls), share, step)
        false += len(borders(Histogram.from_durations(values), settings=S, z=S.stable_z)) > 0
    assert false <= 3


@pytest.mark.parametrize(("share", "step", "calls"), [(0.1, 5_000.0, 2_000), (0.2, 10_000.0, 10_000)])
def test_heaps_are_not_taken_for_the_teeth_of_a_fine_clock(share: float, step: float, calls: int) -> None:
    """Buckets wider than a clock's step all keep to it, and three heaps may lie at its full ones."""
    rng = np.random.default_rng(9)
    drawn = [partly_rounded(rng, rng.uniform(1e4, 3e4, calls), share, step) for _ in range(300)]
    grains = [grain_of(Histogram.from_durations(values).dense, above_ns=50) for values in drawn]
    assert sum(step in (grain.heaping_ns, *grain.perhaps_ns) for grain in grains) >= 298
