"""Loads what hosts sent, folds hours, drops what is old, and ends sessions that stay too long."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from specmine.fleet.database.connecting import LOCK_WAIT, Connection, LockNotAvailable
from specmine.fleet.database.hours import fold_hours
from specmine.fleet.database.levels import FleetRetention, drop_old
from specmine.fleet.database.loading import load
from specmine.fleet.database.numbering import Known

from .metrics_file import MetricsFile
from .turns import FOLDS, LOADS, Served, its_turn

UPKEEP_S = 60.0
LONGEST_SESSION = timedelta(seconds=90)
"""Of a host: it sends for at most a minute."""
BETWEEN = 4
"""Batches of pushes that are loaded between two parts of a fold: of many hosts an hour takes minutes to fold."""


class Loader:
    """Loads while it is its turn, with upkeep once a minute, over a connection of its own."""

    def __init__(
        self,
        db: Connection,
        folding: Connection,
        retention: FleetRetention,
        served: Served,
        metrics: MetricsFile | None,
        *,
        once: bool,
    ) -> None:
        """Load over one connection, fold over the other."""
        self._db, self._folding, self._retention = db, folding, retention
        self._served, self._metrics, self._once = served, metrics, once
        self._known, self._upkeep_at, self._has_turn = Known(), time.monotonic(), False

    def turn(self) -> bool:
        """Load a batch, and look after the rest once a minute; return whether there may be more to load."""
        # each connection has a lock: if one of them is lost, no other process begins before the second has gone, too
        self._has_turn = self._has_turn or (its_turn(self._db, LOADS) and its_turn(self._folding, FOLDS))
        if not self._has_turn:
            return False
        pushes = self._load()
        if time.monotonic() >= self._upkeep_at or (self._once and not pushes):
            with _impatient(self._db):
                _upkeep(self._folding, self._retention, self._served, self._metrics, self._loader())
            self._upkeep_at = time.monotonic() + UPKEEP_S
        return pushes > 0

    def _load(self) -> int:
        """Load a batch; return how many pushes it had."""
        loaded, served = load(self._db, self._known), self._served
        served.pushes += loaded.pushes
        served.refused += loaded.refused
        served.rows += loaded.rows
        return loaded.pushes

    def _loader(self) -> Callable[[], None]:
        """Return what loads a little of what waits, until a lock of the fold is in its way."""
        waits = False

        def load_some() -> None:
            nonlocal waits
            try:
                for _ in range(0 if waits else BETWEEN):
                    if not self._load():
                        return
            except LockNotAvailable:
                waits = True

        return load_some


@contextmanager
def _impatient(db: Connection) -> Iterator[None]:
    """Let loads wait a second for a lock: a fold that reads keeps from them the partition of a new day."""
    db.execute("SET lock_timeout = '1s'")
    try:
        yield
    finally:
        if not db.broken:
            db.execute(f"SET lock_timeout = '{LOCK_WAIT}'")


def _upkeep(
    db: Connection,
    retention: FleetRetention,
    served: Served,
    metrics: MetricsFile | None,
    between: Callable[[], None],
) -> None:
    row = db.execute("SELECT now() AS now").fetchone()
    assert row is not None
    now: datetime = row["now"]
    db.execute("SELECT end_long_sessions(%s)", (LONGEST_SESSION,))
    served.hours += fold_hours(db, now, between=between)
    served.dropped += len(drop_old(db, retention, now))
    if metrics is not None:
        metrics.write(db, served, now)
