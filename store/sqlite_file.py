"""SQLite: how a file is opened, checked, created, migrated, or set aside because it is damaged."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from .errors import StoreCorrupt, StoreError
from .schema import Schema
from .table import Column, Table

APPLICATION_ID = 0x73706D6E  # "spmn", at a fixed place of the file's header
_TYPES = {"text": "TEXT", "integer": "INTEGER", "real": "REAL", "bytes": "BLOB"}
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""What a damaged file leads to; the second if SQLite's message quotes a damaged name."""
_SETTINGS = (
    "synchronous = NORMAL",
    "cache_size = -2048",
    "journal_size_limit = 4194304",
    "trusted_schema = OFF",
    "cell_size_check = ON",
)
_LONGEST = 64 << 20
"""Bytes of one text or blob: a store that another made may hold any."""
_FILES = ("", "-wal", "-shm")
_MAGIC = b"SQLite format 3\0"
_RESTORE = "restore a copy of it, or name another store"


def damaged(error: BaseException) -> bool:
    """Whether an error of SQLite means that the file is corrupt."""
    return isinstance(error, UnicodeDecodeError) or getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE


def move_aside(path: Path) -> str:
    """Rename a damaged store to the first free ``<path>.corrupt-<n>``; return a phrase that names it."""
    number = 1
    while any(Path(f"{path}.corrupt-{number}{end}").exists() for end in _FILES):
        number += 1
    for end in _FILES:
        part = Path(f"{path}{end}")
        if part.exists():
            part.rename(f"{path}.corrupt-{number}{end}")
    return f"set aside as {path}.corrupt-{number}"


@contextmanager
def transaction(db: sqlite3.Connection, what: str) -> Iterator[None]:
    """Make all changes inside one, or none of them. Raises StoreError, which says ``what`` cannot be written."""
    try:
        db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if db.in_transaction:  # SQLite may have rolled back by itself
                db.execute("ROLLBACK")
            raise
        db.execute("COMMIT")
    except _ERRORS as error:
        if damaged(error):
            raise StoreCorrupt(f"{what} is damaged ({error})", remedy=_RESTORE) from error
        raise StoreError(f"{what} cannot be written ({error})") from error


def opened(path: Path, schema: Schema, *, check: bool = True) -> sqlite3.Connection:
    """Open a store to write to it: checked, created if missing, migrated if old. Raises StoreError.

    The check reads the whole file; who opens it again and again asks for it once.
    """
    if path.exists() and not path.is_file():
        raise StoreError(f"the store {path} is not a file")
    db = _connected(path, "rwc")
    try:
        _set_up(db)
        problem = db.execute("PRAGMA quick_check(1)").fetchone()[0] if check else "ok"
        if problem != "ok":
            raise StoreCorrupt(f"the store {path} is damaged ({problem})", remedy=_RESTORE)
        found = _version(db, path)
        if found is None:
            _create(db, schema)
        else:
            _check_version(found, schema, path)
            _migrate(db, path, found, schema)
        db.execute("PRAGMA journal_mode = WAL").fetchone()
    except (*_ERRORS, StoreError) as error:
        db.close()
        raise _translated(error, path) from error
    return db


def check_store(path: Path) -> None:
    """Raise StoreError if a file is something else than a store; nothing is made beside it.

    What does not exist, is empty, or was left in the middle of a change may become a store.
    """
    if not path.is_file() or Path(f"{path}-journal").exists():
        return
    db = _read_only(path)
    try:
        _set_up(db)
        _version(db, path)
    except (*_ERRORS, StoreError) as error:
        raise _translated(error, path) from error
    finally:
        db.close()


def remove_log(path: Path) -> None:
    """Remove what SQLite keeps beside a store whose file is about to be replaced: it belongs to the old one."""
    for end in _FILES[1:]:
        Path(f"{path}{end}").unlink(missing_ok=True)


def _read_only(path: Path) -> sqlite3.Connection:
    # Without a log nobody writes, and SQLite need not make files there, which a reader may lack the right to
    unwritten = not Path(f"{path}-wal").exists()
    return _connected(path, "ro&immutable=1" if unwritten else "ro")


