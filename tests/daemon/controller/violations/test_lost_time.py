"""Lost time: what calls take more than asserted, all calls together."""

from __future__ import annotations

import numpy as np
import pytest

from specmine.daemon.config.settings import SECOND
from specmine.daemon.controller.violations.lost_time import LostTime, with_window
from specmine.daemon.controller.violations.usual import usual_of
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation

RATE, WINDOW_S, EVERY_S = 200, 2, 10
"""Calls a second; windows of 2 s, one each 10 s."""
MEAN_NS = 1e6


def windows(factors: list[float]) -> list[Observation]:
    """Return windows whose mean is the usual one times a factor each."""
    rng = np.random.default_rng(1)
    made = []
    for at, factor in enumerate(factors):
        end_ns = (at + 1) * EVERY_S * SECOND
        durations = factor * MEAN_NS * rng.gamma(16, 1 / 16, RATE * WINDOW_S)
        made.append(
            Observation(
                function="f", kind=Kind.TIME, lifetime="one", start_ns=end_ns - WINDOW_S * SECOND, end_ns=end_ns,
                histogram=Histogram.from_durations(durations), calls=RATE * WINDOW_S, watched_ns=WINDOW_S * SECOND,
            )
        )  # fmt: skip
    return made


def lost_after(factors: list[float]) -> LostTime:
    """Return the lost time after windows with these factors, measured by windows without any."""
    usual, lost = usual_of(windows([1.0] * 20)), LostTime()
    for one in windows(factors):
        lost = with_window(lost, usual, one)
    return lost


def test_lost_time_is_the_excess_of_all_calls() -> None:
    """Calls twice as long for an hour lose their usual time once more, those between windows counted too."""
    number = 360
    expected_ns = MEAN_NS * RATE * number * EVERY_S
    assert lost_after([2.0] * number).total_ns == pytest.approx(expected_ns, rel=0.06)


def test_windows_that_vary_lose_next_to_nothing() -> None:
    """Windows that vary by a tenth around the usual mean lose less than half a per cent of their time."""
    number = 360
    factors = np.random.default_rng(2).lognormal(0, 0.1, number).tolist()
    assert lost_after(factors).total_ns < 0.005 * MEAN_NS * RATE * number * EVERY_S


def test_a_creep_is_counted_before_any_window_is_unusual() -> None:
    """A mean that grows by a fifth in an hour loses nearly a tenth of that hour's time."""
    number = 360
    factors = (1 + 0.2 * np.arange(number) / number).tolist()
    assert lost_after(factors).total_ns == pytest.approx(0.1 * MEAN_NS * RATE * number * EVERY_S, rel=0.15)


def test_faster_calls_lose_nothing() -> None:
    """Time won is not set off against time lost."""
    assert lost_after([0.5] * 50).total_ns == 0.0
