"""Simulated hosts are what the bench says of them: the spread, the correlation and the disturbances asked for."""

from __future__ import annotations

import numpy as np
import pytest

from bench.lib.simulated_hosts import GRID, Hosts, Scenario


def _watched(scenario: Scenario, steps: int, functions: int = 100) -> tuple[Hosts, np.ndarray]:
    hosts = Hosts(np.random.default_rng(1), scenario, 1, functions)
    rows = np.arange(functions)
    places = [hosts.measure(rows, number * GRID)[0] for number in range(1, steps)]
    return hosts, np.array(places)


def test_windows_wander_as_asked() -> None:
    """Standard deviation and lag correlation of 100 functions, sampling error taken out."""
    scenario = Scenario(intervals=(5.0,), spread=(0.2, 0.2), correlation=(0.8, 0.8), disturbed=(0.0, 0.0), wave=0.0)
    hosts, places = _watched(scenario, 3_000)
    sampling = (hosts.sigma**2 / hosts.calls).mean()
    assert places.var(axis=0).mean() == pytest.approx(0.04 + sampling, rel=0.1)
    lagged = (places[1:] * places[:-1]).mean(axis=0).mean()
    assert lagged == pytest.approx(0.8 * 0.04, rel=0.1)


def test_disturbances_last_ten_seconds_and_take_the_share_asked_for() -> None:
    """5 % of the windows, mostly in pairs of 5 s, 1.2 to 5 times slower."""
    scenario = Scenario(
        intervals=(5.0,), spread=(0.001, 0.001), correlation=(0.5, 0.5), disturbed=(0.05, 0.05), wave=0.0
    )
    _, places = _watched(scenario, 3_000)
    off = places > 0.5
    wanted = 0.05 * np.log(5 / np.exp(0.5)) / np.log(5 / 1.2)
    assert off.mean() == pytest.approx(wanted, rel=0.1)
    assert (off[1:] & off[:-1]).sum() / off.sum() == pytest.approx(0.5, abs=0.06)
    assert np.median(places[off]) < np.log(5)
