"""The store's file: opened, checked, migrated, locked, and set aside when it is damaged."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Self
from urllib.parse import quote

from specmine.daemon.lock import FileLock
from specmine.mining.observation import Function, Observation
from specmine.probes.batch import Lifetime
from specmine.probes.errors import InputError

from . import records, retention
from .records import Build, Contents, Host, JsonObject, Verdict
from .schema import APPLICATION_ID, MIGRATIONS, TABLES, VERSION

_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_SETTINGS = (
    "synchronous = NORMAL",
    "cache_size = -2048",
    "journal_size_limit = 4194304",
    "trusted_schema = OFF",
    "cell_size_check = ON",
)
_FILES = ("", "-wal", "-shm")


class StoreError(InputError):
    """The store cannot be used."""


class StoreCorrupt(StoreError):
    """The file is damaged, or is no store at all."""


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
            return cls(path, _opened_read_only(path, version), None)
        lock = FileLock(f"{path}.lock", what=f"the store {path}", remedy="stop it, or name another store")
        try:
            try:
                db = _opened(path, migrations, version)
            except StoreCorrupt as error:
                if set_aside is None:
                    raise
                set_aside(f"{error.message}; {move_aside(path)}, beginning a new one")
                db = _opened(path, migrations, version)
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
        self._db = _opened(self.path, MIGRATIONS, VERSION)
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
        records.put_host(self._db, host)

    def put_functions(self, functions: Iterable[Function]) -> None:
        """Insert or replace descriptions of functions."""
        records.put_functions(self._db, functions)

    def put_lifetimes(self, lifetimes: Iterable[Lifetime]) -> None:
        """Insert or replace lifetimes and their builds."""
        records.put_lifetimes(self._db, lifetimes)

    def put_observations(self, observations: Iterable[Observation]) -> None:
        """Append observations."""
        records.put_observations(self._db, observations)

    def put_states(self, states: Mapping[str, JsonObject], utc_ns: int) -> None:
        """Replace what the controller knows, by function key."""
        records.put_states(self._db, states, utc_ns)

    def put_verdicts(self, verdicts: Iterable[Verdict]) -> None:
        """Append those verdicts that differ from the last about the same subject."""
        records.put_verdicts(self._db, verdicts)

    def put_document(self, name: str, document: JsonObject, utc_ns: int) -> None:
        """Replace a whole document by its name."""
        records.put_document(self._db, name, document, utc_ns)

    def label(self, build_id: str, name: str) -> bool:
        """Give a build a label; False if the store does not know the build."""
        return records.label(self._db, build_id, name)

    def load(self, *, newest: int = 20) -> Contents:
        """Read everything, of observations the newest of each function and kind.

        Raises
        ------
        StoreCorrupt
            If something in it cannot be read.
        """
        with self._reading():
            return records.load(self._db, newest=newest)

    def builds(self) -> tuple[Build, ...]:
        """Return the builds seen, with their labels."""
        with self._reading():
            return records.load_builds(self._db)

    def document(self, name: str) -> JsonObject | None:
        """Return a document as it was last put, None if it never was."""
        with self._reading():
            return records.load_document(self._db, name)

    def verdicts(self, function: str) -> tuple[Verdict, ...]:
        """Return the history of verdicts about a function, oldest first."""
        with self._reading():
            return records.load_verdicts(self._db, function)

    def thin(self, limits: retention.Retention, now_utc_ns: int) -> tuple[int, int]:
        """Merge what is old, drop the oldest of what does not fit; return how many observations each took."""
        with self.transaction():
            merged = retention.merge_old(self._db, limits, now_utc_ns)
            dropped = retention.drop_oldest(self._db, limits)
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


def damaged(error: BaseException) -> bool:
    """Tell whether an error of SQLite means that the file is corrupt."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE


def move_aside(path: Path) -> str:
    """Rename a damaged store to the first free ``<path>.corrupt-<n>``; return a phrase that says where to."""
    number = 1
    while any(Path(f"{path}.corrupt-{number}{end}").exists() for end in _FILES):
        number += 1
    for end in _FILES:
        part = Path(f"{path}{end}")
        if part.exists():
            part.rename(f"{path}.corrupt-{number}{end}")
    return f"set aside as {path}.corrupt-{number}"


