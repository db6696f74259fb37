"""The centre's process: loads what hosts sent, says who observes what, mines what many hosts sent of a function.

Each part is a role: one process may have all, and any number may mine.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from specmine.fleet.database.analysing import analyse
from specmine.fleet.database.connecting import Connection, FleetError, connected, told
from specmine.fleet.database.levels import FleetRetention
from specmine.fleet.database.planning import Planner
from specmine.fleet.database.schema import LOAD, MINE, check_version
from specmine.fleet.memory import keep_freed_memory

from .loader import Loader
from .metrics_file import MetricsFile
from .turns import PLANS, Served, its_turn

IDLE_S = 1.0
"""Between looks at an empty inbox."""
RETRY_S = 5.0
PLAN_S = 60.0
ROLES = ("load", "plan", "mine")


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
        folding = stack.enter_context(connected(url, role=LOAD, autocommit=True))
        file = MetricsFile(metrics) if metrics is not None else None
        return Loader(db, folding, retention, served, file, once=once)
    return _Planning(db, served, plan_s, once=once) if role == "plan" else _Mining(db, served)


class _Planning:
    """Plans once a minute while it is its turn; once with ``once``, after all is loaded."""

    def __init__(self, db: Connection, served: Served, every_s: float, *, once: bool) -> None:
        self._db, self._served, self._every_s = db, served, every_s
        self._planner, self._at, self._has_turn, self._once = Planner(), -math.inf, False, once

    def turn(self) -> bool:
        if time.monotonic() < self._at + self._every_s:
            return False
        self._has_turn = self._has_turn or its_turn(self._db, PLANS)
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


def _rest(seconds: float, stopped: Callable[[], bool]) -> None:
    """Sleep, but not long after ``stopped``."""
    until = time.monotonic() + seconds
    while not stopped() and (left := until - time.monotonic()) > 0:
        time.sleep(min(left, 0.1))
