"""A suspicion ends once the newest windows are as asserted, and not before."""

from __future__ import annotations

import numpy as np
import pytest

from specmine.daemon.config.settings import SECOND
from specmine.daemon.controller.violations.asserted import Asserted
from specmine.daemon.controller.violations.function_violations import FunctionViolations
from specmine.daemon.controller.violations.suspicion import without_unfounded
from specmine.daemon.controller.violations.yardstick import begun
from specmine.mining.detection.alarm import Alarm, Stream
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation
from specmine.model.violation import Direction, What


@pytest.mark.parametrize(("windows", "factor", "ends"), [(6, 1.0, True), (6, 2.0, False), (2, 1.0, False)])
def test_a_suspicion_ends_with_windows_that_hold(windows: int, factor: float, ends: bool) -> None:
    """A change that was over before it was certain does not keep its function before all others."""
    rng = np.random.default_rng(3)

    def window(at: int, factor: float) -> Observation:
        durations = factor * 40_000 * rng.lognormal(0, 0.3, 600)
        return Observation(
            function="f", kind=Kind.TIME, lifetime="one", start_ns=at * SECOND, end_ns=(at + 1) * SECOND,
            histogram=Histogram.from_durations(durations), calls=600, watched_ns=SECOND,
        )  # fmt: skip

    usual = [window(at, 1.0) for at in range(8)]
    newest = [*usual, *(window(at, 2.0) for at in range(8, 11)), *(window(11 + at, factor) for at in range(windows))]
    alarm = Alarm(
        stream=Stream(what=What.LEVEL, part="all"), direction=Direction.SLOWER, log_e=11.0, opened=False,
        since_ns=8 * SECOND, factor=2.0, factor_low=1.8, factor_high=2.2, windows=3,
    )  # fmt: skip
    yardstick = begun("ab", Asserted(), usual, 8 * SECOND)
    violations = FunctionViolations(yardstick=yardstick, alarms=(alarm,))
    left = without_unfounded(violations, yardstick, newest)
    assert (left.urgency == 0) is ends
