"""Counts of calls are exact as long as the entry probe stays on, and estimates with an interval otherwise."""

from __future__ import annotations

from dataclasses import replace

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
