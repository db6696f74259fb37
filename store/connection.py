"""The way to an open file: checked, made, migrated, or set aside because it is damaged."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from specmine.model.errors import InputError

from .schema import APPLICATION_ID, TABLES, VERSION

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


def opened(path: Path, migrations: Mapping[int, str], version: int) -> sqlite3.Connection:
    """Open a store to write to it: checked, made if missing, migrated if old. Raises StoreError."""
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


def opened_read_only(path: Path, version: int) -> sqlite3.Connection:
    """Open a store and change nothing. Raises StoreError."""
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
                remedy="start specmined on it once, or `specmine label` a build in it, to migrate it",
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
