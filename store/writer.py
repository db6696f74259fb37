"""Writes to the store outside the loop: grouped, on a thread of its own. A failure never stops the daemon.

When the store fails, what is to be written waits and is tried again. It is bounded: the oldest that does not fit is
dropped, and counted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from typing import Any

from specmine.model.batch import Lifetime
from specmine.model.function import Function
from specmine.model.observation import Observation

from .errors import StoreCorrupt, StoreError
from .protocol import Store
from .retention import Retention
from .schema import Record
from .tables.hosts import Host
from .writes import Writes, in_table_order

_MOST_WAITING = 5000
"""Records of each type that wait at most."""
_REFERRED = (Host, Function, Lifetime)
"""What other rows refer to: a new store after a damaged one gets it again."""
_ENDED = 64
"""Lifetimes that have ended and to which rows may still refer."""
_RETRY_S = 10.0
_THIN_EVERY_NS = 60 * 10**9
_REST_S = 60.0
"""How long the thread sleeps while nothing is put: each time of waking up costs our own CPU time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterCounts:
    """What the writer did since its start."""

    written: int = 0
    """Observations written."""
    failures: int = 0
    """Attempts to write that failed."""
    dropped: int = 0
    """Things given up because too much waited."""
    merged: int = 0
    """Observations merged into others because of their age."""
    removed: int = 0
    """Observations removed because the store was full."""


