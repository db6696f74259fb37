"""What is to be written, as one value; two of them add up."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

from .schema import SCHEMA, Record, Schema
from .statements import put
from .table import Database, WriteContext
from .tables.hosts import Host

T = TypeVar("T")
_TABLES = {table.record: table for table in SCHEMA.tables}


@dataclass(frozen=True, slots=True)
class Writes:
    """Records to be written in one transaction. A later record replaces an earlier one of the same key."""

    records: tuple[Record, ...] = ()
    """Of any kinds."""

    @classmethod
    def joined(cls, parts: Iterable[Writes]) -> Writes:
        """Return several as one, in their order."""
        newest: dict[Hashable, Record] = {}
        for number, record in enumerate(chain.from_iterable(each.records for each in parts)):
            identity = _TABLES[type(record)].identity(record)
            newest[number if identity is None else (type(record), *identity)] = record
        return cls(tuple(newest.values()))

    def __add__(self, later: Writes) -> Writes:
        """Return both as one."""
        return Writes.joined((self, later))

    def __bool__(self) -> bool:
        """Whether there is anything to write."""
        return bool(self.records)

    def of(self, *types: type[T]) -> tuple[T, ...]:
        """Return the records of some types, in their order."""
        return tuple(record for record in self.records if isinstance(record, types))

    def newest(self, most: int) -> Writes:
        """Return the newest records, at most so many of each type."""
        numbers: dict[type, int] = {}
        newest = []
        for record in reversed(self.records):
            numbers[type(record)] = numbers.get(type(record), 0) + 1
            if numbers[type(record)] <= most:
                newest.append(record)
        return Writes(tuple(reversed(newest)))


def in_table_order(records: Iterable[Record]) -> tuple[Record, ...]:
    """Return records in the order of their tables, in which one transaction writes them."""
    first: dict[type, int] = {}
    for number, table in enumerate(SCHEMA.tables):
        for kind in table.takes or (table.record,):
            first.setdefault(kind, number)
    return tuple(sorted(records, key=lambda record: first[type(record)]))


def write(db: Database, schema: Schema, writes: Writes, utc_ns: int) -> None:
    """Write everything to the tables of a schema; the caller has begun a transaction."""
    offsets = {row["boot_id"]: row["utc_offset_ns"] for row in db.execute("SELECT boot_id, utc_offset_ns FROM hosts")}
    offsets |= {host.boot_id: host.utc_offset_ns for host in writes.of(Host)}
    context = WriteContext(utc_ns=utc_ns, offsets=offsets)
    for table in schema.tables:
        records: tuple[Any, ...] = writes.of(*(table.takes or (table.record,)))
        if records and table.put is not None:
            table.put(db, records, context)
        elif records:
            put(db, table, records, context)
