"""What a burst of sampling finds, as batches bring it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specmine.daemon.config.settings import SECOND
from specmine.daemon.controller.sampling.burst import Burst, with_samples
from specmine.daemon.controller.sampling.history import SampleHistory, with_burst
from specmine.model.batch import Batch, HotSample


def found(now_ns: int, busy: int, time_ns: float) -> Batch:
    """Return what was found of one function."""
    sample = HotSample(
        function="f", samples=busy + 1, busy_samples=busy, on_cpu_ns=0.0, off_cpu_ns=0.0, inclusive_ns=time_ns
    )
    return Batch(now_ns=now_ns, hot_samples=(sample,))


def test_late_samples_belong_to_the_burst_before() -> None:
    """They arrive with a later batch, and make the burst no longer."""
    burst = with_samples(Burst(), found(SECOND, 30, 0.5 * SECOND), 50, SECOND)
    burst = with_samples(burst, found(2 * SECOND, 20, 1.5 * SECOND), 0, SECOND)
    assert (burst.seconds, burst.ended_ns, burst.hertz) == (1.0, SECOND, 50)
    assert burst.cpus_s == pytest.approx({"f": 1.0})
    assert burst.times_s == pytest.approx({"f": 2.0})


def test_without_a_burst_nothing_is_added() -> None:
    """What arrives before any sampling belongs to nothing."""
    before = Burst()
    assert with_samples(before, found(SECOND, 3, 1.0), 0, SECOND) is before


def test_waits_are_no_cpu_time() -> None:
    """A function that only waits is in the times alone."""
    burst = with_samples(Burst(), found(SECOND, 0, 2.0 * SECOND), 50, SECOND)
    assert burst.times_s == {"f": 2.0}
    assert not burst.cpus_s


def test_what_a_function_only_jumps_to_is_not_taken_for_its_own() -> None:
    """It stands on no stack, and others may jump there: samples say that something takes more, not that it does."""
    batch = found(SECOND, 30, 0.6 * SECOND)
    (sample,) = batch.hot_samples
    around = replace(sample, function="wrapper", is_wrapper=True)
    burst = with_samples(Burst(), replace(batch, hot_samples=(sample, around)), 50, SECOND)
    assert burst.cpus_s == pytest.approx({"f": 0.6})
    assert burst.jumped_s == pytest.approx({"wrapper": 0.6})
    history = with_burst(SampleHistory(seconds=60.0), burst, disturbed=True)
    assert set(history.growth_since(0)) == {"f"}
