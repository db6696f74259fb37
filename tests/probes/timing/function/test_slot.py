"""The record of one function in the kernel's arrays, read and written word by word."""

from __future__ import annotations

import numpy as np
import pytest

from specmine.probes.kernel.structs import COUNTERS, MAX_SLOTS, PERIODS, SLOT
from specmine.probes.timing.function.slot import Hits, Slot


def test_each_counter_is_read_from_its_own_place() -> None:
    """A counter has the same value by its name as in the record, at every moment, and none is a neighbour's."""
    limits, counters = np.zeros(MAX_SLOTS, SLOT), np.zeros(MAX_SLOTS, COUNTERS)
    slot = Slot(3, limits, counters)
    counters.view("<u8")[:] = np.arange(counters.nbytes // 8)  # after the slot was made: what it reads is live
    single = [name for name in COUNTERS.names or () if not COUNTERS[name].shape]
    assert [slot.count(name) for name in single] == [counters[name][3] for name in single]
    for name in ("open", "late"):
        found = [slot.count_of_period(name, period) for period in range(2 * PERIODS)]
        assert found == 2 * counters[name][3].tolist()
    assert slot.hits == Hits(*(int(counters[name][3]) for name in Hits._fields))
    assert slot.hits.since(slot.hits) == Hits(0)


def test_a_limit_is_written_where_the_programs_read_it() -> None:
    """Only the slot's own limit changes; the largest numbers pass."""
    limits = np.zeros(MAX_SLOTS, SLOT)
    slot = Slot(3, limits, np.zeros(MAX_SLOTS, COUNTERS))
    slot.set_limit(1 << 62)
    slot.set_generation(5)
    assert (slot.limit, int(limits["limit"][3]), int(limits["generation"][3])) == (1 << 62, 1 << 62, 5)
    assert not limits["limit"][[2, 4]].any()
    with pytest.raises((ValueError, OverflowError)):
        slot.set_limit(-1)
