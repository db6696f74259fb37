"""What windows usually do on a host, and what that makes of a function of which few were seen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from specmine.mining.detection.alarm import Stream
from specmine.mining.detection.detector import DetectorState, advance
from specmine.mining.detection.host_spread import (
    LEAST_SPREAD,
    LEAST_STREAMS,
    UsualSpreads,
    kind_of,
    usual_spreads,
    with_usual,
)
from specmine.mining.detection.innovations import PRIOR_SPREAD
from specmine.mining.detection.state import StreamState
from specmine.mining.detection.values import Value
from specmine.model.violation import What

SECOND = 10**9
ALL = Stream(what=What.LEVEL, part="all")
SAMPLING = 0.01**2


def run(
    seed: int,
    spread: float,
    windows: int,
    *,
    every: float = 60.0,
    usual: UsualSpreads | None = None,
    state: DetectorState | None = None,
    factor: float = 1.0,
    begin: int = 0,
) -> tuple[DetectorState, int]:
    """Let a detector see windows; return it, and how many there were until a change was open."""
    rng = np.random.default_rng(seed)
    state = state or DetectorState()
    for number in range(begin, begin + windows):
        now_ns = round((number + 1) * every * SECOND)
        place = 11 + np.log(factor) + rng.normal(0, spread) + rng.normal(0, SAMPLING**0.5)
        value = Value(stream=ALL, place=float(place), variance=SAMPLING)
        state, alarms = advance(state, [value], now_ns, began_ns=now_ns - SECOND, usual=usual or {})
        if any(alarm.opened for alarm in alarms):
            return state, number + 1 - begin
    return state, 0


def streams(spread: float, count: int = 40, windows: int = 12, every: float = 60.0) -> list[StreamState]:
    """Return the streams of some functions."""
    return [one for seed in range(count) for one in run(seed, spread, windows, every=every)[0].streams]


@pytest.mark.parametrize("spread", [0.04, 0.08, 0.12])
def test_a_host_shows_how_far_its_windows_vary(spread: float) -> None:
    """The median over functions of twelve windows each is what they were made with, to a fifth."""
    assert usual_spreads(streams(spread))["all"] == pytest.approx(spread, rel=0.2)


def test_no_host_is_known_to_be_quieter_or_worse_than_the_bounds() -> None:
    """Very quiet functions count as varying by 3 %, wild ones as a function that nothing is known of."""
    assert usual_spreads(streams(0.005))["all"] == LEAST_SPREAD
    assert usual_spreads(streams(0.4))["all"] == PRIOR_SPREAD


def test_few_or_young_or_open_streams_tell_nothing() -> None:
    """Eight functions are needed, and windows of five minutes: those of a moment are alike."""
    known = streams(0.04, LEAST_STREAMS)
    assert set(usual_spreads(known)) == {"all"}
    assert not usual_spreads(known[1:])
    assert not usual_spreads([*known[1:], replace(known[0], opened=True)])
    assert not usual_spreads(streams(0.04, LEAST_STREAMS, windows=12, every=10.0))
    assert not usual_spreads(streams(0.04, LEAST_STREAMS, windows=4, every=100.0))


def test_each_kind_of_stream_has_its_own() -> None:
    """The slowest tenth varies more than the mean; classes of all functions are one kind."""
    known = streams(0.04, LEAST_STREAMS)
    upper = [replace(one, stream=replace(ALL, part="upper")) for one in streams(0.12, LEAST_STREAMS)]
    found = usual_spreads([*known, *upper])
    assert found["upper"] > 2 * found["all"]
    assert kind_of(replace(ALL, part="class 3")) == kind_of(replace(ALL, part="class 0")) == "class"


def test_what_is_usual_counts_as_if_it_had_been_known_from_the_start() -> None:
    """Learned late or early, and changed in between: the variance is the same."""
    usual = {"all": 0.05}
    early, _ = run(1, 0.1, 12, usual=usual)
    late, _ = run(1, 0.1, 12)
    between, _ = run(1, 0.1, 12, usual={"all": 0.08})
    expected = early.streams[0].variance
    assert late.streams[0].variance > expected
    for each in (late, between):
        renewed = with_usual(each.streams[0], usual)
        assert renewed.variance == pytest.approx(expected, rel=0.05)
        assert renewed.assumed == 0.05
    assert with_usual(early.streams[0], {}) is early.streams[0]


def test_a_function_of_few_windows_is_known_by_its_host() -> None:
    """Twelve windows a minute apart that vary by 2 %: a change by 1.5 is open after some more, where it never was."""
    usual = {"all": 0.03}
    found: dict[str, list[int]] = {"host": [], "alone": []}
    for seed in range(10):
        for name, given in (("host", usual), ("alone", {})):
            before, false = run(seed, 0.02, 12, usual=given)
            assert not false
            _, windows = run(seed + 99, 0.02, 12, every=60.0, usual=given, state=before, factor=1.5, begin=12)
            found[name].append(windows or 99)
    assert np.median(found["host"]) <= 6
    assert np.median(found["alone"]) == 99


def test_a_function_that_varies_more_than_its_host_is_not_called_changed() -> None:
    """One of twenty windows that vary by 12 % on a host of 3 % opens nothing."""
    opened = sum(run(seed, 0.12, 60, usual={"all": 0.03})[1] > 0 for seed in range(40))
    assert opened <= 1
