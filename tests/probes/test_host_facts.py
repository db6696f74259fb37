"""Where UTC lies on the clock of the kernel's events."""

from __future__ import annotations

import time

from specmine.probes.host_facts import NOTABLE_NS, UtcOffset, host_facts, utc_offset_ns


def test_the_offset_is_that_of_the_two_clocks() -> None:
    """It lies between what two readings around it give."""
    before = time.time_ns() - time.monotonic_ns()
    found = utc_offset_ns()
    assert abs(found - before) < NOTABLE_NS


def test_a_clock_that_is_set_is_told_once() -> None:
    """Small corrections are not told; a jump in either direction is, and so is the way back."""
    readings = iter([10**18, 10**18 + NOTABLE_NS // 2, 10**18 + 10**12, 10**18 + 10**12, 10**17])
    offset = UtcOffset(lambda: next(readings))
    assert host_facts("multi", offset)["utc_offset_ns"] == str(10**18)
    assert [offset.changed() for _ in range(4)] == [None, 10**18 + 10**12, None, 10**17]
    assert host_facts("multi", offset)["utc_offset_ns"] == str(10**17)
