"""Drift, wave and mixture: named where they are, not where levels wander."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from specmine.mining.borders.course import Kind, drift_of, lies_between, mixture_of

SPAN = 600_000_000_000


def series(levels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return levels around 20 us with a sampling variance."""
    return np.stack((np.log(2e4) + levels, np.full(len(levels), 1e-4)), axis=1)


def test_a_drift_is_told_with_its_ends() -> None:
    """From 20 to 40 us over 60 windows."""
    rng = np.random.default_rng(1)
    course = drift_of(series(np.linspace(0, np.log(2), 60) + rng.normal(0, 0.03, 60)), SPAN)
    assert course is not None
    assert course.kind is Kind.DRIFT
    assert course.first_ns == pytest.approx(2.05e4, rel=0.05)
    assert course.last_ns == pytest.approx(3.9e4, rel=0.05)


def test_random_walks_are_no_drift() -> None:
    """Even without any force back at most one in a hundred: of 300 at most 9."""
    rng = np.random.default_rng(2)
    walks = [drift_of(series(np.cumsum(rng.normal(0, 0.2, 40))), SPAN) for _ in range(300)]
    assert sum(course is not None for course in walks) <= 9
    assert drift_of(series(np.linspace(0, np.log(1.1), 60)), SPAN) is None
    assert drift_of(series(np.log(3) * (np.arange(60) >= 30)), SPAN) is None


def test_a_wave_is_told_with_its_period() -> None:
    """Three periods in ten minutes; disturbed windows do not hide it."""
    rng = np.random.default_rng(3)
    at = np.arange(60)
    levels = 0.7 * np.sin(2 * np.pi * at / 20) + rng.normal(0, 0.05, 60) + np.log(3) * (at == 31)
    course = mixture_of(series(levels), SPAN)
    assert course.kind is Kind.WAVE
    assert course.span_ns == pytest.approx(SPAN / 3, rel=0.05)
    assert course.first_ns == pytest.approx(2e4 * np.exp(-0.66), rel=0.1)


def test_levels_that_change_to_and_fro_are_a_mixture() -> None:
    """Two modes in any order, also in regular turns."""
    rng = np.random.default_rng(4)
    for modes in (rng.integers(0, 2, 40), np.arange(40) // 5 % 2, np.arange(12) % 2):
        course = mixture_of(series(np.log(2) * modes + rng.normal(0, 0.03, len(modes))), SPAN)
        assert course.kind is Kind.MIXTURE
        assert course.last_ns / course.first_ns == pytest.approx(2, rel=0.1)


def test_a_valley_lies_between_windows_only_if_each_is_on_one_side() -> None:
    """Windows with the same shares have it inside; a single one on the other side may be disturbed."""
    assert lies_between([(1000, 0), (0, 1000)] * 5, 0.5)
    assert lies_between([(980, 20)] * 7 + [(30, 970)] * 3, 0.7)
    assert not lies_between([(700, 300)] * 10, 0.7)
    assert not lies_between([(1000, 0)] * 9 + [(0, 1000)], 0.9)
