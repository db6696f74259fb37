"""The centre's process: loads what hosts sent, folds hours, drops what is old, ends sessions that stay too long."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from specmine.fleet.host_levels import document_of
from specmine.fleet.memory import keep_freed_memory
from specmine.fleet.metrics import metrics_text
from specmine.model.errors import InputError

from .connecting import Connection, FleetError, connected, told
from .host_levels import build_labels, read_levels
from .hours import fold_hours
from .levels import FleetRetention, drop_old
from .loading import load
from .numbering import Known
from .schema import LOAD, check_version

IDLE_S = 1.0
"""Between looks at an empty inbox."""
UPKEEP_S = 60.0
LEVELS_S = 300.0
_NEWEST = timedelta(hours=6)  # levels of metrics are of so long
LONGEST_SESSION = timedelta(seconds=90)
"""Of a host: it sends for at most a minute."""
RETRY_S = 5.0
_TURN = 0x73706D6E  # advisory lock: one loader at a time, the others wait for its end


@dataclass(slots=True)
class Served:
    """What was done."""

    pushes: int = 0
    refused: int = 0
    rows: int = 0
    hours: int = 0
    dropped: int = 0


def serve(
    url: str,
    retention: FleetRetention,
    *,
    once: bool,
    tell: Callable[[str], None],
    stopped: Callable[[], bool] = lambda: False,
    metrics: Path | None = None,
) -> Served:
    """Work until ``stopped``, or once until the inbox is empty.

    Parameters
    ----------
    url : str
        Of the database, as somebody who may be ``specmine_load``.
    retention : FleetRetention
    once : bool
        End when nothing is left to do, also if another loader has its turn.
    tell : callable
        Gets a line when the database goes away and when it is back.
    stopped : callable
        Whether to end.
    metrics : path, optional
        A file that gets the fleet's metrics each minute.

    Raises
    ------
    FleetError
        With ``once`` if the database does not answer.
    """
    keep_freed_memory()
    served = Served()
    failing = False
    while not stopped():
        try:
            with told(url), connected(url, role=LOAD, autocommit=True) as db:
                check_version(db)
                if failing:
                    failing = False
                    tell("the database is back")
                if _its_turn(db):
                    writer = _MetricsFile(metrics) if metrics is not None else None
                    _work(db, retention, served, once=once, stopped=stopped, metrics=writer)
                if once:
                    return served
                _rest(IDLE_S, stopped)
        except FleetError as error:
            if once:
                raise
            if not failing:
                failing = True
                tell(str(error))
            _rest(RETRY_S, stopped)
    return served


def status_of(db: Connection) -> dict[str, Any]:
    """Return ``specmine.fleet_status/1``: hosts, what waits, what is held."""
    row = db.execute(
        "SELECT (SELECT count(*) FROM specmine.inbox) AS waiting,"
        " (SELECT extract(epoch FROM now() - min(received_at))::float8 FROM specmine.inbox) AS oldest_waiting_seconds,"
        " (SELECT count(*) FROM specmine.function) AS functions, (SELECT count(*) FROM specmine.lifetime) AS lifetimes,"
        " (SELECT count(*) FROM specmine.refused) AS refused,"
        " pg_database_size(current_database()) AS bytes,"
        " EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = %s AND granted"
        " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) AS loader",
        (_TURN,),
    ).fetchone()
    assert row is not None
    states = db.execute(
        "SELECT CASE WHEN state <> 'active' THEN state WHEN seen_at IS NULL THEN 'never seen'"
        " WHEN seen_at < now() - interval '15 minutes' THEN 'silent' ELSE 'active' END AS state, count(*) AS number"
        " FROM specmine.host GROUP BY 1 ORDER BY 1"
    )
    levels = db.execute("SELECT level, count(*) AS partitions, sum(bytes)::bigint AS bytes FROM specmine.partitions()"
                        " GROUP BY level ORDER BY level")  # fmt: skip
    return {
        "schema": "specmine.fleet_status/1",
        "hosts": {each["state"]: each["number"] for each in states},
        "loader": row["loader"],
        "inbox": {"pushes": row["waiting"], "oldest_seconds": row["oldest_waiting_seconds"]},
        "refused": row["refused"],
        "functions": row["functions"],
        "lifetimes": row["lifetimes"],
        "bytes": row["bytes"],
        "levels": {each["level"]: {"partitions": each["partitions"], "bytes": each["bytes"]} for each in levels},
    }


def _its_turn(db: Connection) -> bool:
    row = db.execute("SELECT pg_try_advisory_lock(%s::bigint) AS mine", (_TURN,)).fetchone()
    assert row is not None
    return bool(row["mine"])


@dataclass(slots=True)
class _MetricsFile:
    """A file for node_exporter's textfile collector."""

    path: Path
    _levels: dict[str, Any] | None = None
    _levels_at: float = -math.inf

    def write(self, db: Connection, served: Served, now: datetime) -> None:
        """Write it anew; levels over hosts, which take longer, every five minutes."""
        if time.monotonic() >= self._levels_at + LEVELS_S:
            self._levels = document_of(read_levels(db, _NEWEST, {}), build_labels(db), level=0.95)
            self._levels_at = time.monotonic()
        counted = {"loaded": served.pushes - served.refused, "refused": served.refused, "rows": served.rows}
        text = metrics_text(status_of(db), self._levels, counted, now.timestamp())
        new = self.path.with_name(f".{self.path.name}.new")
        try:
            new.write_text(text, encoding="utf-8")
            new.replace(self.path)
        except OSError as error:
            raise InputError(f"cannot write {self.path}: {error.strerror}", remedy="see --metrics") from error


def _work(
    db: Connection,
    retention: FleetRetention,
    served: Served,
    *,
    once: bool,
    stopped: Callable[[], bool],
    metrics: _MetricsFile | None,
) -> None:
    upkeep_at, known = time.monotonic(), Known()
    while not stopped():
        loaded = load(db, known)
        served.pushes += loaded.pushes
        served.refused += loaded.refused
        served.rows += loaded.rows
        if time.monotonic() >= upkeep_at or (once and not loaded.pushes):
            _upkeep(db, retention, served, metrics)
            upkeep_at = time.monotonic() + UPKEEP_S
        if loaded.pushes:
            continue
        if once:
            return
        _rest(IDLE_S, stopped)


def _upkeep(db: Connection, retention: FleetRetention, served: Served, metrics: _MetricsFile | None) -> None:
    row = db.execute("SELECT now() AS now").fetchone()
    assert row is not None
    now: datetime = row["now"]
    db.execute("SELECT end_long_sessions(%s)", (LONGEST_SESSION,))
    served.hours += fold_hours(db, now)
    served.dropped += len(drop_old(db, retention, now))
    if metrics is not None:
        metrics.write(db, served, now)


def _rest(seconds: float, stopped: Callable[[], bool]) -> None:
    """Sleep, but not long after ``stopped``."""
    until = time.monotonic() + seconds
    while not stopped() and (left := until - time.monotonic()) > 0:
        time.sleep(min(left, 0.1))
