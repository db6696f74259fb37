"""Lifetimes keep their histograms when their observations merge and go."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from specmine.model.batch import Lifetime
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation
from specmine.store import Host, LifetimeSummary, Retention, Store, Writes, open_store

SECOND = 10**9
UTC = 1_700_000_000 * SECOND
LIFETIME = Lifetime(id="boot:7:300", pid=7, executable="/bin/app", build_id="ab", start_ns=3 * SECOND, processes=1)


def observation(second: int, duration_ns: int, calls: int = 100, kind: Kind = Kind.TIME) -> Observation:
    """Return an observation of one second with calls of one duration."""
    return Observation(
        function="ab+0x10",
        lifetime=LIFETIME.id,
        kind=kind,
        start_ns=second * SECOND,
        end_ns=(second + 1) * SECOND,
        histogram=Histogram.from_durations(np.full(calls, duration_ns)),
        calls=2 * calls,
        watched_ns=SECOND // 2,
        bias_ns=float(second),
    )


def fill(store: Store, observations: list[Observation]) -> None:
    """Put observations, a few at a time as the writer does."""
    store.write(Writes((Host(boot_id="boot", hostname="here", utc_offset_ns=UTC), LIFETIME)), UTC)
    for each in observations:
        store.write(Writes((each,)), UTC)


def test_windows_of_a_lifetime_add_up(tmp_path: Path) -> None:
    """Histogram, calls and watched time of all windows are there; the bias is the mean over timed calls."""
    with open_store(tmp_path / "s.db") as store:
        fill(store, [observation(20, 1000, 100), observation(30, 2000, 300), observation(31, 9000, kind=Kind.PATH)])
        both, path = sorted(store.read(LifetimeSummary), key=lambda each: each.kind.value, reverse=True)
    assert both.histogram.total == 400
    assert (both.calls, both.watched_ns) == (800, SECOND)
    assert both.bias_ns == (20 * 100 + 30 * 300) / 400
    assert (both.start_utc_ns, both.end_utc_ns) == (UTC + 20 * SECOND, UTC + 31 * SECOND)
    assert (path.kind, path.histogram.total) == (Kind.PATH, 100)


def test_the_first_ten_seconds_of_a_lifetime_are_warmup(tmp_path: Path) -> None:
    """The exec was at second 3: windows before second 13 are left out once as many calls came later."""
    with open_store(tmp_path / "s.db") as store:
        fill(store, [observation(5, 9000, 100), observation(12, 9000, 100), observation(13, 1000, 150)])
        (young,) = store.read(LifetimeSummary)
        fill(store, [observation(14, 1000, 50)])
        (grown,) = store.read(LifetimeSummary)
    assert (young.histogram.total, young.warmup_calls) == (350, 0)
    assert (grown.histogram.total, grown.warmup_calls) == (200, 200)
    assert grown.histogram == Histogram.from_durations(np.full(200, 1000))


def test_summaries_outlive_observations(tmp_path: Path) -> None:
    """Merging and dropping of observations changes no summary and forgets no lifetime that has one."""
    with open_store(tmp_path / "s.db") as store:
        fill(store, [observation(second, 1000) for second in range(20, 50)])
        (before,) = store.read(LifetimeSummary)
        store.thin(Retention(), UTC + 200_000 * SECOND)
        store.thin(Retention(limit_bytes=1), UTC + 200_000 * SECOND)
        assert store.load().observations == ()
        (after,) = store.read(LifetimeSummary)
        assert store.load().lifetimes == (LIFETIME,)
    assert after.histogram == before.histogram
    assert after.histogram.total == 3000
