"""When the kernel's hashes are read: after hits, and once more for what was written late."""

from __future__ import annotations

import numpy as np

from specmine.probes.kernel.structs import COUNTERS, FREE_SLOTS, MAX_SLOTS
from specmine.probes.timing.hit_watch import HitWatch

MS = 1_000_000


def test_hashes_are_read_after_each_hit_and_once_more_later() -> None:
    """Nothing stays unread: a handler that counted its hit before the last read may have written after it."""
    counters = np.zeros(MAX_SLOTS, COUNTERS)
    hits = HitWatch(counters)
    assert hits.take_news(1 * MS), "nobody knows what was there before"
    assert [hits.take_news(now * MS) for now in (1, 1, 300, 600, 900)] == [False, False, True, False, False]
    counters["hits"][7] += 2
    assert [hits.take_news(now * MS) for now in (1200, 1200, 1500, 1800)] == [True, False, True, False]
    counters["hits"][7] += 1
    assert hits.take_news(2000 * MS)
    counters["hits"][8] += 1
    assert [hits.take_news(2000 * MS), hits.take_news(2000 * MS)] == [True, False], "a hit within one poll is news too"


def test_what_is_no_timed_function_is_no_hit() -> None:
    """The last slots belong to exits and to calibration: nothing of theirs is in the hashes."""
    counters = np.zeros(MAX_SLOTS, COUNTERS)
    hits = HitWatch(counters)
    assert [hits.take_news(now) for now in (1, 2, 3)] == [True, True, False]
    counters["hits"][FREE_SLOTS:] += 5
    assert not hits.take_news(4)
