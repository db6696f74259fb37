"""What changed is told by the quantile that says most, in the direction in which calls lose or gain time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from specmine.daemon.config.settings import SECOND
from specmine.daemon.controller.violations.asserted import Asserted
from specmine.daemon.controller.violations.change import location_of, log_factor, moment_of
from specmine.daemon.controller.violations.yardstick import Yardstick, begun
from specmine.daemon.controller.violations.yardstick_comparison import change_of
from specmine.mining.detection.alarm import Alarm, Stream
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation
from specmine.model.pooling import pooled
from specmine.model.violation import Direction, What


def mixture(at: int, sorts: float, sort_ns: float, calls: int = 2000) -> Observation:
    """Return ten seconds of calls of 2 us, some of which sort a list."""
    rng = np.random.default_rng(at)
    middle = np.where(rng.random(calls) < sorts, sort_ns, 2_000.0) * rng.lognormal(0, 0.02)
    durations = (middle * rng.lognormal(0, 0.2, calls)).astype(np.int64)
    return Observation(
        function="f", lifetime="l", kind=Kind.TIME, start_ns=10 * at * SECOND, end_ns=10 * (at + 1) * SECOND,
        histogram=Histogram.from_durations(durations), calls=calls, watched_ns=10 * SECOND,
    )  # fmt: skip


def learned() -> Yardstick:
    """Return what 12 % sorts of 30 us are measured by."""
    return begun("b", Asserted(), [mixture(at, 0.12, 30_000.0) for at in range(12)], 0)


def alarm(since_ns: int) -> Alarm:
    """Return what the detector says of all calls."""
    return Alarm(
        stream=Stream(what=What.LEVEL, part="all"), direction=Direction.FASTER, factor=0.8, factor_low=0.7,
        factor_high=0.9, since_ns=since_ns, windows=4, log_e=30.0, opened=True,
    )  # fmt: skip


def test_slow_calls_that_become_slower_and_fewer_are_slower() -> None:
    """The 90 % quantile falls by more than the 99 % quantile rises, but calls take longer altogether."""
    change = change_of(learned(), alarm(200 * SECOND), [mixture(at, 0.06, 120_000.0) for at in range(20, 24)])
    assert change is not None
    assert (change.direction, change.quantile) == (Direction.SLOWER, "p99")
    assert change.factor.value == pytest.approx(4.0, rel=0.25)


def test_slow_calls_that_become_a_little_slower_and_far_fewer_are_faster() -> None:
    """Most of the time that they took is gone."""
    change = change_of(learned(), alarm(200 * SECOND), [mixture(at, 0.03, 45_000.0) for at in range(20, 24)])
    assert change is not None
    assert (change.direction, change.quantile) == (Direction.FASTER, "p90")


def test_a_change_began_with_the_first_window_that_is_near_it() -> None:
    """Evidence began to grow with two windows that were off by chance."""
    yardstick = learned()
    windows = [mixture(20, 0.12, 31_000.0), mixture(21, 0.12, 33_000.0)]
    windows += [mixture(at, 0.12, 90_000.0) for at in range(22, 26)]
    change = change_of(yardstick, alarm(200 * SECOND), windows)
    assert change is not None and change.direction is Direction.SLOWER
    assert moment_of(change, yardstick, windows, 200 * SECOND) == 220 * SECOND
    assert moment_of(change, yardstick, windows[2:], 225 * SECOND) == 225 * SECOND
    assert moment_of(change, yardstick, windows[:2], 200 * SECOND) == 200 * SECOND


@pytest.mark.parametrize(("sorts", "sort_ns", "quantile"), [(0.06, 120_000.0, "p99"), (0.95, 30_000.0, "p50")])
def test_of_two_joined_windows_the_change_began_with_the_one_that_is_off(
    sorts: float, sort_ns: float, quantile: str
) -> None:
    """They lie 100 s apart, and evidence began to grow before both."""
    yardstick = learned()
    before, after, *later = mixture(20, 0.12, 30_000.0), *(mixture(at, sorts, sort_ns) for at in (30, 31, 32))
    windows = [pooled((before, after)), *later]
    change = change_of(yardstick, alarm(200 * SECOND), windows)
    assert change is not None and (change.direction, change.quantile) == (Direction.SLOWER, quantile)
    locations = [location_of(before), location_of(after)]
    assert moment_of(change, yardstick, windows, 195 * SECOND) == 200 * SECOND
    assert moment_of(change, yardstick, windows, 195 * SECOND, locations) == 300 * SECOND
    both = [replace(locations[1], start_ns=before.start_ns), locations[1]]
    assert moment_of(change, yardstick, windows, 195 * SECOND, both) == 200 * SECOND


@pytest.mark.parametrize(("paused_ns", "of_mean"), [(600_000.0, True), (150_000.0, False)])
def test_where_too_few_calls_pause_for_a_quantile_the_mean_is_compared(paused_ns: float, of_mean: bool) -> None:
    """If calls take twice as long on average by it; a few that wait for a CPU beside other work are no news."""
    yardstick = begun("b", Asserted(), [mixture(at, 0.0, 0.0) for at in range(12)], 0)
    windows = [mixture(at, 0.005, paused_ns) for at in range(20, 24)]
    told = replace(alarm(200 * SECOND), stream=Stream(what=What.LEVEL, part="mean"), direction=Direction.SLOWER)
    change = change_of(yardstick, told, windows)
    assert change_of(yardstick, replace(told, stream=Stream(what=What.LEVEL, part="all")), windows) is None
    assert (change is not None) is of_mean
    if change is not None:
        assert (change.direction, change.quantile) == (Direction.SLOWER, "mean")
        assert change.factor.value == pytest.approx(2.5, rel=0.3)
        assert change.factor.low < 2.5 < change.factor.high
        assert change.observed.mean is not None and change.expected.mean is not None
        assert change.observed.mean.ns == pytest.approx(change.expected.mean.ns * change.factor.value)
        assert log_factor(change, yardstick, windows[0]) == pytest.approx(np.log(2.5), abs=0.6)