def opened_read_only(path: Path, schema: Schema) -> sqlite3.Connection:
    """Open a store and change nothing. Raises StoreError."""
    if not path.is_file():
        raise StoreError(f"there is no store {path}")
    db = _read_only(path)
    try:
        _set_up(db)
        found = _version(db, path)
        if found is None:
            raise StoreCorrupt(f"{path} is not a store of specmine", remedy="name another file")
        _check_version(found, schema, path)
        if found < schema.version:
            raise StoreError(
                f"the store {path} has the older schema {found}",
                remedy="start specmined on it once, or `specmine label` a build in it, to migrate it",
            )
    except (*_ERRORS, StoreError) as error:
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
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
    for setting in _SETTINGS:
        db.execute(f"PRAGMA {setting}").fetchall()


def _version(db: sqlite3.Connection, path: Path) -> int | None:
    """Return the schema's version, None for an empty file."""
    if db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0] == 0:
        return None
    if db.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise StoreError(f"{path} is a database of another program", remedy="name another store")
    foreign = db.execute(
        "SELECT name FROM sqlite_schema WHERE type NOT IN ('table', 'index') OR rootpage = 0"
    ).fetchone()
    if foreign is not None:  # a view could be endless
        problem = f"{foreign[0]!r:.80} is neither a table nor an index"
        raise StoreCorrupt(f"the store {path} is damaged ({problem})", remedy=_RESTORE)
    row = db.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone()
    if row is None or not row[0].isdigit():
        raise StoreCorrupt(f"the store {path} is damaged (it has no schema version)", remedy=_RESTORE)
    return int(row[0])


def _check_version(found: int, schema: Schema, path: Path) -> None:
    if found > schema.version:
        raise StoreError(
            f"the store {path} has schema {found}, this specmine knows {schema.version}",
            remedy="upgrade specmine, or name another store",
        )


def _create(db: sqlite3.Connection, schema: Schema) -> None:
    db.execute("PRAGMA auto_vacuum = INCREMENTAL")
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute("BEGIN IMMEDIATE")
    db.execute("CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID")
    db.execute("INSERT INTO meta(key, value) VALUES('schema_version', :version)", {"version": str(schema.version)})
    for table in schema.tables:
        _create_table(db, table)
    db.execute("COMMIT")


def _migrate(db: sqlite3.Connection, path: Path, found: int, schema: Schema) -> None:
    if found == schema.version:
        return
    _back_up(db, Path(f"{path}.schema-{found}"))
    db.execute("BEGIN IMMEDIATE")
    for table in schema.new_tables(found):
        _create_table(db, table)
    for table, column in schema.new_columns(found):
        db.execute(f"ALTER TABLE {table.name} ADD COLUMN {_definition(column)}")
    for migration in schema.pending(found):
        migration.apply(db)
    db.execute("UPDATE meta SET value = :version WHERE key = 'schema_version'", {"version": str(schema.version)})
    db.execute("COMMIT")


def _create_table(db: sqlite3.Connection, table: Table[Any]) -> None:
    definitions = [_definition(column) for column in table.columns]
    if table.key:
        definitions.append(f"PRIMARY KEY({', '.join(table.key)})")
    else:
        definitions.insert(0, "id INTEGER PRIMARY KEY")
    db.execute(f"CREATE TABLE {table.name}({', '.join(definitions)}){' WITHOUT ROWID' if table.key else ''}")
    for name, columns in table.indexes.items():
        db.execute(f"CREATE INDEX {name} ON {table.name}({', '.join(columns)})")


def _definition(column: Column) -> str:
    null = "" if column.null else " NOT NULL"
    default = "" if column.default is None else f" DEFAULT {column.default!r}"
    return f"{column.name} {_TYPES[column.form.type]}{null}{default}"


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
    if _is_foreign(path):
        return StoreCorrupt(f"{path} is not a store of specmine", remedy="name another file")
    if damaged(error):
        return StoreCorrupt(f"the store {path} is damaged ({error})", remedy=_RESTORE)
    if isinstance(error, sqlite3.OperationalError):
        return StoreError(
            f"the store {path} cannot be opened ({error})",
            remedy="check its folder, its rights and the free space",
        )
    return StoreCorrupt(f"the store {path} is damaged ({error})", remedy=_RESTORE)


def _is_foreign(path: Path) -> bool:
    """Tell whether a file does not even begin as a database does."""
    try:
        with path.open("rb") as file:
            head = file.read(len(_MAGIC))
    except OSError:
        return False
    return head not in (b"", _MAGIC)
