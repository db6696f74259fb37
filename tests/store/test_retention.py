"""How a store stays small: old observations merge, and the oldest go."""

from __future__ import annotations

from pathlib import Path

import pytest

from specmine.model.pooling import pooled
from specmine.store import Retention, open_store
from tests.support.stored import SECOND, UTC, fill, observation


def test_old_observations_merge_ten_to_one_and_again(tmp_path: Path) -> None:
    """After an hour ten become one, after a day ten of those; no call is lost."""
    with open_store(tmp_path / "s.db") as store:
        fill(store, [observation(second) for second in range(205)])
        assert store.thin(Retention(), UTC + 1800 * SECOND) == (0, 0)
        assert store.thin(Retention(), UTC + 4000 * SECOND) == (180, 0)
        assert store.thin(Retention(), UTC + 90_000 * SECOND) == (18, 0)
        found = store.load(newest=1000).observations
    assert len(found) == 2 + 5
    assert sum(each.timed for each in found) == 205 * 100
    assert sum(each.calls for each in found) == 205 * 120
    assert sum(path.histogram.total for each in found for path in each.paths) == 205 * 100


def test_only_observations_of_one_lifetime_merge(tmp_path: Path) -> None:
    """What belongs to different lifetimes never becomes one."""
    with open_store(tmp_path / "s.db") as store:
        fill(store, [observation(n, lifetime=f"boot:{n % 2}:1") for n in range(18)])
        assert store.thin(Retention(), UTC + 4000 * SECOND) == (0, 0)


def test_merging_adds_up_and_keeps_the_mean_bias() -> None:
    """A merged observation spans the others, adds their counts and averages their bias over calls."""
    both = pooled([observation(2, names=("b",)), observation(5, names=("b", "c"))])
    assert (both.start_ns, both.end_ns) == (2 * SECOND, 6 * SECOND)
    assert (both.timed, both.calls, both.inner, both.censored) == (300, 360, 6, 2)
    assert both.bias_ns == pytest.approx((2 * 100 + 5 * 200) / 300)
    assert [path.path.frames[1].name for path in both.paths] == ["b", "c"]


def test_a_full_store_drops_the_oldest(tmp_path: Path) -> None:
    """Beyond the limit the oldest observations go and the file shrinks below it."""
    limit = 1 << 20
    path = tmp_path / "s.db"
    with open_store(path) as store:
        fill(store, [observation(second, names=tuple("abcdefgh")) for second in range(800)])
        _, dropped = store.thin(Retention(limit_bytes=limit), UTC)
        found = store.load(newest=1000).observations
    assert 0 < dropped < 800
    assert [each.start_ns // SECOND for each in found] == list(range(dropped, 800))
    assert path.stat().st_size <= limit


def test_windows_of_the_future_do_not_outlast_those_that_come(tmp_path: Path) -> None:
    """Dates of a clock that was years ahead are the first to go where room is wanted."""
    with open_store(tmp_path / "s.db") as store:
        fill(store, [observation(second, names=tuple("abcdefgh")) for second in range(800)])
        _, dropped = store.thin(Retention(limit_bytes=1 << 20), UTC + 100 * SECOND - 3600 * SECOND)
        found = store.load(newest=1000).observations
    assert 0 < dropped < 700
    assert [each.start_ns // SECOND for each in found] == [*range(100), *range(100 + dropped, 800)]
