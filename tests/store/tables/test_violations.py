"""Violations in the store: a row each, replaced at each change, open ones never deleted for their age."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from specmine.model.violation import ViolationState
from specmine.store import Retention, StoredViolation, Writes, open_store, stored
from specmine.store.tables import violations as table
from tests.support.violations import SECOND, violation


def test_a_violation_comes_back_as_it_was_in_utc(tmp_path: Path) -> None:
    """All of it is stored; its times are those of the wall clock."""
    one = violation("ab+0x10", comment="wanted", because="ab+0x20")
    with open_store(tmp_path / "s.db") as store:
        store.write(Writes((stored(one, 7 * SECOND),)), 1)
        (back,) = store.read(StoredViolation)
    assert back.violation == one.shifted(7 * SECOND)
    assert back.violation.shifted(-7 * SECOND) == one
    assert (back.found_utc_ns, back.closed_utc_ns) == (one.found_ns + 7 * SECOND, None)


def test_a_later_row_replaces_the_one_of_its_id(tmp_path: Path) -> None:
    """Opened, then closed: one row, and another violation of the function is another row."""
    one = violation("ab+0x10")
    closed = one.closed(ViolationState.RECOVERED, 900 * SECOND)
    other = violation("ab+0x10", found_ns=1000 * SECOND)
    assert other.id != one.id
    with open_store(tmp_path / "s.db") as store:
        for each in (one, closed, other):
            store.write(Writes((stored(each, 0),)), 1)
        found = store.read(StoredViolation)
        assert [each.state for each in found] == [ViolationState.RECOVERED, ViolationState.OPEN]
        assert len(store.read(StoredViolation, state=ViolationState.OPEN.value)) == 1


def test_old_ones_go_but_open_ones_stay(tmp_path: Path) -> None:
    """Retention deletes the oldest closed ones only."""
    from specmine.store import schema, sqlite  # noqa: PLC0415

    few = replace(table.VIOLATIONS, most=3)
    tables = tuple(few if each is table.VIOLATIONS else each for each in schema.SCHEMA.tables)
    small = replace(schema.SCHEMA, tables=tables)
    made = [violation("ab+0x10", found_ns=number * SECOND) for number in range(1, 9)]
    closed = [each.closed(ViolationState.RECOVERED, each.found_ns + 1) for each in made[1:]]
    with sqlite.SqliteStore.open(tmp_path / "s.db", schema=small) as store:
        store.write(Writes(tuple(stored(each, 0) for each in (made[0], *closed))), 1)
        store.thin(Retention(limit_bytes=1 << 30, merge_after_ns=SECOND, merge_again_after_ns=SECOND), 10 * SECOND)
        left = [each.found_utc_ns // SECOND for each in store.read(StoredViolation)]
    assert left == [1, 6, 7, 8]
