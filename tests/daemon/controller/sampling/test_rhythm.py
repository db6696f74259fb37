"""Bursts of samples bring enough of them, at a price that stays small."""

from __future__ import annotations

import pytest

from specmine.daemon.config.settings import SECOND, Settings
from specmine.daemon.controller.sampling.rhythm import (
    BURST_SAMPLES,
    FIND_NS,
    RARER,
    hertz_in_bursts,
    hertz_in_search,
    is_searching,
    rhythm,
    waits_in_bursts,
)
from specmine.model.batch import Prices

PRICES = Prices(count_ns=700.0, time_ns=2000.0, path_ns=2600.0, stepped_ns=8000.0, sample_ns=10_000.0, bias_ns=650.0)


@pytest.mark.parametrize(
    ("cpus", "length_s", "apart_s"), [(2.0, 1, 15), (1.0, 1, 15), (0.25, 2.04, 15), (0.05, 4, 16), (0.0, 4, 16)]
)
def test_programs_that_use_little_are_sampled_for_longer(cpus: float, length_s: float, apart_s: float) -> None:
    """A burst brings 100 samples as far as four seconds do; what brings fewer comes again sooner."""
    found = rhythm(cpus * SECOND, hertz_in_bursts(PRICES, Settings(), cpus * SECOND), 0.0)
    assert found.length_ns / SECOND == pytest.approx(length_s, rel=0.01)
    assert found.apart_ns / SECOND == pytest.approx(apart_s, rel=0.01)


def test_no_program_has_more_samples_than_a_few_each_second() -> None:
    """On average over bursts: at most seven a second, whatever CPUs it keeps busy, and never more than the search."""
    for cpus in (0.01, 0.1, 0.3, 0.5, 1.0, 2.0):
        hertz = hertz_in_bursts(PRICES, Settings(), cpus * SECOND)
        found = rhythm(cpus * SECOND, hertz, 0.0)
        average = hertz * cpus * found.length_ns / found.apart_ns
        assert average <= BURST_SAMPLES / 15 + 0.2
        assert average <= 1.4 * hertz_in_search(PRICES, Settings()) * cpus
    assert hertz_in_bursts(PRICES, Settings(), 4 * SECOND) == hertz_in_search(PRICES, Settings())


def test_under_pressure_bursts_are_further_apart() -> None:
    """Each costs our own CPU time, as a window does."""
    calm, pressed = rhythm(SECOND, 49, 0.0), rhythm(SECOND, 49, 1.0)
    assert pressed.apart_ns == pytest.approx((1 + RARER) * calm.apart_ns)
    assert pressed.length_ns == calm.length_ns


def test_sampling_takes_a_tenth_of_the_budget_at_most() -> None:
    """A sample of 10 us ten times a second and CPU is a tenth of a thousandth."""
    assert hertz_in_search(PRICES, Settings(overhead=0.001)) == 10
    assert hertz_in_search(PRICES, Settings()) == Settings().sampling_hertz
    assert hertz_in_search(PRICES, Settings(sampling_hertz=0)) == 0
    assert hertz_in_bursts(PRICES, Settings(sampling_hertz=0), 0.1 * SECOND) == 0


@pytest.mark.parametrize(("income", "waits"), [(1e5, 2), (1e6, 5), (2e6, 10), (1e7, 20)])
def test_waits_take_a_twentieth_of_the_budget(income: float, waits: int) -> None:
    """A stack walk of 10 us five times a second is a twentieth of 1 ms; two are always made, and never more than 20."""
    assert waits_in_bursts(PRICES, income) == waits


def test_functions_are_searched_for_at_first_unless_the_user_named_them() -> None:
    """With names there are bursts only."""
    assert is_searching(FIND_NS - 1, 0, Settings())
    assert not is_searching(FIND_NS, 0, Settings())
    assert not is_searching(2 * SECOND, 0, Settings(watch=("f",)))
