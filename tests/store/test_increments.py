"""What is new in a store comes once, in its order."""

from __future__ import annotations

from pathlib import Path

from specmine.store import Mark, Retention, open_store
from tests.support.stored import SECOND, UTC, fill, observation


def test_each_window_comes_once(tmp_path: Path) -> None:
    """Also if they are read in portions while more are written."""
    with open_store(tmp_path / "s.db") as store:
        fill(store, [observation(second) for second in range(10)])
        one = store.increment(Mark(), most=6)
        two = store.increment(one.mark, most=6)
        fill(store, [observation(second) for second in range(10, 13)])
        three = store.increment(two.mark, most=6)
        found = [each.observation.start_ns // SECOND for part in (one, two, three) for each in part.windows]
        assert found == list(range(13))
        assert one.summaries
        assert not store.increment(three.mark, most=6).windows


def test_merged_windows_say_so_and_a_store_begun_anew_is_known(tmp_path: Path) -> None:
    """Merged rows have new numbers; fewer rows than the mark knows are another store's."""
    with open_store(tmp_path / "s.db") as store:
        fill(store, [observation(second) for second in range(20)])
        mark = store.increment(Mark(), most=100).mark
        store.thin(Retention(), UTC + 7200 * SECOND)
        later = store.increment(mark, most=100)
        assert [each.merges for each in later.windows] == [1, 1]
        assert later.continued
    with open_store(tmp_path / "t.db") as store:
        fill(store, [observation(1)])
        found = store.increment(mark, most=100)
        assert not found.continued
        assert len(found.windows) == 1
