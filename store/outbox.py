"""What waits to be sent elsewhere: numbered without gaps, until it is acknowledged; in a file of its own.

What was taken from where is written in the same transaction as what waits. So after a SIGKILL nothing is missing and
nothing is there twice.
"""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from .errors import StoreCorrupt, StoreError
from .sqlite_file import damaged, move_aside, transaction

_SCHEMA = """
CREATE TABLE IF NOT EXISTS waiting(number INTEGER PRIMARY KEY, payload BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS state(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sent(what TEXT, key TEXT, digest BLOB NOT NULL, PRIMARY KEY(what, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS watermark(function TEXT, lifetime TEXT, kind TEXT, end_ns INTEGER NOT NULL,
    PRIMARY KEY(function, lifetime, kind)) WITHOUT ROWID;
"""


class OutboxCorrupt(StoreCorrupt):
    """The file of what waits is damaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Something that waits to be sent."""

    number: int
    payload: bytes


class Outbox:
    """One open file of what waits."""

    def __init__(self, path: Path) -> None:
        """Open it, and make it if it is not there. Raises StoreError, OutboxCorrupt if it is damaged."""
        self.path = path
        with ExitStack() as unless_opened:
            try:
                self._db = sqlite3.connect(path, isolation_level=None, timeout=5.0)
                unless_opened.callback(self._db.close)
                self._db.row_factory = sqlite3.Row
                self._db.execute("PRAGMA journal_mode = WAL").fetchone()
                # what is acknowledged elsewhere must not come back, nor its number be given again
                self._db.execute("PRAGMA synchronous = FULL")
                self._db.executescript(_SCHEMA)
                problem = self._db.execute("PRAGMA quick_check(1)").fetchone()[0]
            except (sqlite3.Error, UnicodeDecodeError) as error:
                if damaged(error):
                    raise OutboxCorrupt(f"{path} is damaged ({error})") from error
                remedy = "check its folder and its rights"
                raise StoreError(f"{path} cannot be opened ({error})", remedy=remedy) from error
            if problem != "ok":
                raise OutboxCorrupt(f"{path} is damaged ({problem})")
            if self._value("stream") is None:
                self.begin_stream()
            unless_opened.pop_all()

    @classmethod
    def begun_anew(cls, path: Path) -> tuple[Self, str]:
        """Set a damaged file aside; return a new one, and a phrase that names where the old one is."""
        where, made = move_aside(path), cls(path)
        with made._writing():
            made._set("replaces", "1")
        return made, where

    @property
    def replaces(self) -> bool:
        """Whether it took the place of a damaged one, so that it is not known what was taken before."""
        with self._reading():
            return self._value("replaces") == "1"

    def forget_replaced(self) -> None:
        """Note that all that was there before counts as taken."""
        with self._writing():
            self._set("replaces", "0")

    @property
    def stream(self) -> str:
        """Name of the sequence of numbers."""
        return str(self._value("stream"))

    @property
    def lost(self) -> int:
        """Things given up because too much waited."""
        with self._reading():
            return int(self._value("lost") or 0)

    @property
    def source(self) -> Mapping[str, Any]:
        """How far what waits was taken from where, as ``put`` was given it."""
        with self._reading():
            found: Mapping[str, Any] = json.loads(self._value("source") or "{}")
            return found

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self._db.close()

    def put(
        self,
        payloads: Sequence[bytes],
        *,
        source: Mapping[str, Any],
        sent: Mapping[tuple[str, str], bytes] | None = None,
        watermarks: Mapping[tuple[str, str, str], int] | None = None,
    ) -> None:
        """Let payloads wait, and write from where they were taken, all or nothing.

        Parameters
        ----------
        payloads : sequence of bytes
        source : mapping
            How far the source was read.
        sent : mapping, optional
            Type and key of records to the digest of what was taken of them.
        watermarks : mapping, optional
            Function, lifetime and kind to the end of the last window taken.
        """
        with self._writing():
            number = int(self._value("next") or 1)
            for payload in payloads:
                self._db.execute("INSERT INTO waiting(number, payload) VALUES(?, ?)", (number, payload))
                number += 1
            self._set("next", str(number))
            self._set("source", json.dumps(dict(source), sort_keys=True))
            self._db.executemany(
                "INSERT OR REPLACE INTO sent(what, key, digest) VALUES(?, ?, ?)",
                [(*key, digest) for key, digest in (sent or {}).items()],
            )
            self._db.executemany(
                "INSERT OR REPLACE INTO watermark(function, lifetime, kind, end_ns) VALUES(?, ?, ?, ?)",
                [(*key, end) for key, end in (watermarks or {}).items()],
            )

    def sent(self) -> dict[tuple[str, str], bytes]:
        """Return the digests of records that ``put`` was given."""
        with self._reading():
            return {(row["what"], row["key"]): row["digest"] for row in self._db.execute("SELECT * FROM sent")}

    def watermarks(self) -> dict[tuple[str, str, str], int]:
        """Return the watermarks that ``put`` was given."""
        with self._reading():
            rows = self._db.execute("SELECT * FROM watermark")
            return {(row["function"], row["lifetime"], row["kind"]): int(row["end_ns"]) for row in rows}

    def keep_watermarks(self, lifetimes: Sequence[str]) -> None:
        """Forget the watermarks of all other lifetimes."""
        with self._writing():
            self._db.execute(
                "DELETE FROM watermark WHERE lifetime NOT IN (SELECT value FROM json_each(?))",
                (json.dumps(list(lifetimes)),),
            )

    def first(self) -> Waiting | None:
        """Return what waits longest, and mark it as sent: its content must not change any more; None for nothing."""
        with self._reading():
            row = self._db.execute("SELECT number, payload FROM waiting ORDER BY number LIMIT 1").fetchone()
            if row is None:
                return None
            attempted = int(self._value("attempted") or 0)
        if attempted < row["number"]:
            with self._writing():
                self._set("attempted", str(row["number"]))
        return Waiting(number=row["number"], payload=row["payload"])

    def acknowledge(self, number: int) -> None:
        """Forget what waited, up to a number."""
        with self._writing():
            self._db.execute("DELETE FROM waiting WHERE number <= ?", (number,))

    def begin_stream(self) -> None:
        """Number what waits anew from 1, under a new name: the receiver knows the old numbers by other contents."""
        with self._writing():
            rows = self._db.execute("SELECT payload FROM waiting ORDER BY number").fetchall()
            self._db.execute("DELETE FROM waiting")
            self._db.executemany(
                "INSERT INTO waiting(number, payload) VALUES(?, ?)",
                [(number, row["payload"]) for number, row in enumerate(rows, start=1)],
            )
            for key, value in (("stream", str(uuid.uuid4())), ("next", str(len(rows) + 1)), ("attempted", "0")):
                self._set(key, value)

    @property
    def waiting(self) -> tuple[int, int]:
        """How many wait, and their bytes."""
        with self._reading():
            row = self._db.execute("SELECT count(*), coalesce(sum(length(payload)), 0) FROM waiting").fetchone()
            return int(row[0]), int(row[1])

    def bound(self, most_bytes: int, instead: bytes) -> int:
        """Replace the oldest that were never sent by ``instead`` until all fit; return how many were lost."""
        lost = 0
        with self._writing():
            excess = self.waiting[1] - most_bytes
            rows = self._db.execute(
                "SELECT number, length(payload) AS size FROM waiting WHERE number > ? AND payload <> ? ORDER BY number",
                (int(self._value("attempted") or 0), instead),
            ).fetchall()
            for row in rows:
                if excess <= 0:
                    break
                self._db.execute("UPDATE waiting SET payload = ? WHERE number = ?", (instead, row["number"]))
                excess -= row["size"] - len(instead)
                lost += 1
            self._set("lost", str(self.lost + lost))
        return lost

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, ValueError, TypeError) as error:
            raise OutboxCorrupt(f"{self.path} cannot be read ({error})") from error

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            with transaction(self._db, str(self.path)):
                yield
        except StoreCorrupt as error:
            raise OutboxCorrupt(error.message) from error
        except (ValueError, TypeError) as error:  # what should be a number is none
            raise OutboxCorrupt(f"{self.path} cannot be read ({error})") from error

    def _value(self, key: str) -> str | None:
        row = self._db.execute("SELECT value FROM state WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row["value"])

    def _set(self, key: str, value: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO state(key, value) VALUES(?, ?)", (key, value))
