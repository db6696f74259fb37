"""Steps of clocks and digits: found in raw durations whatever they are, and no source of borders."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from specmine.mining.borders.detection import borders
from specmine.mining.borders.raw_resolution import FINE, Resolution, resolution_of, spread
from specmine.mining.settings import MiningSettings
from specmine.model.histogram import Histogram

S = MiningSettings()


def durations(seed: int, calls: int = 2_000) -> NDArray[np.float64]:
    """Return exact durations of one broad class."""
    return np.random.default_rng(seed).lognormal(np.log(2e4), 0.6, calls)


def places(calls: int) -> NDArray[np.float64]:
    """Return even places."""
    return np.asarray(np.modf(np.arange(calls) * 0.6180339887498949)[0])


@settings(max_examples=40, deadline=None)
@given(st.floats(40.0, 4_000.0))
def test_any_step_is_found(step: float) -> None:
    """Whole ns of multiples of any step, also one that is no whole ns."""
    found = resolution_of(np.round(np.round(durations(1) / step) * step), above_ns=20)
    assert found.step_ns == pytest.approx(step, rel=2e-3)


@pytest.mark.parametrize("digits", [1, 2, 3])
def test_digits_are_found(digits: int) -> None:
    """Over three decades the step of two digits is no single one."""
    values = np.exp(np.random.default_rng(2).uniform(np.log(1e3), np.log(1e6), 4_000))
    power = 10.0 ** (np.floor(np.log10(values)) - digits + 1)
    assert resolution_of(np.round(values / power) * power, above_ns=20) == Resolution(digits=digits)


def test_an_offset_is_found() -> None:
    """A constant that was subtracted shifts all multiples."""
    found = resolution_of(np.round(durations(3) / 1_000) * 1_000 + 370, above_ns=20)
    assert found.step_ns == pytest.approx(1_000)
    assert found.offset_ns == pytest.approx(370, abs=1)


def test_exact_durations_have_no_step() -> None:
    """Whole ns, decimals, few durations: nothing to be spread."""
    assert resolution_of(np.round(durations(4)), above_ns=20) == FINE
    assert resolution_of(durations(4), above_ns=20) == FINE
    assert resolution_of(np.round(durations(4, 150) / 1_000) * 1_000, above_ns=20) == FINE
    values = durations(5)
    assert spread(values, FINE, places(len(values))) is values


def test_classes_are_no_step() -> None:
    """Two or three exact durations may be classes, and so may any that are far apart."""
    rng = np.random.default_rng(6)
    for exact in ([1e4, 2e4], [1e7, 2e7, 3e7], [64.0 * 2**n for n in range(10)]):
        assert resolution_of(rng.choice(exact, 2_000), above_ns=20) == FINE


@pytest.mark.parametrize("exact", [[20e6, 21e6], [4_900.0, 5_000.0, 5_100.0]])
def test_two_neighbouring_multiples_of_a_fine_step_are_no_classes(exact: list[float]) -> None:
    """A narrow class seen by a clock in ms, or written with two digits."""
    values = np.random.default_rng(8).choice(exact, 2_000)
    found = resolution_of(values, above_ns=20)
    assert found.step_ns == pytest.approx(exact[1] - exact[0]) or found.digits == 2
    assert borders(Histogram.from_durations(spread(values, found, places(2_000))), settings=S, z=S.stable_z) == ()


def test_cells_hold_what_is_rounded_to_them() -> None:
    """Each exact duration lies in the cell of what it was rounded to, and cells of neighbours touch."""
    values = durations(7, 5_000)
    for resolution in (Resolution(step_ns=777.0), Resolution(step_ns=500.0, offset_ns=120.0), Resolution(digits=2)):
        low, high = resolution.cells(resolution.nearest(values))
        assert (low <= values * (1 + 1e-9)).all()
        assert (values <= high * (1 + 1e-9)).all()
    low, high = Resolution(digits=2).cells(np.array([98.0, 99.0, 100.0, 110.0]))
    assert low[1:] == pytest.approx(high[:-1])
    assert (low[2], high[3]) == (99.5, 115.0)


@pytest.mark.parametrize("step", [64.0, 777.0, 1_000.0, 1e9 / 262_144])
def test_spread_durations_make_no_border_and_hide_none(step: float) -> None:
    """One class has none, of ten histories; two classes far apart keep theirs."""
    stated = 0
    for seed in range(10):
        values = np.round(np.round(durations(seed, 10_000) / step) * step)
        exact = spread(values, resolution_of(values, above_ns=20), places(len(values)))
        stated += bool(borders(Histogram.from_durations(exact), settings=S, z=S.stable_z))
    assert stated <= 1
    two = np.round(np.round(np.concatenate((durations(1), 30 * durations(2))) / step) * step)
    (border,) = borders(
        Histogram.from_durations(spread(two, resolution_of(two, above_ns=20), places(len(two)))), settings=S, z=S.firm_z
    )
    assert border.cdf == pytest.approx(0.5, abs=0.02)