def _opened(path: Path, migrations: Mapping[int, str], version: int) -> sqlite3.Connection:
    if path.exists() and not path.is_file():
        raise StoreError(f"the store {path} is not a file")
    db = _connected(path, "rwc")
    try:
        _set_up(db)
        problem = db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if problem != "ok":
            raise StoreCorrupt(f"the store {path} is damaged ({problem})")
        found = _version(db, path)
        if found is None:
            _create(db)
        else:
            _check_version(found, version, path)
            _migrate(db, path, found, version, migrations)
        db.execute("PRAGMA journal_mode = WAL").fetchone()
    except (sqlite3.Error, StoreError) as error:
        db.close()
        raise _translated(error, path) from error
    return db


def _opened_read_only(path: Path, version: int) -> sqlite3.Connection:
    if not path.is_file():
        raise StoreError(f"there is no store {path}")
    wal = Path(f"{path}-wal")
    # Without a log nobody writes, and SQLite need not make files there, which a reader may lack the right to
    unwritten = not wal.exists()
    db = _connected(path, "ro&immutable=1" if unwritten else "ro")
    try:
        _set_up(db)
        found = _version(db, path)
        if found is None:
            raise StoreCorrupt(f"{path} is not a store of specmine")
        _check_version(found, version, path)
        if found < version:
            raise StoreError(
                f"the store {path} has the older schema {found}",
                remedy="start specmined on it once to migrate it",
            )
    except (sqlite3.Error, StoreError) as error:
        db.close()
        raise _translated(error, path) from error
    return db


def _connected(path: Path, mode: str) -> sqlite3.Connection:
    try:
        db = sqlite3.connect(
            f"file:{quote(str(path.absolute()))}?mode={mode}",
            uri=True,
            isolation_level=None,
            timeout=2.0,
            check_same_thread=False,
            cached_statements=32,
        )
    except sqlite3.Error as error:
        raise _translated(error, path) from error
    db.row_factory = sqlite3.Row
    return db


def _set_up(db: sqlite3.Connection) -> None:
    for setting in _SETTINGS:
        db.execute(f"PRAGMA {setting}").fetchall()


def _version(db: sqlite3.Connection, path: Path) -> int | None:
    """Return the schema's version, None for an empty file."""
    if db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0:
        return None
    if db.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise StoreError(f"{path} is a database of another program", remedy="name another store")
    row = db.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone()
    if row is None or not row[0].isdigit():
        raise StoreCorrupt(f"the store {path} is damaged (it has no schema version)")
    return int(row[0])


def _check_version(found: int, version: int, path: Path) -> None:
    if found > version:
        raise StoreError(
            f"the store {path} has schema {found}, this specmine knows {version}",
            remedy="upgrade specmine, or name another store",
        )


def _create(db: sqlite3.Connection) -> None:
    db.execute("PRAGMA auto_vacuum = INCREMENTAL")
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    script = f"BEGIN IMMEDIATE; {TABLES} INSERT INTO meta VALUES('schema_version', '{VERSION}'); COMMIT;"
    db.executescript(script)


def _migrate(db: sqlite3.Connection, path: Path, found: int, version: int, migrations: Mapping[int, str]) -> None:
    if found == version:
        return
    missing = [step for step in range(found, version) if step not in migrations]
    if missing:
        raise StoreError(f"the store {path} has schema {found}, too old to be migrated", remedy="name another store")
    _back_up(db, Path(f"{path}.schema-{found}"))
    steps = " ".join(migrations[step] for step in range(found, version))
    db.executescript(
        f"BEGIN IMMEDIATE; {steps} UPDATE meta SET value = '{version}' WHERE key = 'schema_version'; COMMIT;"
    )


def _back_up(db: sqlite3.Connection, target: Path) -> None:
    """Copy the store; an earlier copy is never overwritten."""
    number, free = 1, target
    while free.exists():
        number += 1
        free = Path(f"{target}-{number}")
    copy = sqlite3.connect(free)
    try:
        db.backup(copy)
    finally:
        copy.close()


def _translated(error: Exception, path: Path) -> StoreError:
    if isinstance(error, StoreError):
        return error
    if damaged(error):
        return StoreCorrupt(f"the store {path} is damaged ({error})")
    if isinstance(error, sqlite3.OperationalError):
        return StoreError(
            f"the store {path} cannot be opened ({error})",
            remedy="check its folder, its rights and the free space",
        )
    return StoreCorrupt(f"the store {path} is damaged ({error})")
