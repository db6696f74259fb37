"""Pushes are loaded while an hour is folded: with many hosts that takes minutes."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from specmine.fleet.database.centre import loader
from specmine.fleet.database.connecting import Connection, connected
from specmine.fleet.database.hours import fold_hours
from specmine.fleet.database.loading import load
from specmine.fleet.database.schema import LOAD
from specmine.fleet.forwarding.main import forward
from tests.support.fleets import enrolled, load_all
from tests.support.patience import patient
from tests.support.postgres import Postgres


def _count(db: Connection, table: str, what: str = "count(*)") -> int:
    found: int = db.execute(f"SELECT {what} AS number FROM specmine.{table}").fetchone()["number"]  # type: ignore[index]
    return found


def test_what_is_loaded_during_a_fold_is_folded_next(
    postgres: Postgres, url: str, folder: Path, db: Connection
) -> None:
    """It is there at once, and counted once."""
    host = enrolled(postgres, url, folder, "h1")
    host.observe(range(0, 900, 90))
    forward(host.config)
    seen: list[tuple[int, int]] = []
    with connected(url, role=LOAD, autocommit=True) as loading, connected(url, role=LOAD, autocommit=True) as folding:
        assert load(loading).pushes == 1
        first = _count(db, "observation")
        host.observe(range(990, 1800, 90))
        forward(host.config)
        later = db.execute("SELECT now() AS now").fetchone()["now"] + timedelta(hours=4)  # type: ignore[index]

        def between() -> None:
            load(loading)
            seen.append((_count(db, "observation"), _count(db, "fleet_hour")))

        assert fold_hours(folding, later, between=between) >= 1
        assert seen[0] == (_count(db, "observation"), 0) and seen[0][0] > first
        calls = "coalesce(sum(calls), 0)::bigint"
        assert 0 < _count(db, "fleet_hour", calls) < _count(db, "observation", calls)
        assert fold_hours(folding, later) >= 1
        assert _count(db, "fleet_hour", calls) == _count(db, "observation", calls)
        assert fold_hours(folding, later) == 0


@pytest.mark.parametrize("locked", [True, False])
def test_a_load_does_not_wait_for_the_fold_that_waits_for_it(
    postgres: Postgres, url: str, folder: Path, db: Connection, monkeypatch: pytest.MonkeyPatch, locked: bool
) -> None:
    """A new day needs a new partition, which nobody gets while a fold reads: then pushes wait until it has ended."""
    host = enrolled(postgres, url, folder, "h1")
    waiting: list[int] = []
    took_s: list[float] = []

    def fold(_: Connection, now: datetime, *, between: Callable[[], None]) -> int:
        host.observe(range(0, 900, 90))
        forward(host.config)
        with db.transaction():
            if locked:
                db.execute("LOCK TABLE specmine.observation IN ACCESS SHARE MODE")
            for _number in range(3):
                began_s = time.monotonic()
                between()
                took_s.append(time.monotonic() - began_s)
            waiting.append(_count(db, "inbox"))
        return 0

    monkeypatch.setattr(loader, "fold_hours", fold)
    load_all(url)
    assert waiting == [1 if locked else 0]
    if locked:
        assert took_s[0] >= 0.9 and max(took_s[1:]) < patient(0.5)
    monkeypatch.undo()
    assert load_all(url).pushes == (1 if locked else 0)
    assert _count(db, "inbox") == 0 and _count(db, "observation") > 0
