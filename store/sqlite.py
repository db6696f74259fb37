"""One store: what can be put into it and read from it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from specmine.model.batch import CallSamples, Lifetime
from specmine.model.function import Function
from specmine.model.observation import Observation

from . import call_samples, host_environments, lifetime_summaries, profiles, retention, tables
from .connection import StoreCorrupt, move_aside, opened, opened_read_only
from .lock import FileLock
from .records import Build, Contents, Host, JsonObject, Verdict
from .schema import MIGRATIONS, VERSION
from .sync import absorb


class Store:
    """One store. Writing may raise ``sqlite3.Error``; ``damaged`` tells whether the file is corrupt.

    It may pass from thread to thread, but not be used by two at once.
    """

    def __init__(self, path: Path, db: sqlite3.Connection, lock: FileLock | None) -> None:
        """Take over an open connection; use ``open``."""
        self.path = path
        self._db = db
        self._lock = lock

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        read_only: bool = False,
        set_aside: Callable[[str], None] | None = None,
        migrations: Mapping[int, str] = MIGRATIONS,
        version: int = VERSION,
    ) -> Self:
        """Open a store, and make it if it is not there.

        Parameters
        ----------
        path : path
            The file.
        read_only : bool
            Change nothing and take no lock; the store must be there.
        set_aside : callable, optional
            A damaged store is moved to ``<path>.corrupt-<n>``, this is told so in one line, and a new one is
            begun. Without it a damaged store is an error.
        migrations, version : optional
            The schema to arrive at.

        Raises
        ------
        StoreError
            If the store cannot be opened, belongs to something else, or is newer than this program.
        LockTaken
            If another process writes to it.
        """
        path = Path(path)
        if read_only:
            return cls(path, opened_read_only(path, version), None)
        lock = FileLock(f"{path}.lock", what=f"the store {path}", remedy="stop it, or name another store")
        try:
            try:
                db = opened(path, migrations, version)
            except StoreCorrupt as error:
                if set_aside is None:
                    raise
                set_aside(f"{error.message}; {move_aside(path)}, beginning a new one")
                db = opened(path, migrations, version)
        except BaseException:
            lock.release()
            raise
        return cls(path, db, lock)

    def begin_anew(self, why: str) -> str:
        """Set this file aside as damaged and go on with a new one; return one line that says so.

        Raises
        ------
        StoreError
            If no new one can be made; it may be tried again.
        """
        self._db.close()
        where = move_aside(self.path) if self.path.exists() else "gone"
        self._db = opened(self.path, MIGRATIONS, VERSION)
        return f"the store {self.path} is damaged ({why}); {where}, beginning a new one"

    def close(self) -> None:
        """Close the file and give the lock back."""
        self._db.close()
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> Self:
        """Return the store."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make all changes inside one, or none of them."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def put_host(self, host: Host) -> None:
        """Insert or replace a boot of a host; it comes before the observations made in it."""
        tables.put_host(self._db, host)

    def put_functions(self, functions: Iterable[Function]) -> None:
        """Insert or replace descriptions of functions."""
        tables.put_functions(self._db, functions)

    def put_lifetimes(self, lifetimes: Iterable[Lifetime]) -> None:
        """Insert or replace lifetimes and their builds."""
        tables.put_lifetimes(self._db, lifetimes)

    def put_observations(self, observations: Iterable[Observation]) -> None:
        """Append observations, and add them to the summaries of their lifetimes."""
        seen = tuple(observations)
        tables.put_observations(self._db, seen)
        lifetime_summaries.add_observations(self._db, seen)

    def put_singles(self, told: Iterable[CallSamples], utc_ns: int) -> None:
        """Replace what is kept of single calls of these functions and lifetimes."""
        call_samples.put_singles(self._db, told, utc_ns)

    def put_states(self, states: Mapping[str, JsonObject], utc_ns: int) -> None:
        """Replace what the controller knows, by function key."""
        tables.put_states(self._db, states, utc_ns)

    def put_verdicts(self, verdicts: Iterable[Verdict]) -> None:
        """Append those verdicts that differ from the last about the same subject."""
        tables.put_verdicts(self._db, verdicts)

    def put_document(self, name: str, document: JsonObject, utc_ns: int) -> None:
        """Replace a whole document by its name."""
        tables.put_document(self._db, name, document, utc_ns)

    def put_surveys(
        self, vectors: Iterable[host_environments.Vector], marks: Iterable[host_environments.Marked]
    ) -> None:
        """Append what is known of hosts, and when experiments ran on them."""
        host_environments.put_vectors(self._db, vectors)
        host_environments.put_marks(self._db, marks)

    def label(self, build_id: str, name: str) -> bool:
        """Give a build a label; False if the store does not know the build."""
        return tables.label(self._db, build_id, name)

    def put_sampled(self, rows: Iterable[profiles.Sampled]) -> None:
        """Replace what sampling saw of functions."""
        profiles.put_sampled(self._db, rows)

    def absorb(self, other: str | Path) -> None:
        """Take up all rows of another store that are not here yet; its documents stay behind.

        Raises
        ------
        StoreError
            If the other one cannot be opened, or is damaged.
        """
        opened_read_only(Path(other), VERSION).close()
        with self._reading():
            absorb(self._db, Path(other))

    def load(self, *, newest: int = 20) -> Contents:
        """Read everything, of observations the newest of each function and kind.

        Raises
        ------
        StoreCorrupt
            If something in it cannot be read.
        """
        with self._reading():
            return tables.load(self._db, newest=newest)

    def builds(self) -> tuple[Build, ...]:
        """Return the builds seen, with their labels."""
        with self._reading():
            return tables.load_builds(self._db)

    def summaries(self, *, newest: int = 100_000) -> tuple[lifetime_summaries.LifetimeSummary, ...]:
        """Return the newest summaries of lifetimes, in the order of functions and of time."""
        with self._reading():
            return lifetime_summaries.load_summaries(self._db, newest)

    def sampled(self) -> tuple[profiles.Sampled, ...]:
        """Return what sampling saw, by build and function."""
        with self._reading():
            return profiles.load_sampled(self._db)

    def singles(self) -> tuple[CallSamples, ...]:
        """Return the durations of single calls, in the order of functions and lifetimes."""
        with self._reading():
            return call_samples.load_singles(self._db)

    def document(self, name: str) -> JsonObject | None:
        """Return a document as it was last put, None if it never was."""
        with self._reading():
            return tables.load_document(self._db, name)

    def verdicts(self, function: str) -> tuple[Verdict, ...]:
        """Return the history of verdicts about a function, oldest first."""
        with self._reading():
            return tables.load_verdicts(self._db, function)

    def thin(self, limits: retention.Retention, now_utc_ns: int) -> tuple[int, int]:
        """Merge what is old, drop the oldest of what does not fit; return how many observations each took."""
        with self.transaction():
            merged = retention.merge_old(self._db, limits, now_utc_ns)
            dropped = retention.drop_oldest(self._db, limits)
            lifetime_summaries.drop_oldest_summaries(self._db)
            host_environments.drop_oldest_surveys(self._db)
            call_samples.drop_oldest_singles(self._db)
        if merged or dropped:
            # execute() would stop after the first page
            self._db.executescript("PRAGMA incremental_vacuum")
        return merged, dropped

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.DatabaseError, ValueError, KeyError, TypeError) as error:
            raise StoreCorrupt(f"the store {self.path} cannot be read: {error}") from error
