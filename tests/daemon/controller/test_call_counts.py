"""Counts of calls are exact as long as the entry probe stays on, and estimates with an interval otherwise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from specmine.daemon.config.settings import SECOND
from specmine.daemon.controller.call_counts import (
    ProbeState,
    calls_interval,
    estimated_calls,
    with_activity,
    with_watch,
)
from specmine.model.batch import Activity, Watch
from specmine.model.observation import Kind

CALLS = Activity(function="f", kind=Kind.TIME, watched_ns=SECOND, hits=2_000, calls=1_000, cost_ns=1e6, timed=1_000)


def watched(*kinds: Kind | None, each: Activity = CALLS, seconds: int = 5) -> ProbeState:
    """Return the probes of a function that was watched so long by each kind, ten milliseconds of which are lost."""
    probe, now_ns = ProbeState(), 0
    for kind in kinds:
        probe = with_watch(probe, Watch(function="f", kind=kind) if kind else None, now_ns)
        for second in range(seconds):
            now_ns += SECOND
            if kind:
                lost = SECOND // 100 if second == 0 and now_ns > SECOND else 0
                probe = with_activity(
                    probe, replace(each, kind=kind, watched_ns=SECOND - lost), now_ns, counting=kind is Kind.COUNT
                )
    return probe


@pytest.mark.parametrize(
    ("kinds", "exact"),
    [
        ((Kind.TIME,), True),
        ((Kind.TIME, Kind.TIME), True),
        ((Kind.COUNT, Kind.TIME), True),  # what was counted before the first timed watch is left out
        ((Kind.TIME, Kind.PATH), False),
        ((Kind.PATH, Kind.TIME), False),
        ((Kind.TIME, Kind.COUNT), False),
        ((Kind.TIME, None, Kind.TIME), False),
    ],
)
def test_a_change_of_probes_leaves_a_gap(kinds: tuple[Kind | None, ...], exact: bool) -> None:
    """One is detached before the other is attached: calls between are counted by neither."""
    assert watched(*kinds).counts.gaps is not exact


def test_the_rate_that_is_shown_is_the_one_that_was_counted() -> None:
    """Plans assume more where the bucket ran empty. Where it did at once, what was counted is a lower bound."""
    slow = watched(Kind.TIME, each=replace(CALLS, limited=True), seconds=1)
    assert (slow.rate, slow.counted_rate, slow.is_least) == (1_500.0, 1_000.0, False)
    short = replace(CALLS, limited=True, watched_ns=SECOND // 100)
    fast = with_activity(
        with_watch(ProbeState(), Watch(function="f", kind=Kind.TIME), 0), short, SECOND, counting=False
    )
    assert (fast.counted_rate, fast.is_least) == (100_000.0, True)
    silent = with_activity(fast, replace(CALLS, calls=0, hits=0, timed=0), 2 * SECOND, counting=False)
    assert silent.is_least
    assert not with_activity(fast, CALLS, 2 * SECOND, counting=False).is_least


@pytest.mark.parametrize("what", [{"missed": True}, {"limited": True}])
def test_what_the_source_missed_is_a_gap(what: dict[str, bool]) -> None:
    """Probes that went and came back, and a bucket that ran empty."""
    assert watched(Kind.TIME, each=replace(CALLS, **what)).counts.gaps  # type: ignore[arg-type]


def test_a_gap_is_filled_at_the_counted_rate() -> None:
    """A hundredth of a second is missing in ten, at a thousand calls a second: ten calls."""
    probe = watched(Kind.TIME, Kind.PATH)
    assert estimated_calls(probe, 10 * SECOND) == pytest.approx(probe.counts.calls + 10, abs=2)
    interval = calls_interval(probe, 10 * SECOND)
    assert interval is not None and interval[1] is not None
    assert probe.counts.calls <= interval[0] <= estimated_calls(probe, 10 * SECOND) <= interval[1]


PROCESSES, PROBED, TURN_S = 24, 8, 10


def _turns(chance: np.random.Generator, seconds: int, spread: float) -> tuple[ProbeState, int]:
    """Return the probes of a function that is probed in some processes in turn, and how often all of them called it."""
    probe = with_watch(ProbeState(), Watch(function="f", kind=Kind.TIME), 0)
    rates, truth = chance.lognormal(4.0, spread, PROCESSES), 0
    chosen = chance.permutation(PROCESSES)
    for second in range(seconds):
        if second % TURN_S == 0:
            chosen = chance.permutation(PROCESSES)
        calls = chance.poisson(rates)
        truth += int(calls.sum())
        seen = int(calls[chosen[:PROBED]].sum())
        each = replace(CALLS, calls=seen, timed=seen, cost_ns=0.0, part=PROBED / PROCESSES, missed=second % TURN_S == 0)
        probe = with_activity(probe, each, (second + 1) * SECOND, counting=False)
    return probe, truth


@pytest.mark.parametrize("spread", [0.1, 0.6])
def test_where_a_part_of_the_processes_is_probed_the_interval_holds_all_calls(spread: float) -> None:
    """Counting one process for another is an estimate: of turns, which differ, and not of the seconds in them."""
    chance, held, ratios = np.random.default_rng(5), 0, []
    for _ in range(200):
        probe, truth = _turns(chance, 100, spread)
        low, high = calls_interval(probe, 100 * SECOND) or (0, 0)
        ratios.append(estimated_calls(probe, 100 * SECOND) / truth)
        held += low <= truth <= (high or 0)
        assert low < probe.counts.calls / probe.counts.watched_ns * 100 * SECOND < (high or 0)
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.02)
    assert 0.91 <= held / 200 <= 0.99


def test_what_was_never_seen_may_have_been_called() -> None:
    """Nothing counted in a third of the time is no proof of nothing: up to 3.7 calls in as much time are likely."""
    probe = with_watch(ProbeState(), Watch(function="f", kind=Kind.TIME), 0)
    for second in range(30):
        none = replace(CALLS, calls=0, timed=0, hits=0, cost_ns=0.0, part=1 / 3, missed=second % TURN_S == 0)
        probe = with_activity(probe, none, (second + 1) * SECOND, counting=False)
    assert estimated_calls(probe, 30 * SECOND) == 0
    assert calls_interval(probe, 30 * SECOND) == (0, 7)


def test_the_interval_of_a_total_is_that_of_sampling_without_replacement() -> None:
    """Nine tenths of the time were seen: the error is what the last tenth may have held, counted by simulation."""
    chance, held = np.random.default_rng(9), 0
    for _ in range(300):
        rates = chance.gamma(4.0, 250.0, 100)
        probe = with_watch(ProbeState(), Watch(function="f", kind=Kind.TIME), 0)
        for second in range(90):
            each = replace(CALLS, calls=int(rates[second]), cost_ns=0.0, missed=second > 0)
            probe = with_activity(probe, each, (second + 1) * SECOND, counting=False)
        low, high = calls_interval(probe, 100 * SECOND) or (0, 0)
        held += low <= sum(rates.astype(int)) <= (high or 0)
    assert 0.92 <= held / 300 <= 0.98
