"""The store in one SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self, TypeVar
from urllib.parse import quote

from . import retention, statements
from .errors import StoreCorrupt
from .increments import Increment, Mark, increment
from .lock import FileLock
from .protocol import Store
from .schema import SCHEMA, Schema
from .sqlite_file import check_store, move_aside, opened, opened_read_only, transaction
from .writes import Writes, write

T = TypeVar("T")


def lock_path(path: Path) -> Path:
    """Return the file whose lock the writer of a store holds."""
    return Path(f"{path}.lock")


def store_lock(path: Path) -> FileLock:
    """Lock a store against other writers. Raises LockTaken if there is one."""
    return FileLock(lock_path(path), what=f"the store {path}", remedy="stop it, or name another store")


class SqliteStore(Store):
    """One SQLite file; ``open_store`` opens it."""

    def __init__(self, path: Path, db: sqlite3.Connection, lock: FileLock | None, schema: Schema) -> None:
        """Take over an open connection; use ``open``."""
        self.path = path
        self._db = db
        self._lock = lock
        self._schema = schema

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        read_only: bool = False,
        set_aside: Callable[[str], None] | None = None,
        check: bool = True,
        schema: Schema = SCHEMA,
    ) -> Self:
        """Open a store, and create it if it is not there.

        Parameters
        ----------
        path : path
            The file.
        read_only : bool
            Change nothing and take no lock; the store must be there.
        set_aside : callable, optional
            A damaged store is moved to ``<path>.corrupt-<n>``, one line about it is passed to this function, and a
            new store is begun. Without it a damaged store is an error.
        check : bool
            Look for damage in the whole file; without this damage is an error of who reads it.
        schema : Schema
            An older store is migrated to it.

        Raises
        ------
        StoreError
            If the store cannot be opened, belongs to something else, or is newer than this program.
        LockTaken
            If another process writes to it.
        """
        path = Path(path)
        if read_only:
            return cls(path, opened_read_only(path, schema), None, schema)
        if set_aside is None and not lock_path(path).exists():
            check_store(path)  # no lock is made beside what is no store
        lock = store_lock(path)
        try:
            try:
                db = opened(path, schema, check=check)
            except StoreCorrupt as error:
                if set_aside is None:
                    raise
                set_aside(f"{error.message}; {move_aside(path)}, beginning a new one")
                db = opened(path, schema)
        except BaseException:
            lock.release()
            raise
        return cls(path, db, lock, schema)

    def write(self, writes: Writes, utc_ns: int) -> None:
        """Write records, all or none of them."""
        with transaction(self._db, f"the store {self.path}"):
            write(self._db, self._schema, writes, utc_ns)

    def read(self, record: type[T], *, newest: int | None = None, **equal: object) -> tuple[T, ...]:
        """Return the records of a type, in the order of their table."""
        with self._reading():
            return statements.read(self._db, self._schema.table(record), newest=newest, **equal)

    def increment(self, mark: Mark, *, most: int = 20_000) -> Increment:
        """Return what came after a mark, at most so many windows. Raises StoreCorrupt."""
        with self._reading():
            return increment(self._db, mark, most)

    def absorb(self, other: str | Path) -> None:
        """Copy all rows of another store that are not here yet; nothing passes through memory."""
        path = Path(other)
        opened_read_only(path, self._schema).close()
        with self._reading():
            self._db.execute("ATTACH ? AS other", (f"file:{quote(str(path.absolute()))}?mode=ro",))
            try:
                with transaction(self._db, f"the store {self.path}"):
                    for table in self._schema.tables:
                        if table.merged:
                            self._db.execute(statements.copy(table, "other", "main"))
            finally:
                self._db.execute("DETACH other")

    def thin(self, limits: retention.Retention, now_utc_ns: int) -> tuple[int, int]:
        """Merge old observations, delete the oldest of what does not fit; return how many each took."""
        with transaction(self._db, f"the store {self.path}"):
            merged = retention.merge_old(self._db, limits, now_utc_ns)
            deleted = retention.delete_oldest(self._db, self._schema.tables, limits, self._used_bytes, now_utc_ns)
        if merged or deleted:
            # execute() would stop after the first page
            self._db.executescript("PRAGMA incremental_vacuum")
        return merged, deleted

    def begin_anew(self, why: str) -> str:
        """Set this file aside as damaged and go on with a new one; return one line about it."""
        self._db.close()
        where = move_aside(self.path) if self.path.exists() else "gone"
        self._db = opened(self.path, self._schema)
        return f"{why}; {where}, beginning a new one"

    def close(self) -> None:
        """Close the file and give the lock back."""
        self._db.close()
        if self._lock is not None:
            self._lock.release()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.DatabaseError, ValueError, LookupError, TypeError, ArithmeticError, RecursionError) as error:
            raise StoreCorrupt(f"the store {self.path} cannot be read: {error}") from error

    def _used_bytes(self) -> int:
        """Return the bytes of the pages in use."""
        names = ("page_count", "freelist_count", "page_size")
        pages, free, size = (int(self._db.execute(f"PRAGMA {name}").fetchone()[0]) for name in names)
        return (pages - free) * size
