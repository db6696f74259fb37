"""The centre's process: loads what hosts sent, says who observes what, mines what many hosts sent of a function.

The loader also folds hours, drops what is old, and ends sessions that stay too long. Each part is a role: one process
may have all, and any number may mine.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from specmine.fleet.host_levels import document_of
from specmine.fleet.memory import keep_freed_memory
from specmine.fleet.metrics import metrics_text
from specmine.model.errors import InputError

from .analysing import analyse
from .connecting import Connection, FleetError, connected, told
from .host_levels import build_labels, read_levels
from .hours import fold_hours
from .levels import FleetRetention, drop_old
from .loading import load
from .numbering import Known
from .planning import Planner
from .schema import LOAD, MINE, check_version

IDLE_S = 1.0
"""Between looks at an empty inbox."""
UPKEEP_S = 60.0
LEVELS_S = 300.0
_NEWEST = timedelta(hours=6)  # levels of metrics are of so long
LONGEST_SESSION = timedelta(seconds=90)
"""Of a host: it sends for at most a minute."""
RETRY_S = 5.0
_TURN = 0x73706D6E  # advisory lock: one loader at a time, the others wait for its end
_PLANS = 0x73706D70  # the same of planners
PLAN_S = 60.0
ROLES = ("load", "plan", "mine")


@dataclass(slots=True)
class Served:
    """What was done."""

    pushes: int = 0
    refused: int = 0
    rows: int = 0
    hours: int = 0
    dropped: int = 0
    plans: int = 0
    mined: int = 0


def serve(
    url: str,
    retention: FleetRetention,
    *,
    once: bool,
    tell: Callable[[str], None],
    stopped: Callable[[], bool] = lambda: False,
    metrics: Path | None = None,
    roles: Collection[str] = ("load",),
    plan_s: float = PLAN_S,
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
    roles : collection of str
        Of ``ROLES``: what this process does. The user of the URL may be ``specmine_load`` for the first,
        ``specmine_mine`` for the others.
    plan_s : float
        Between two plans, s.

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
            with told(url), ExitStack() as stack:
                parts = [
                    _part(each, stack, url, retention, served, metrics, plan_s, once=once)
                    for each in ROLES
                    if each in roles
                ]
                if failing:
                    failing = False
                    tell("the database is back")
                while not stopped():
                    # at once: all is loaded before it is planned, and planned before it is mined
                    turns = (each.turn() for each in parts)
                    if any(turns) if once else any(list(turns)):
                        continue
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
        " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) AS loader,"
        " EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = %s AND granted"
        " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) AS planner,"
        " (SELECT count(*) FROM specmine.model WHERE state <> 'none') AS stated,"
        " (SELECT count(*) FROM specmine.job) AS jobs",
        (_TURN, _PLANS),
    ).fetchone()
    assert row is not None
    states = db.execute(
        "SELECT CASE WHEN state <> 'active' THEN state WHEN seen_at IS NULL THEN 'never seen'"
        " WHEN seen_at < now() - interval '15 minutes' THEN 'silent' ELSE 'active' END AS state, count(*) AS number"
        " FROM specmine.host GROUP BY 1 ORDER BY 1"
    )
    duties = db.execute("SELECT purpose, count(*) AS number FROM specmine.duty WHERE missed_until IS NULL"
                        " GROUP BY 1 ORDER BY 1")  # fmt: skip
    levels = db.execute("SELECT level, count(*) AS partitions, sum(bytes)::bigint AS bytes FROM specmine.partitions()"
                        " GROUP BY level ORDER BY level")  # fmt: skip
    return {
        "schema": "specmine.fleet_status/1",
        "hosts": {each["state"]: each["number"] for each in states},
        "loader": row["loader"],
        "inbox": {"pushes": row["waiting"], "oldest_seconds": row["oldest_waiting_seconds"]},
        "sharing": {
            "planner": row["planner"],
            "duties": {each["purpose"]: each["number"] for each in duties},
            "stated": row["stated"],
            "waiting_to_be_mined": row["jobs"],
        },
        "refused": row["refused"],
        "functions": row["functions"],
        "lifetimes": row["lifetimes"],
        "bytes": row["bytes"],
        "levels": {each["level"]: {"partitions": each["partitions"], "bytes": each["bytes"]} for each in levels},
    }


def _its_turn(db: Connection, lock: int) -> bool:
    row = db.execute("SELECT pg_try_advisory_lock(%s::bigint) AS mine", (lock,)).fetchone()
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


class _Part(Protocol):
    def turn(self) -> bool:
        """Do something; return whether there may be more to do at once."""


def _part(
    role: str,
    stack: ExitStack,
    url: str,
    retention: FleetRetention,
    served: Served,
    metrics: Path | None,
    plan_s: float,
    *,
    once: bool,
) -> _Part:
    db = stack.enter_context(connected(url, role=LOAD if role == "load" else MINE, autocommit=True))
    check_version(db)
    if role == "load":
        return _Loading(db, retention, served, _MetricsFile(metrics) if metrics is not None else None, once=once)
    return _Planning(db, served, plan_s, once=once) if role == "plan" else _Mining(db, served)


class _Loading:
    """Loads while it is its turn, with upkeep once a minute."""

    def __init__(
        self, db: Connection, retention: FleetRetention, served: Served, metrics: _MetricsFile | None, *, once: bool
    ) -> None:
        self._db, self._retention, self._served, self._metrics, self._once = db, retention, served, metrics, once
        self._known, self._upkeep_at, self._has_turn = Known(), time.monotonic(), False

    def turn(self) -> bool:
        self._has_turn = self._has_turn or _its_turn(self._db, _TURN)
        if not self._has_turn:
            return False
        loaded, served = load(self._db, self._known), self._served
        served.pushes += loaded.pushes
        served.refused += loaded.refused
        served.rows += loaded.rows
        if time.monotonic() >= self._upkeep_at or (self._once and not loaded.pushes):
            _upkeep(self._db, self._retention, served, self._metrics)
            self._upkeep_at = time.monotonic() + UPKEEP_S
        return loaded.pushes > 0


class _Planning:
    """Plans once a minute while it is its turn; once with ``once``, after all is loaded."""

    def __init__(self, db: Connection, served: Served, every_s: float, *, once: bool) -> None:
        self._db, self._served, self._every_s = db, served, every_s
        self._planner, self._at, self._has_turn, self._once = Planner(), -math.inf, False, once

    def turn(self) -> bool:
        if time.monotonic() < self._at + self._every_s:
            return False
        self._has_turn = self._has_turn or _its_turn(self._db, _PLANS)
        if not self._has_turn:
            return False
        self._planner.plan(self._db)
        self._served.plans += 1
        self._at = time.monotonic()
        return False


class _Mining:
    """Mines whatever function waits longest for it."""

    def __init__(self, db: Connection, served: Served) -> None:
        self._db, self._served = db, served

    def turn(self) -> bool:
        done = analyse(self._db)
        self._served.mined += done
        return done


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
