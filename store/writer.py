"""Writes to the store off the hot loop: grouped, on a thread of its own, and never a reason to stop.

What waits to be written is bounded; when the store fails it waits and is tried again, and what no longer fits
is dropped, oldest first, and counted.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from specmine.model.batch import CallSamples, Lifetime
from specmine.model.function import Function
from specmine.model.observation import Observation

from .connection import StoreError, damaged
from .host_environments import Marked, Vector
from .profiles import Sampled
from .records import Host, JsonObject, Verdict
from .retention import Retention
from .sqlite import Store

_MOST_WAITING = 5000
_RETRY_S = 10.0
_THIN_EVERY_NS = 60 * 10**9


@dataclass(slots=True)
class _Waiting:
    """What waits to be written; of what replaces itself only the last."""

    hosts: dict[str, Host] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    lifetimes: dict[str, Lifetime] = field(default_factory=dict)
    observations: list[Observation] = field(default_factory=list)
    singles: dict[tuple[str, str], CallSamples] = field(default_factory=dict)
    states: dict[str, JsonObject] = field(default_factory=dict)
    verdicts: list[Verdict] = field(default_factory=list)
    documents: dict[str, JsonObject] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    sampled: dict[tuple[str, str], Sampled] = field(default_factory=dict)
    vectors: list[Vector] = field(default_factory=list)
    marks: dict[tuple[str, int, str], Marked] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Tell whether anything waits."""
        return any(getattr(self, name) for name in self.__slots__)

    def join(self, later: _Waiting) -> None:
        """Take up what was put later."""
        self.hosts |= later.hosts
        self.functions |= later.functions
        self.lifetimes |= later.lifetimes
        self.observations += later.observations
        self.singles |= later.singles
        self.states |= later.states
        self.verdicts += later.verdicts
        self.documents |= later.documents
        self.labels |= later.labels
        self.sampled |= later.sampled
        self.vectors += later.vectors
        self.marks |= later.marks

    def shorten(self) -> int:
        """Drop the oldest of what there is too much of; return how many went."""
        gone = 0
        for items in (self.observations, self.verdicts, self.vectors):
            excess = max(0, len(items) - _MOST_WAITING)
            del items[:excess]
            gone += excess
        tables: tuple[dict[Any, Any], ...] = (self.functions, self.lifetimes, self.states, self.sampled, self.singles)
        for table in tables:
            for key in list(table)[: max(0, len(table) - _MOST_WAITING)]:
                del table[key]
                gone += 1
        return gone

    def write(self, store: Store, utc_ns: int) -> None:
        """Write everything in one transaction."""
        with store.transaction():
            for host in self.hosts.values():
                store.put_host(host)
            store.put_functions(self.functions.values())
            store.put_lifetimes(self.lifetimes.values())
            store.put_observations(self.observations)
            store.put_singles(self.singles.values(), utc_ns)
            store.put_states(self.states, utc_ns)
            store.put_verdicts(self.verdicts)
            for name, document in self.documents.items():
                store.put_document(name, document, utc_ns)
            for build_id, name in self.labels.items():
                store.label(build_id, name)
            store.put_sampled(self.sampled.values())
            store.put_surveys(self.vectors, self.marks.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterCounts:
    """What the writer went through since its start."""

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
    """Owns a store and writes to it about once a second. Its ``put_*`` methods return at once."""

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
            What is kept for how long.
        utc_ns : callable
            The wall clock.
        report : callable
            Told in one line when the store begins to fail, when it works again, and when it is set aside.
        every_s : float
            Longest time that something waits while the store works.
        """
        self.retention = retention
        self._store = store
        self._utc_ns = utc_ns
        self._report = report
        self._every_s = every_s
        self._waiting = _Waiting()
        self._counts = WriterCounts()
        self._remembered = _Waiting()
        self._failing = False
        self._damage = ""
        self._thinned_ns = 0
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="store", daemon=True)
        self._thread.start()

    @property
    def counts(self) -> WriterCounts:
        """What the writer went through since its start."""
        return self._counts

    def put_host(self, host: Host) -> None:
        """Write a boot of a host soon."""
        with self._lock:
            self._waiting.hosts[host.boot_id] = host

    def put_functions(self, functions: Iterable[Function]) -> None:
        """Write descriptions of functions soon."""
        with self._lock:
            self._waiting.functions |= {each.key: each for each in functions}

    def put_lifetimes(self, lifetimes: Iterable[Lifetime]) -> None:
        """Write lifetimes soon."""
        with self._lock:
            self._waiting.lifetimes |= {each.id: each for each in lifetimes}

    def put_observations(self, observations: Iterable[Observation]) -> None:
        """Append observations soon."""
        with self._lock:
            self._waiting.observations += observations

    def put_singles(self, singles: Iterable[CallSamples]) -> None:
        """Replace durations of single calls soon."""
        with self._lock:
            self._waiting.singles |= {(each.function, each.lifetime): each for each in singles}

    def put_states(self, states: Mapping[str, JsonObject]) -> None:
        """Write what the controller knows, by function key, soon."""
        with self._lock:
            self._waiting.states |= states

    def put_verdicts(self, verdicts: Iterable[Verdict]) -> None:
        """Append verdicts soon."""
        with self._lock:
            self._waiting.verdicts += verdicts

    def put_document(self, name: str, document: JsonObject) -> None:
        """Replace a document soon."""
        with self._lock:
            self._waiting.documents[name] = document

    def label(self, build_id: str, name: str) -> None:
        """Label a build soon."""
        with self._lock:
            self._waiting.labels[build_id] = name

    def put_sampled(self, rows: Iterable[Sampled]) -> None:
        """Replace what sampling saw of functions soon."""
        with self._lock:
            self._waiting.sampled |= {(each.build_id, each.function): each for each in rows}

    def put_surveys(self, vectors: Iterable[Vector], marks: Iterable[Marked]) -> None:
        """Append what is known of hosts, and when experiments ran on them, soon."""
        with self._lock:
            self._waiting.vectors += vectors
            self._waiting.marks |= {(each.boot_id, each.start_ns, each.name): each for each in marks}

    def stop(self, timeout_s: float = 5.0) -> bool:
        """Write what waits, close the store; False if something could not be written."""
        self._stopping = True
        self._wake.set()
        self._thread.join(timeout_s)
        return not self._thread.is_alive() and not self._waiting

    def _run(self) -> None:
        while not self._stopping:
            self._wake.wait(_RETRY_S if self._failing else self._every_s)
            if not self._stopping:
                self._wake.clear()
            self._write()
        self._write()  # what was put while the last of these wrote
        self._store.close()

    def _write(self) -> None:
        with self._lock:
            batch, self._waiting = self._waiting, _Waiting()
        try:
            if self._damage:
                self._begin_anew(batch)
            if batch:
                batch.write(self._store, self._utc_ns())
                self._written(batch)
                batch = _Waiting()  # thinning may fail too, and must not bring it back
            self._thin(self._utc_ns())
        except (sqlite3.Error, OSError, StoreError) as error:
            self._failed(batch, error)
        except (ValueError, TypeError, ArithmeticError) as error:
            # No store would take this, so trying again would block everything behind it
            self._count(failures=1, dropped=len(batch.observations))
            self._report(f"something could not be written to the store and is dropped: {error}")
        else:
            if self._failing:
                self._failing = False
                self._report("the store works again")

    def _written(self, batch: _Waiting) -> None:
        self._remembered.hosts |= batch.hosts
        self._remembered.functions |= batch.functions
        self._remembered.lifetimes |= batch.lifetimes
        self._remembered.shorten()
        self._count(written=len(batch.observations))

    def _thin(self, now_ns: int) -> None:
        if now_ns - self._thinned_ns >= _THIN_EVERY_NS:
            self._thinned_ns = now_ns
            merged, removed = self._store.thin(self.retention, now_ns)
            self._count(merged=merged, removed=removed)

    def _failed(self, batch: _Waiting, error: Exception) -> None:
        with self._lock:
            batch.join(self._waiting)
            dropped = batch.shorten()
            self._waiting = batch
        self._count(failures=1, dropped=dropped)
        if damaged(error):
            self._damage = str(error)
            self._wake.set()
        elif not self._failing:
            self._failing = True
            self._report(f"the store {self._store.path} cannot be written ({error}); trying again")

    def _begin_anew(self, batch: _Waiting) -> None:
        """Set the damaged store aside; what other rows refer to goes into the new one again."""
        self._report(self._store.begin_anew(self._damage))
        self._damage = ""
        batch.hosts = self._remembered.hosts | batch.hosts
        batch.functions = self._remembered.functions | batch.functions
        batch.lifetimes = self._remembered.lifetimes | batch.lifetimes

    def _count(self, **more: int) -> None:
        counts = {name: getattr(self._counts, name) + number for name, number in more.items()}
        self._counts = replace(self._counts, **counts)
