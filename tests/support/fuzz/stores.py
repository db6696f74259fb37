"""Damaged stores: bytes anywhere, and tables that hold what no specmine writes."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from tests.support.fuzz.attempt import FINE, TOO_LITTLE, VIOLATED, WRONG, Attempt
from tests.support.fuzz.mutation import EVIL, damaged_bytes, damaged_json_text
from tests.support.lives import Life, config_text

_BOMB = zlib.compress(b"\0" * (256 << 20))
"""A quarter of a megabyte that inflates to 256 MB."""
_SCHEMA = (
    "CREATE VIEW endless AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n",
    "CREATE TRIGGER gone AFTER INSERT ON documents BEGIN DELETE FROM meta; END",
    "ALTER TABLE {table} RENAME TO other",
    "ALTER TABLE {table} RENAME COLUMN {column} TO other",
    "ALTER TABLE {table} ADD COLUMN more BLOB",
    "DROP TABLE {table}",
    "UPDATE meta SET value = '{number}'",
    "PRAGMA application_id = {number}",
    "PRAGMA user_version = {number}",
    "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage = {number} WHERE name = '{table}'",
    "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'CREATE TABLE {table}(x)' WHERE name = '{table}'",
)


def attempts(folder: Path, chance: random.Random) -> Iterator[Attempt]:
    """Damage a store that a daemon made, and read it by some command."""
    (folder / "life").mkdir()
    life = Life(folder / "life", config=config_text(folder / "life", f"kill_switch: {folder}/off"))
    life.run(45)
    whole, file = Path(life.config.store.path), folder / "damaged.db"
    while True:
        for each in folder.glob("damaged.db*"):
            each.unlink()
        if chance.random() < 0.4:
            file.write_bytes(damaged_bytes(whole.read_bytes(), chance))
        else:
            shutil.copy(whole, file)
            _damage_tables(file, chance)
        yield from (_reading(file, folder, chance) for _ in range(2))


def _reading(file: Path, folder: Path, chance: random.Random) -> Attempt:
    store, codes = ("--store", str(file)), (FINE, VIOLATED, WRONG, TOO_LITTLE)
    form = ("--format", chance.choice(("text", "json")))
    words = chance.choice(
        [
            ("status", *store, *form),
            ("functions", "--all", *store, *form),
            ("show", "z", *store, *form),
            ("assertions", *store, *form),
            ("violations", "--all", *store, *form),
            ("export", "--format", "json", *store),
            ("export", "--format", "csv", *store),
            ("report", str(file), "--format", "json"),
            ("report", str(file)),
            ("merge", str(file), str(file), "--output", str(folder / "merged.db")),
            ("merge", str(file), *form),
            ("check", "--against", str(file), "--formula", "p99(z) < 1 ms", *form),
            ("compare", "--store", str(file), "here", "there", *form),
        ]
    )
    return Attempt(arguments=words, codes=codes, untouched=file)


def _damage_tables(file: Path, chance: random.Random) -> None:
    """Change some values, rows or definitions by SQL."""
    # once tables are damaged, there may be nothing left to choose from
    with closing(sqlite3.connect(file, isolation_level=None)) as db, suppress(sqlite3.Error, IndexError, TypeError):
        names = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name != 'meta' ORDER BY name"
        filled = [name for (name,) in db.execute(names) if db.execute(f"SELECT 1 FROM {name}").fetchone()]
        for _ in range(chance.choice((1, 1, 3, 10))):
            table = chance.choice(filled)
            columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            column = chance.choice(columns)
            if chance.random() < 0.15:
                number = chance.choice((-1, 0, 1, 2, 10**9, 2**31 - 1))
                db.executescript(chance.choice(_SCHEMA).format(table=table, column=column, number=number))
            elif chance.random() < 0.05:
                others = ", ".join(each if each not in ("id", "key") else f"{each} || n.x" for each in columns)
                numbers = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 20000)"
                db.execute(f"INSERT OR IGNORE INTO {table} {numbers} SELECT {others} FROM {table}, n LIMIT 20000")
            else:
                _replace(db, table, column, chance)


def _replace(db: sqlite3.Connection, table: str, column: str, chance: random.Random) -> None:
    """Replace a value in a row or in all, by a wrong one or by a damaged form of itself."""
    before = db.execute(f"SELECT {column} FROM {table} ORDER BY random() LIMIT 1").fetchone()[0]
    where = "" if chance.random() < 0.5 else f" WHERE {column} IS :before"
    db.execute(
        f"UPDATE OR IGNORE {table} SET {column} = :after{where}", {"before": before, "after": _wrong(before, chance)}
    )


def _wrong(before: Any, chance: random.Random) -> Any:
    if isinstance(before, bytes):
        inside = before
        with suppress(zlib.error):  # of one that was damaged before
            inside = zlib.decompress(before)
        return chance.choice(
            (b"", b"\0" * (8 << 20), _BOMB, damaged_bytes(before, chance), zlib.compress(damaged_bytes(inside, chance)))
        )
    if isinstance(before, str) and before[:1] in ("{", "[") and chance.random() < 0.8:
        return damaged_json_text(before, chance)
    value = chance.choice(EVIL)
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode() if chance.random() < 0.7 else b"\xff\xfe"
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return float(value)
    return value if isinstance(value, int | float) or value is None else json.dumps(value)
