"""What is known of the probes' own time: taken from the quietest round, and again every few hours."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np
import pytest

from specmine.model.batch import Prices
from specmine.model.buckets import BUCKETS
from specmine.probes.calibration.calibrate import Round, least_bias
from specmine.probes.calibration.recalibrate import EVERY_NS, Recalibration, measured_here
from specmine.probes.kernel.loader import Loaded, load

NOTHING = [np.nan] * 3


@pytest.fixture(scope="module")
def loaded() -> Iterator[Loaded]:
    """Have the programs loaded."""
    found = load(interpreter="/usr/bin/python3", memory_bytes=16 << 20, buckets=BUCKETS, sampling=False)
    yield found
    found.close()


def test_bias_is_that_of_the_quietest_round() -> None:
    """Rounds beside other work do not count, nor do those in which nothing was booked."""
    rounds = [Round(1e6, np.array([each, NOTHING])) for each in ([800, 850, 950], NOTHING, [640, 650, 670])]
    assert least_bias(rounds) == (650, 15)
    assert least_bias(rounds, row=1) == (0, 0)


@pytest.mark.kernel
def test_bias_is_the_same_beside_other_work(loaded: Loaded) -> None:
    """Three busy processes on every CPU change what durations are corrected by by less than a quarter."""
    quiet = measured_here(loaded)
    loop = [sys.executable, "-c", "while True: bytes(range(256)) * 1000"]
    busy = [subprocess.Popen(loop) for _ in range(6)]
    try:
        time.sleep(0.3)
        found = measured_here(loaded)
    finally:
        for each in busy:
            each.kill()
            each.wait()
    for name in ("bias_ns", "site_bias_ns"):
        assert 0.75 < getattr(found, name) / getattr(quiet, name) < 1.33, (name, quiet, found)


@pytest.mark.kernel
def test_prices_are_measured_again(loaded: Loaded) -> None:
    """When the time has come a child measures what the start measured, and the next one has time."""
    again = Recalibration(interpreter="/usr/bin/python3", mode=loaded.mode, cache=None, now_ns=0)
    assert again.poll(EVERY_NS - 1) is None
    assert again.pids() == []
    found = _polled(again, EVERY_NS)
    assert found is not None
    assert found.site_bias_ns > 0
    assert 0.5 < found.bias_ns / measured_here(loaded).bias_ns < 2
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
    for _ in range(600):
        if not recalibration.pids():
            break
        found = recalibration.poll(now_ns)
        time.sleep(0.1)
    return found