class StoreWriter:
    """Owns a store and writes to it at most once a second; ``put`` returns at once."""

    def __init__(
        self,
        store: Store,
        *,
        retention: Retention,
        utc_ns: Callable[[], int],
        report: Callable[[str], None],
        every_s: float = 1.0,
    ) -> None:
        """Take over the store and start.

        Parameters
        ----------
        store : Store
            Used by nobody else from now on; ``stop`` closes it.
        retention : Retention
            What is stored for how long.
        utc_ns : callable
            The wall clock.
        report : callable
            Gets one line when the store begins to fail, when it works again, and when it is set aside.
        every_s : float
            Longest time that something waits while the store works.
        """
        self.retention = retention
        self._store = store
        self._utc_ns = utc_ns
        self._report = report
        self._every_s = every_s
        self._waiting: list[Writes] = []
        self._counts = WriterCounts()
        self._referred = Writes()
        self.functions: Container[str] | None = None
        """Keys of the functions to which rows may still refer; None: of all."""
        self._failing = False
        self._damage = ""
        self._thinned_ns = 0
        self._lock = threading.Lock()
        self._asked = self._answered = 0
        """Calls of ``put_now``, and those of them whose records were written."""
        self._progress = threading.Condition()
        self._filled, self._hurried = threading.Event(), threading.Event()
        """Something waits to be written, and it must not wait for more."""
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="store", daemon=True)
        self._thread.start()

    @property
    def counts(self) -> WriterCounts:
        """What the writer did since its start."""
        return self._counts

    def put(self, *records: Record) -> None:
        """Write records soon."""
        if records:
            with self._lock:
                self._waiting.append(Writes(records))
            self._filled.set()

    def put_now(self, *records: Record, timeout_s: float = 1.0) -> bool:
        """Write records before anything else happens; False if they are not on disk after the timeout, but wait."""
        with self._lock:
            self._waiting.append(Writes(records))
            self._asked += 1
            asked = self._asked
        self._hurry()
        with self._progress:
            return self._progress.wait_for(lambda: self._answered >= asked, timeout_s)

    def stop(self, timeout_s: float = 5.0) -> bool:
        """Write what waits, close the store; False if something could not be written."""
        self._stopping = True
        self._hurry()
        self._thread.join(timeout_s)
        return not self._thread.is_alive() and not self._waiting

    def _hurry(self) -> None:
        self._hurried.set()
        self._filled.set()

    def _run(self) -> None:
        while not self._stopping:
            if self._failing:
                self._hurried.wait(_RETRY_S)
            elif self._filled.wait(_REST_S):
                self._hurried.wait(self._every_s)
            if not self._stopping:
                self._hurried.clear()
                self._filled.clear()
            self._write()
        self._write()  # what was put while the last of these wrote
        self._store.close()

    def _write(self) -> None:
        with self._lock:
            parts, self._waiting = self._waiting, []
            asked = self._asked
        rest = [Writes.joined(parts)]
        try:
            if self._damage:
                rest = [self._begin_anew(rest[0])]
            while rest:  # empty when thinning fails, which must not bring anything back
                self._write_first(rest)
            with self._progress:
                self._answered = asked
                self._progress.notify_all()
            self._thin(self._utc_ns())
        except (StoreError, OSError) as error:
            self._failed(Writes.joined(rest), error)
        else:
            if self._failing:
                self._failing = False
                self._report("the store works again")

    def _write_first(self, rest: list[Writes]) -> None:
        """Write the first part and take it away. If no store would take it, halve it, or drop its one record.

        Trying again would block everything behind it. Halves are in the order in which records refer to each other.
        """
        part = rest[0]
        if part:
            try:
                self._store.write(part, self._utc_ns())
            except (ValueError, TypeError, ArithmeticError) as error:
                records = in_table_order(part.records)
                if len(records) > 1:
                    half = len(records) // 2
                    rest[:1] = [Writes(records[:half]), Writes(records[half:])]
                    return
                self._count(failures=1, dropped=1)
                self._report(f"something could not be written to the store and is dropped: {error}")
            else:
                self._written(part)
        del rest[0]

    def _written(self, writes: Writes) -> None:
        referred: tuple[Any, ...] = writes.of(*_REFERRED)
        if referred:
            kept = _without_old_lives(self._referred + Writes(referred)).newest(_MOST_WAITING)
            self._referred = kept if self.functions is None else _without_old_functions(kept, self.functions)
        self._count(written=len(writes.of(Observation)))

    def _thin(self, now_ns: int) -> None:
        if abs(now_ns - self._thinned_ns) >= _THIN_EVERY_NS:  # the clock may have been set back
            self._thinned_ns = now_ns
            merged, removed = self._store.thin(self.retention, now_ns)
            self._count(merged=merged, removed=removed)

    def _failed(self, writes: Writes, error: StoreError | OSError) -> None:
        with self._lock:
            waiting = Writes.joined([writes, *self._waiting])
            bounded = waiting.newest(_MOST_WAITING)
            self._waiting = [bounded] if bounded else []
        self._count(failures=1, dropped=len(waiting.records) - len(bounded.records))
        if isinstance(error, StoreCorrupt):
            self._damage = error.message
            self._hurry()
        elif not self._failing:
            self._failing = True
            what = error.message if isinstance(error, StoreError) else f"the store {self._store.path} fails ({error})"
            self._report(f"{what}; trying again")

    def _begin_anew(self, writes: Writes) -> Writes:
        """Set the damaged store aside; return also what other rows refer to, for the new one."""
        self._report(self._store.begin_anew(self._damage))
        self._damage = ""
        return self._referred + writes

    def _count(self, **more: int) -> None:
        counts = {name: getattr(self._counts, name) + number for name, number in more.items()}
        self._counts = replace(self._counts, **counts)


def _without_old_functions(referred: Writes, known: Container[str]) -> Writes:
    """Leave out functions that nobody knows any more: where a service is deployed often there are ever more of them."""
    return Writes(tuple(each for each in referred.records if not isinstance(each, Function) or each.key in known))


def _without_old_lives(referred: Writes) -> Writes:
    """Leave out lifetimes that ended long ago: on a host of short lives there are ever more of them."""
    ended = [each.id for each in referred.of(Lifetime) if not each.processes]
    old = frozenset(ended[:-_ENDED])
    kept = (each for each in referred.records if not (isinstance(each, Lifetime) and each.id in old))
    return Writes(tuple(kept)) if old else referred
