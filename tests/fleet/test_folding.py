"""Folding is pooling: nothing is lost, nothing is counted twice."""

from __future__ import annotations

from specmine.fleet.folding import FIVE_MINUTES_NS, FoldedRow, folded
from specmine.model.pooling import pooled
from tests.support.stored import SECOND, UTC, observation


def test_windows_of_a_slot_become_one_row() -> None:
    """By function, lifetime, kind and slot of UTC; its sums are those of its windows."""
    windows = [observation(second, names=("b", "c")) for second in range(0, 900, 7)]
    windows += [observation(second, key="other+0x1") for second in range(0, 900, 90)]
    rows = folded([FoldedRow(observation=each, windows=1) for each in windows], {"boot": UTC}, FIVE_MINUTES_NS)
    assert sum(each.windows for each in rows) == len(windows)
    slots = {(each.observation.function, (each.observation.end_ns + UTC) // FIVE_MINUTES_NS) for each in rows}
    assert len(slots) == len(rows) > 6
    whole, again = pooled(windows), pooled([each.observation for each in rows])
    assert (again.histogram, again.calls, again.watched_ns) == (whole.histogram, whole.calls, whole.watched_ns)
    assert [(one.path, one.histogram) for one in again.paths] == [(one.path, one.histogram) for one in whole.paths]


def test_the_order_of_windows_does_not_matter() -> None:
    """Rows come in an order of their own."""
    rows = [FoldedRow(observation=observation(second), windows=1) for second in range(400)]
    one, other = (folded(each, {}, 300 * SECOND) for each in (rows, rows[::-1]))
    assert [each.observation.end_ns for each in one] == [each.observation.end_ns for each in other]
    assert [each.observation.histogram for each in one] == [each.observation.histogram for each in other]
