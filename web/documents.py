"""What the pages are made of: the documents that the commands print as JSON, read from one place."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from specmine.analysis.documents import document_in, functions_of, is_store
from specmine.analysis.violations import violations_in
from specmine.daemon.documents.trend import MOST_BUILDS, MOST_TRENDS, stated_formulas, trend_of, trends_of
from specmine.daemon.socket.client import PATIENCE_S, DaemonConnection
from specmine.model.errors import NoData
from specmine.store import read_store

from .json_pieces import loads

Entry = Mapping[str, Any]
FRESH_S = 3.0
"""A snapshot of this age is read anew; the request that notices does not wait for it."""
READING_SHARE = 0.05
"""So much of the time may pass with reading: what takes long is read less often, ..."""
STALE_S = 30.0
"""... but a request waits for a new snapshot if the last one is older."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Documents:
    """All that is known at one moment."""

    specification: Mapping[str, Any]
    violations: Mapping[str, Any]
    status: Mapping[str, Any] = field(default_factory=dict)
    """Empty where a store is read: nobody is there who has a status."""
    read_at: float = 0.0
    """When it was read, seconds of a monotonic clock."""

    @property
    def functions(self) -> list[Entry]:
        """The entries of all functions."""
        return functions_of(self.specification)

    @property
    def host(self) -> str:
        """The name of the host."""
        return str(self.violations.get("host") or (self.specification.get("host") or {}).get("hostname") or "")

    @property
    def at(self) -> datetime | None:
        """The moment that the documents describe, UTC."""
        told = self.violations.get("at") or (self.specification.get("collection") or {}).get("at")
        return datetime.fromisoformat(str(told)).astimezone(UTC) if told else None


class Source(Protocol):
    """Where documents come from."""

    @property
    def store(self) -> Path | None:
        """The store that is read; None for a daemon."""
        ...

    def read(self) -> Documents:
        """Return the documents of now.

        Raises
        ------
        SpecmineError
            If they cannot be read.
        """
        ...

    def trend(self, keys: Sequence[str], hours: float) -> Mapping[str, Any]:
        """Return ``specmine.trend/1`` of a function with these keys.

        Raises
        ------
        SpecmineError
            If there is none.
        """
        ...

    def trends(self, keys: Sequence[str], hours: float) -> Mapping[str, Any]:
        """Return ``specmine.trends/1`` of functions, at most ``MOST_TRENDS``.

        Raises
        ------
        SpecmineError
            If there are none.
        """
        ...


class DaemonSource:
    """Asks a running daemon over its socket."""

    store: Path | None = None

    def __init__(self, socket: str | Path) -> None:
        """Remember the path of the daemon's socket."""
        self._socket = str(socket)

    def read(self) -> Documents:
        """Ask for everything on one connection."""
        with DaemonConnection(self._socket, timeout_s=PATIENCE_S, loads=loads) as daemon:
            return Documents(
                specification=daemon.ask({"command": "specification", "detail": True}),
                violations=daemon.ask({"command": "violations"}),
                status={"schema": "specmine.status/1", **daemon.ask({"command": "status"})},
                read_at=time.monotonic(),
            )

    def trend(self, keys: Sequence[str], hours: float) -> Mapping[str, Any]:
        """Ask the daemon, which reads its store."""
        with DaemonConnection(self._socket, timeout_s=PATIENCE_S) as daemon:
            return daemon.ask({"command": "trend", "functions": list(keys)[:MOST_BUILDS], "hours": hours})

    def trends(self, keys: Sequence[str], hours: float) -> Mapping[str, Any]:
        """Ask the daemon, which reads its store."""
        with DaemonConnection(self._socket, timeout_s=PATIENCE_S) as daemon:
            return daemon.ask({"command": "trends", "functions": list(keys)[:MOST_TRENDS], "hours": hours})


class StoreSource:
    """Reads a store, or a file with a specification."""

    def __init__(self, store: Path) -> None:
        """Remember the path."""
        self.store = store
        self._known: tuple[object, Documents] | None = None

    def read(self) -> Documents:
        """Read the specification and the violations, if something was written meanwhile.

        Before the first specification there are no functions.
        """
        content = content_of(self.store)
        if self._known is None or self._known[0] != content:
            self._known = content, self._read()
        return replace(self._known[1], read_at=time.monotonic())

    def _read(self) -> Documents:
        try:
            specification: Mapping[str, Any] = document_in(self.store)
        except NoData:
            specification = {"functions": []}
        return Documents(specification=specification, violations=violations_in(self.store))

    def trend(self, keys: Sequence[str], hours: float) -> Mapping[str, Any]:
        """Read the windows; the time ends with the newest window of the function, however old the store is."""
        assert self.store is not None
        if not is_store(self.store):
            raise NoData("a specification in a file holds no windows")
        with read_store(self.store) as opened:
            known = self._known[1].specification if self._known else opened.document("specification")
            stated = stated_formulas(known, keys)
            return trend_of(opened, keys, None, int(hours * 3_600e9), stated)

    def trends(self, keys: Sequence[str], hours: float) -> Mapping[str, Any]:
        """Read the windows of many functions."""
        assert self.store is not None
        if not is_store(self.store):
            raise NoData("a specification in a file holds no windows")
        with read_store(self.store) as opened:
            return trends_of(opened, keys, None, int(hours * 3_600e9))


def content_of(store: Path) -> object:
    """Return what tells one content of a store from another: times and sizes of its files."""
    parts = [store, store.with_name(f"{store.name}-wal")]
    return tuple((each.stat().st_mtime_ns, each.stat().st_size) for each in parts if each.exists())


class Latest:
    """The newest documents of a source. Nothing is read while nobody asks; one reading serves all that ask."""

    def __init__(self, source: Source, *, now_s: Callable[[], float] = time.monotonic) -> None:
        """Begin without any."""
        self.source = source
        self._now_s = now_s
        self._lock = threading.Lock()
        self._known: Documents | None = None
        self._fresh_s = FRESH_S
        self._reading: Future[Documents] | None = None

    def documents(self) -> Documents:
        """Return documents that are at most ``STALE_S`` old; such of more than some seconds are renewed meanwhile.

        Raises
        ------
        SpecmineError
            If they cannot be read, and those known are too old.
        """
        with self._lock:
            known = self._known
            age = self._now_s() - known.read_at if known is not None else STALE_S
            if age >= self._fresh_s and self._reading is None:
                self._reading = Future()
                threading.Thread(target=self._read, args=(self._reading,), name="documents", daemon=True).start()
            reading = self._reading
        if known is not None and age < STALE_S:
            return known
        assert reading is not None
        return reading.result()

    def _read(self, reading: Future[Documents]) -> None:
        began_s = self._now_s()
        try:
            documents = self.source.read()
        except Exception as error:
            with self._lock:
                self._reading = None
            reading.set_exception(error)
            return
        with self._lock:
            self._known, self._reading = documents, None
            self._fresh_s = min(STALE_S / 2, max(FRESH_S, (self._now_s() - began_s) / READING_SHARE))
        reading.set_result(documents)
