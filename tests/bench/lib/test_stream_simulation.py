"""The simulation in C has the formulas of the daemon's detector and of the simulated hosts in Python."""

from __future__ import annotations

import numpy as np
import pytest

from bench.lib import stream_simulation as native
from bench.lib.simulated_hosts import SCENARIOS, Hosts, Scenario
from bench.lib.simulated_hosts import watch as watch_in_python
from specmine.mining.detection.innovations import started, step


def test_each_step_is_that_of_the_daemon() -> None:
    """300 streams and 300 windows of all kinds: each number of the state is equal to nine digits."""
    rng = np.random.default_rng(5)
    count = 300
    ours = started(np.zeros(count), np.full(count, 0.02), rng.choice([10.0, 20.0, 60.0], count))
    theirs = ours.take(np.arange(count))
    for number in range(300):
        elapsed = rng.choice([3.0, 5.0, 10.0, 20.0], count)
        disturbed = np.where(rng.random(count) < 0.05, rng.uniform(0.2, 1.6, count), 0.0)
        places = rng.normal(0, 0.1, count) + disturbed + (0.7 if number % 50 > 40 else 0.0)
        errors, began = np.full(count, 0.001), np.full(count, 5.0 * number)
        ours = step(ours, places, errors, elapsed, began, np.ones(count))
        theirs = native.stepped(theirs, places, errors, elapsed, began)
        for name in native.STREAM:
            np.testing.assert_allclose(getattr(theirs, name), getattr(ours, name), rtol=1e-9, atol=1e-12, err_msg=name)
        above = ours.evidence > 0
        assert np.array_equal(above, theirs.evidence > 0)
        for name in native.ROWS:
            wanted = getattr(ours, name)[above]
            np.testing.assert_allclose(getattr(theirs, name)[above], wanted, rtol=1e-8, atol=1e-12, err_msg=name)
    assert above.any()


def test_windows_have_the_law_of_the_simulated_hosts() -> None:
    """Mean, spread, correlation of neighbours and share of disturbed windows, against Python and what was asked for."""
    scenario = Scenario(intervals=(5.0,), spread=(0.1, 0.1), correlation=(0.8, 0.8), disturbed=(0.05, 0.05), wave=0.0)
    hosts = Hosts(np.random.default_rng(1), scenario, 1, 100)
    ours = native.measured(hosts, 3_000)
    rows = np.arange(100)
    theirs = np.array([hosts.measure(rows, number * 5.0)[0] for number in range(1, 3_001)])
    for places in (ours, theirs):
        quiet = places[places < 0.5]
        assert (places > 0.6).mean() == pytest.approx(0.05 * np.log(5 / np.exp(0.6)) / np.log(5 / 1.2), rel=0.1)
        assert np.median(places) == pytest.approx(0.0, abs=0.015)
        assert np.quantile(quiet, 0.25) == pytest.approx(np.quantile(theirs[theirs < 0.5], 0.25), rel=0.05)
    lags = [np.mean(np.clip(each[1:], -0.4, 0.4) * np.clip(each[:-1], -0.4, 0.4)) for each in (ours, theirs)]
    assert lags[0] == pytest.approx(lags[1], rel=0.05)


def test_watching_a_day_gives_as_many_fast_windows_and_learns_as_much() -> None:
    """An hour of 200 functions in both, after one in Python: windows, spread, share of disturbed windows agree."""
    hosts = Hosts(np.random.default_rng(2), SCENARIOS["S1"], 1)
    streams = started(np.zeros(hosts.count), np.full(hosts.count, 0.02), hosts.interval)
    watch_in_python(hosts, streams, 0.0, 3_600.0)
    functions, rows = native.functions_of(hosts), native.to_rows(streams)
    seen = 0

    def see(rows: np.ndarray, *_: object) -> None:
        nonlocal seen
        seen += len(rows)

    watch_in_python(hosts, streams, 3_600.0, 7_200.0, see)
    watched = native.watch(functions, rows, 3_600.0, 7_200.0)
    assert watched.windows == pytest.approx(seen, rel=0.15)  # a few functions stay suspected for an hour
    assert np.median(rows["variance"] / streams.variance) == pytest.approx(1, rel=0.05)
    assert np.median(rows["disturbed"]) == pytest.approx(np.median(streams.disturbed), rel=0.15)
    changes = native.new_changes(np.full(len(rows), 7_200.0), 10.0)
    native.watch(functions, rows, 7_200.0, 7_800.0, changes=changes, thresholds=[18.0])
    delay = changes["found"][:, 0] - 7_200
    assert np.median(delay) < 60
    assert (delay > 15).all()
