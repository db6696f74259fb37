"""Calibration believes only what two tries agree on, and tries again what it knew."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from specmine.experiments.load.calibration import calibrate, rate_of
from specmine.experiments.load.tasks import Machine
from specmine.experiments.types import MS, Context, Load, LoadRun, TaskRun
from tests.support.simulated_host import HOST

CONTEXT = Context(host=HOST, cpus=(1, 0))


class FakeMachine:
    """Answers each calibration with the next of some rates, units a millisecond."""

    identity = "id"

    def __init__(self, *rates: float) -> None:
        self.rates = list(rates)

    def run(self, load: Load) -> LoadRun:
        """Return the pair that a calibration ends with."""
        samples = np.array([[round(1e6 * self.rates.pop(0)), 1_000_000 * MS, 1]], np.int64)
        run = TaskRun(task=load.tasks[0], start_ns=0, end_ns=1, cpu_ns=1, samples=samples)
        return LoadRun(load=load, tasks=(run,))


def _machine(*rates: float) -> Machine:
    return cast("Machine", FakeMachine(*rates))


@pytest.mark.parametrize(
    ("rates", "known", "expected"),
    [
        ((1000, 1004), 0.0, 1002),
        ((1850, 1000, 1004), 0.0, 1002),  # the slow moment is not believed
        ((1000, 1100, 1210, 1330), 0.0, None),
        ((1005,), 1000.0, 1000),
        ((1200, 1204), 1000.0, 1202),  # what was known no longer holds
        ((1000, 1300, 1008), 0.0, 1004),  # a CPU that goes back and forth between two speeds
    ],
)
def test_two_tries_must_agree(rates: tuple[float, ...], known: float, expected: float | None) -> None:
    """A rate counts when one before, or what was known, differs by at most 2 %."""
    machine = _machine(*rates)
    assert rate_of("integer", 1, machine, known=known) == pytest.approx(expected)
    assert cast("FakeMachine", machine).rates == []


def test_units_scale_with_the_time_wanted_and_are_remembered() -> None:
    """Ten milliseconds are ten times the units of one; the next use takes one try."""
    known: dict[str, int] = {}
    units, reason = calibrate((("integer", 10 * MS),), CONTEXT, _machine(1000, 1000), known)
    assert (units, reason) == ({("integer", 10 * MS): 10_000}, None)
    assert known == {"id:integer": 1_000_000}
    units, _ = calibrate((("integer", MS // 2),), CONTEXT, _machine(1001), known)
    assert units == {("integer", MS // 2): 500}


def test_what_never_agrees_is_said_and_forgotten() -> None:
    """Without agreement there are no units, and the old ones are not used either."""
    known = {"id:integer": 1_000_000}
    units, reason = calibrate((("integer", MS),), CONTEXT, _machine(1100, 1300, 1500, 1800), known)
    assert units == {}
    assert reason is not None
    assert reason.code == "uncalibratable"
    assert known == {}
