"""A table of the store as a value: its columns, and how a record becomes a row and back. Knows no database engine."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from .histogram_reader import HistogramReader, Later

T = TypeVar("T")
JsonObject = Mapping[str, Any]
Row = Mapping[str, Any]


class Rows(Protocol):
    """The result of a statement."""

    @property
    def rowcount(self) -> int:
        """Number of rows that the statement changed."""
        ...

    def fetchone(self) -> Any:
        """Return the next row, None after the last."""
        ...

    def __iter__(self) -> Iterator[Any]:
        """Iterate over the rows; each gives its values by the names of columns."""
        ...


class Database(Protocol):
    """An open connection, as the statements of this folder need it."""

    def execute(self, sql: str, parameters: Any = ..., /) -> Rows:
        """Execute a statement; its parameters are called ``:name``."""
        ...

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> object:
        """Execute a statement once for each of several sets of parameters."""
        ...


def canonical(value: object) -> str:
    """Write a JSON value in the one way in which equal values are equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _parsed(text: str, kind: type) -> Any:
    """Read a JSON value of a kind; ValueError if it is of another, as in a damaged store."""
    value = json.loads(text)
    if not isinstance(value, kind):
        raise ValueError(f"{text[:20]!r} is no JSON {'object' if kind is dict else 'array'}")
    return value


@dataclass(frozen=True, slots=True)
class Form:
    """How a value is stored."""

    type: str
    """text, integer, real or bytes; each engine has its own name for it."""
    pack: Callable[[Any], Any] = lambda value: value
    unpack: Callable[[Any], Any] = lambda value: value
    read: Callable[[Any, HistogramReader], Later[Any]] | None = None
    """Instead of ``unpack``: reads a value that holds histograms together with those of other rows."""


_HELD: Mapping[str, tuple[type, ...]] = {"text": (str,), "integer": (int,), "real": (float, int), "bytes": (bytes,)}
"""What a driver returns for a column of each type."""
_AT_ONCE, _AT_ONCE_BYTES = 500, 2 << 20
"""Rows whose histograms are made together, and bytes of these: more would not be faster, and takes memory."""
_LARGEST_BYTES = 4 << 20
"""Of a value that is read; those of one window's call paths, compressed, are far fewer."""
TEXT = Form("text")
INTEGER = Form("integer")
REAL = Form("real")
BYTES = Form("bytes")
FLAG = Form("integer", int, bool)
OBJECT = Form("text", lambda value: canonical(dict(value)), lambda text: _parsed(text, dict))
LIST = Form("text", lambda value: canonical(list(value)), lambda text: tuple(_parsed(text, list)))


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteContext:
    """What the columns of a row may need besides their record."""

    utc_ns: int
    """Now."""
    offsets: Mapping[str, int]
    """Boot id to what must be added to its monotonic clock to get UTC, ns."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column. By default it holds the field of the record that has its name."""

    name: str
    form: Form = TEXT
    field: str = ""
    """Name of the field, where it is not that of the column."""
    since: int = 1
    """Version of the schema that brought it."""
    default: object = None
    """Value in rows that are older than the column; None: null, where that is allowed."""
    null: bool = False
    computed: Callable[[Any, WriteContext], object] | None = None
    """Value of a column that no field holds. It is not read back."""
    update: str = ""
    """Value where the row exists already, as SQL; by default the new one."""

    def stored(self, record: object, context: WriteContext) -> object:
        """Return what to store of a record."""
        if self.computed is not None:
            return self.computed(record, context)
        return self.form.pack(getattr(record, self.field or self.name))

    def loaded(self, value: object, reader: HistogramReader) -> Any:
        """Return the value of the field, ``Later`` if its form has ``read``.

        Raises
        ------
        ValueError
            If the file holds one of another type, which SQLite allows.
        """
        if not isinstance(value, _HELD[self.form.type]) and not (value is None and self.null):
            raise ValueError(f"{self.name} is no {self.form.type}")
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{self.name} is {value}")
        if isinstance(value, bytes) and len(value) > _LARGEST_BYTES:
            raise ValueError(f"{self.name} has {len(value)} bytes")
        return self.form.unpack(value) if self.form.read is None else self.form.read(value, reader)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table(Generic[T]):
    """One table: a row for each record of a type."""

    name: str
    record: type[T]
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    """Primary key: a later record replaces the one of its key. Without key rows are numbered, and added at the end."""
    order: tuple[str, ...]
    """In which rows are read."""
    indexes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    since: int = 1
    """Version of the schema that brought it."""
    takes: tuple[type, ...] = ()
    """Types of records that lead to rows; by default ``record``."""
    convert: Callable[[Any], T] | None = None
    """Makes the record out of what ``takes`` names."""
    put: Callable[[Database, Sequence[Any], WriteContext], None] | None = None
    """Writes records, where inserting and replacing rows is not enough."""
    update_if: str = ""
    """Condition under which a record replaces the one of its key, as SQL."""
    unless_last: tuple[str, ...] = ()
    """Columns: a record is left out if the newest row that agrees in all but the last of them agrees in that too."""
    same: tuple[str, ...] = ()
    """Columns whose equality means that two stores have the same row; by default the key."""
    merged: bool = True
    """Whether a merge of stores copies its rows."""
    age: str = ""
    """Column by which rows are old or new."""
    newest_of: tuple[str, ...] = ()
    """Columns: the newest rows of each of their values are asked for, not the newest of all."""
    most: int | None = None
    """Rows that are stored at most: the oldest are deleted."""
    unless: str = ""
    """Condition on rows that are never deleted for their age, as SQL."""

    def identity(self, record: T) -> tuple[Any, ...] | None:
        """Return the values of a record's key, None if its row is added at the end."""
        return tuple(getattr(record, name) for name in self.key) if self.key else None

    def row(self, record: Any, context: WriteContext) -> dict[str, object]:
        """Return the row of a record, by the names of columns."""
        record = record if self.convert is None else self.convert(record)
        return {column.name: column.stored(record, context) for column in self.columns}

    def record_of(self, row: Row) -> T:
        """Return the record of a row; ValueError if it is damaged."""
        (record,) = self.records_of([row])
        return record

    def records_of(self, rows: Iterable[Row]) -> Iterator[T]:
        """Yield the records of rows; ValueError if one is damaged."""
        read = [(column.field or column.name, column) for column in self.columns if column.computed is None]
        reader, fields = HistogramReader(), list[dict[str, Any]]()
        for row in rows:
            fields.append({name: column.loaded(row[column.name], reader) for name, column in read})
            if len(fields) == _AT_ONCE or reader.size > _AT_ONCE_BYTES:
                yield from self._made(fields, reader)
                reader, fields = HistogramReader(), []
        yield from self._made(fields, reader)

    def _made(self, fields: Iterable[dict[str, Any]], reader: HistogramReader) -> Iterator[T]:
        later = [column.field or column.name for column in self.columns if column.form.read is not None]
        held = reader.histograms() if later else []
        for values in fields:
            yield self.record(**values | {name: values[name](held) for name in later})
