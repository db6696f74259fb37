"""What is known of the probes' own time: taken from the quietest round, and again every few hours."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from specmine.model.batch import Prices
from specmine.model.buckets import BUCKETS
from specmine.probes.calibration.calibrate import BIAS_ERROR, Round, least_bias
from specmine.probes.calibration.recalibrate import EVERY_NS, Recalibration, measured_here
from specmine.probes.kernel.loader import Loaded, load
from tests.support.patience import patient

NOTHING = [np.nan] * 3


@pytest.fixture(scope="module")
def loaded(cache: Path) -> Iterator[Loaded]:
    """Have the programs loaded."""
    found = load(interpreter="/usr/bin/python3", memory_bytes=16 << 20, buckets=BUCKETS, cache=cache, sampling=False)
    yield found
    found.close()


def test_bias_is_that_of_the_quietest_round() -> None:
    """Rounds beside other work do not count, nor do those in which nothing was booked."""
    rounds = [Round(1e6, np.array([each, NOTHING])) for each in ([800, 850, 950], NOTHING, [640, 650, 670])]
    assert least_bias(rounds) == (650, 15)
    assert least_bias(rounds, row=1) == (0, 0)


@pytest.mark.kernel
@pytest.mark.every_kernel
def test_every_price_is_measured(loaded: Loaded, record_property: Callable[[str, object], None]) -> None:
    """All of them are positive where the host can have them, and the bias is less than what a timed call costs."""
    found = measured_here(loaded)
    ratios = [each / found.count_ns for each in (found.time_ns, found.path_ns)]
    record_property("prices", f"{found.count_ns:,.0f} ns, {ratios[0]:.2f}, {ratios[1]:.2f} ({loaded.mode})")
    assert min(found.count_ns, found.time_ns, found.path_ns, found.bias_ns, found.handler_ns) > 0
    assert min(asdict(found).values()) >= 0
    assert found.bias_uncertainty >= BIAS_ERROR
    assert (found.site_bias_ns > 0) == (found.site_handler_ns > 0) == (loaded.mode != "perf")


@pytest.mark.kernel
def test_prices_are_measured_again(loaded: Loaded, cache: Path) -> None:
    """When the time has come a child measures what the start measured, and the next one has time."""
    again = Recalibration(interpreter="/usr/bin/python3", mode=loaded.mode, cache=cache, now_ns=0)
    assert again.poll(EVERY_NS - 1) is None
    assert again.pids() == []
    found = _polled(again, EVERY_NS)
    assert found is not None
    assert (found.site_bias_ns > 0) == (loaded.mode != "perf")
    assert found.bias_ns > 0
    assert again.poll(2 * EVERY_NS - 1) is None
    assert again.pids() == []


@pytest.mark.kernel
def test_a_child_that_fails_leaves_the_prices_alone() -> None:
    """Without its interpreter, or killed, the child has nothing to say."""
    broken = Recalibration(interpreter="/nonexistent", mode="session", cache=None, now_ns=0)
    assert _polled(broken, EVERY_NS) is None
    killed = Recalibration(interpreter="/usr/bin/python3", mode="session", cache=None, now_ns=0)
    killed.poll(EVERY_NS)
    (pid,) = killed.pids()
    killed.close()
    assert killed.pids() == []
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def _polled(recalibration: Recalibration, now_ns: int) -> Prices | None:
    """Poll until the child has ended."""
    found = recalibration.poll(now_ns)
    limit = time.monotonic() + patient(120)
    while recalibration.pids():
        assert time.monotonic() < limit
        found = recalibration.poll(now_ns)
        time.sleep(0.1)
    return found
