"""Windows that hold too few calls to be judged are joined, and no call is counted twice."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from specmine.daemon.controller.history import JOINED_CALLS, JOINED_NS, History, joined, with_observation
from specmine.mining.settings import MiningSettings
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation
from tests.support.simulated import SECOND

MINING = MiningSettings()


def window(calls: int, at_s: float, lifetime: str = "a") -> Observation:
    """Return a window of so many calls that ends two seconds after it began."""
    durations = np.random.default_rng(calls).integers(1000, 2000, calls)
    start_ns = int(at_s * SECOND)
    return Observation(
        function="f", lifetime=lifetime, kind=Kind.TIME, start_ns=start_ns, end_ns=start_ns + 2 * SECOND,
        histogram=Histogram.from_durations(durations), calls=calls, watched_ns=2 * SECOND,
    )  # fmt: skip


def after(*windows: Observation) -> History:
    """Return the history of these windows."""
    history = History()
    for each in windows:
        history = with_observation(history, each, MINING)
    return history


def test_two_short_windows_are_one_that_is_judged() -> None:
    """A first look of 110 calls and a rest of 120 are one observation, tried once."""
    history = after(window(110, 0), window(120, 30))
    assert [(each.timed, each.start_ns, each.end_ns) for each in history.timing] == [(230, 0, 32 * SECOND)]
    assert history.tried == 1 and history.totals.timed == 230 and history.totals.observations == 2


def test_what_does_not_belong_together_stays_apart() -> None:
    """Full windows, other lifetimes, windows minutes apart, and those of a handful of calls are left as they are."""
    full = MINING.minimum_calls
    for pair in (
        (window(110, 0), window(full, 3)),
        (window(full, 0), window(110, 3)),
        (window(110, 0), window(110, 3, lifetime="b")),
        (window(110, 0), window(110, JOINED_NS / SECOND)),
        (window(JOINED_CALLS - 1, 0), window(110, 3)),
    ):
        assert [each.timed for each in after(*pair).timing] == [each.timed for each in pair]


@given(st.lists(st.tuples(st.integers(1, 400), st.integers(2, 400)), min_size=1, max_size=MINING.recent))
def test_no_call_is_lost_or_counted_twice(windows: list[tuple[int, int]]) -> None:
    """Whatever is joined, calls and time watched add up to what was observed, and windows stay in order."""
    at, made = 0, []
    for calls, pause in windows:
        made.append(window(calls, at))
        at += pause
    whole = joined(made, MINING.minimum_calls)
    assert sum(each.timed for each in whole) == sum(calls for calls, _ in windows)
    assert sum(each.watched_ns for each in whole) == 2 * SECOND * len(windows)
    assert all(one.end_ns <= other.start_ns for one, other in pairwise(whole))
    assert [each.timed for each in after(*made).timing] == [each.timed for each in whole]
