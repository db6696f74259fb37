"""Levels: quantiles agree with numpy, and 99 % ranges hold 99 % of the later windows of an unchanged program."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from specmine.mining.levels.estimate import WINDOW_CALLS, level_of, place_of, plain_level, range_of
from specmine.mining.levels.variation import variation
from specmine.mining.levels.window import Window
from specmine.model.histogram import Histogram
from specmine.model.level import Quantile
from tests.support.autoregression import autoregressive


def _window(durations: NDArray[np.float64], number: int = 0, lifetime: str = "a", bias_ns: float = 0.0) -> Window:
    return Window(
        histogram=Histogram.from_durations(durations + bias_ns),
        start_ns=number * 10**10,
        end_ns=(number + 1) * 10**10,
        lifetime=lifetime,
        bias_ns=bias_ns,
    )


def test_quantiles_are_those_of_the_calls_less_the_bias() -> None:
    """The pooled quantiles lie within half a bucket of numpy's, also where windows have different biases."""
    rng = np.random.default_rng(1)
    parts = [rng.lognormal(11, 0.5, 800) for _ in range(12)]
    level = level_of([_window(part, number, bias_ns=2_000.0) for number, part in enumerate(parts)])
    for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99)):
        quantile = level.quantile(name)
        assert quantile is not None
        assert quantile.ns == pytest.approx(np.quantile(np.concatenate(parts), share), rel=0.02)
        assert quantile.low_ns is not None
        assert quantile.high_ns is not None
        assert quantile.low_ns < quantile.ns < quantile.high_ns
    assert (level.calls, level.windows, level.lifetimes) == (9_600, 12, 1)


def test_few_calls_have_a_median_but_no_99_percent_quantile() -> None:
    """Of 100 calls the median is stated, of 99 nothing, and a range only from five windows on."""
    rng = np.random.default_rng(2)
    few = level_of([_window(rng.lognormal(11, 0.5, 99))])
    assert (few.p50, few.p90, few.p99) == (None, None, None)
    some = level_of([_window(rng.lognormal(11, 0.5, 100))])
    assert isinstance(some.p50, Quantile)
    assert some.p50.low_ns is None
    assert some.p99 is None
    assert level_of([]).calls == 0


def test_a_plain_level_has_the_same_quantiles_without_ranges() -> None:
    """Twelve windows have ranges; their plain level has none, and states a quantile from as many calls as is said."""
    rng = np.random.default_rng(4)
    windows = [_window(rng.lognormal(11, 0.5, 50), number, bias_ns=900.0) for number in range(12)]
    level, plain = level_of(windows), plain_level(windows)
    for name in ("p50", "p90", "p99"):
        known, bare = level.quantile(name), plain.quantile(name)
        assert known is not None
        assert bare == Quantile(ns=known.ns)
    assert (plain.calls, plain.windows, plain.lifetimes) == (level.calls, level.windows, level.lifetimes)
    assert plain_level(windows[:1]).p50 is None
    assert plain_level(windows[:1], WINDOW_CALLS).p50 is not None
    assert plain_level([]) == level_of([])


def test_the_sampling_variance_of_a_median_is_that_of_its_asymptotic_law() -> None:
    """p (1 - p) / (n f(q)^2) for calls that are lognormal with spread 0.5: sd 0.5 sqrt(pi / 2 / n)."""
    rng = np.random.default_rng(3)
    found = [place_of(_window(rng.lognormal(11, 0.5, 400)), 0.5) for _ in range(300)]
    wanted = 0.5 * math.sqrt(math.pi / 2 / 400)
    assert np.mean([math.sqrt(variance) for _, variance in found]) == pytest.approx(wanted, rel=0.05)
    assert np.std([place for place, _ in found]) == pytest.approx(wanted, rel=0.15)
    assert np.mean([place for place, _ in found]) == pytest.approx(11, abs=3 * wanted / math.sqrt(300) + 0.002)


@pytest.mark.parametrize(
    ("windows", "correlation", "disturbed"),
    [(10, 0.0, 0.0), (30, 0.5, 0.0), (150, 0.5, 0.03), (600, 0.8, 0.03), (1_000, 0.5, 0.05)],
)
def test_ranges_hold_later_windows_of_the_same_lifetime(windows: int, correlation: float, disturbed: float) -> None:
    """98 to 99.8 % of later windows, from 10 to 1,000 windows learned, with and without disturbed ones."""
    rng = np.random.default_rng(windows)
    inside = []
    for _ in range(120):
        places = 9 + autoregressive(rng, 2 * windows, correlation, 0.1) + rng.normal(0, 0.03, 2 * windows)
        places += np.where(rng.random(2 * windows) < disturbed, rng.uniform(0.2, 1.6, 2 * windows), 0)
        learned, later = places[:windows], places[windows:]
        known = variation(learned, np.full(windows, 0.03**2), ["a"] * windows, lifetime_sd=0.0)
        low, high = range_of(known)
        inside.append(np.mean((later >= low) & (later <= high)))
    assert 0.98 <= np.mean(inside) <= 0.998


@pytest.mark.parametrize(("lifetimes", "spread"), [(5, 0.0), (5, 0.1), (20, 0.1)])
def test_ranges_hold_windows_of_later_lifetimes(lifetimes: int, spread: float) -> None:
    """97 to 99.9 % of the windows of lifetimes that were not learned."""
    rng = np.random.default_rng(lifetimes)
    inside = []
    for _ in range(120):
        parts = [rng.normal(9, spread) + autoregressive(rng, 20, 0.5, 0.1) for _ in range(lifetimes)]
        names = [str(number) for number in range(lifetimes) for _ in range(20)]
        low, high = range_of(variation(np.concatenate(parts), np.full(len(names), 1e-6), names))
        later = rng.normal(9, spread, 2_000) + rng.normal(0, 0.1, 2_000)
        inside.append(np.mean((later >= low) & (later <= high)))
    assert 0.97 <= np.mean(inside) <= 0.999


def test_a_range_of_whole_histograms_covers_and_is_not_wider_than_needed() -> None:
    """From histograms to ranges: of the medians of later windows 98 to 99.8 % lie inside, at 1 to 1.3 times the width
    of the normal law that made them."""
    rng = np.random.default_rng(8)
    inside, widths = [], []
    for _ in range(25):
        places = 11 + autoregressive(rng, 220, 0.5, 0.1)
        windows = [_window(rng.lognormal(at, 0.5, 300), number) for number, at in enumerate(places)]
        quantile = level_of(windows[:120], lifetime_sd=0.0).p50
        assert quantile is not None
        assert quantile.low_ns is not None
        assert quantile.high_ns is not None
        later = np.array([math.exp(place_of(one, 0.5)[0]) for one in windows[120:]])
        inside.append(np.mean((later >= quantile.low_ns) & (later <= quantile.high_ns)))
        widths.append(math.log(quantile.high_ns / quantile.low_ns))
    assert 0.98 <= np.mean(inside) <= 0.998
    ideal = 2 * norm.ppf(0.995) * math.sqrt(0.1**2 + 0.25 * math.pi / 2 / 300)
    assert 1.0 <= np.mean(widths) / ideal <= 1.3
