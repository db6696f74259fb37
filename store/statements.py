"""The SQL that every engine understands, made of a table; parameters are called ``:name``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from .table import Database, Table, WriteContext

T = TypeVar("T")


def put(db: Database, table: Table[Any], records: Sequence[Any], context: WriteContext) -> None:
    """Write the rows of records."""
    if table.unless_last:
        for record in records:
            _put_news(db, table, table.row(record, context))
    else:
        db.executemany(insertion(table), [table.row(record, context) for record in records])


def read(db: Database, table: Table[T], *, newest: int | None = None, **equal: object) -> tuple[T, ...]:
    """Return records, in the table's order.

    Parameters
    ----------
    newest : int, optional
        Only so many, the newest; of tables with ``newest_of`` so many of each group.
    equal : dict
        Only rows that have these values in these columns.
    """
    return tuple(table.records_of(db.execute(selection(table, equal, newest=newest), equal | {"newest": newest})))


def insertion(table: Table[Any]) -> str:
    """Return the statement that inserts a row, or replaces the one of its key."""
    names = [column.name for column in table.columns]
    values = ", ".join(f":{name}" for name in names)
    return f"INSERT INTO {table.name}({', '.join(names)}) VALUES({values}){_conflict(table)}"


def selection(table: Table[Any], equal: Iterable[str] = (), *, newest: int | None = None) -> str:
    """Return the statement that reads rows whose columns ``equal`` have given values."""
    names = names_of(table)
    where = " AND ".join(f"{name} = :{name}" for name in equal)
    source = f"{table.name} WHERE {where}" if where else table.name
    order = ", ".join(table.order)
    if newest is None:
        return f"SELECT {names} FROM {source} ORDER BY {order}"
    if not table.newest_of:
        of_all = f"SELECT {names} FROM {source} ORDER BY {table.age} DESC LIMIT :newest"
        return f"SELECT {names} FROM ({of_all}) AS found ORDER BY {order}"
    groups, age = ", ".join(table.newest_of), ", ".join(f"{name} DESC" for name in table.order)
    ranked = f"SELECT {names}, row_number() OVER (PARTITION BY {groups} ORDER BY {age}) AS number FROM {source}"
    return f"SELECT {names} FROM ({ranked}) AS found WHERE number <= :newest ORDER BY {order}"


def names_of(table: Table[Any]) -> str:
    """Return the names of all columns, the number of a numbered row first."""
    return ", ".join((*(() if table.key else ("id",)), *(column.name for column in table.columns)))


def deletion_of_old(table: Table[Any]) -> str:
    """Return the statement that deletes the rows older than the ``:most`` newest."""
    bound = f"SELECT {table.age} FROM {table.name} ORDER BY {table.age} DESC LIMIT 1 OFFSET :most - 1"
    unless = f" AND NOT ({table.unless})" if table.unless else ""
    return f"DELETE FROM {table.name} WHERE {table.age} < ({bound}){unless}"


def copy(table: Table[Any], source: str, target: str) -> str:
    """Return the statement that copies the rows of one schema of the database which another lacks."""
    names = ", ".join(column.name for column in table.columns)
    same = " AND ".join(f"mine.{name} = theirs.{name}" for name in table.same or table.key)
    return (
        f"INSERT INTO {target}.{table.name}({names}) SELECT {names} FROM {source}.{table.name} AS theirs WHERE"
        f" NOT EXISTS (SELECT 1 FROM {target}.{table.name} AS mine WHERE {same}) ORDER BY {', '.join(table.order)}"
    )


def _conflict(table: Table[Any]) -> str:
    if not table.key:
        return ""
    others = [column for column in table.columns if column.name not in table.key]
    updates = ", ".join(f"{column.name} = {column.update or f'excluded.{column.name}'}" for column in others)
    condition = f" WHERE {table.update_if}" if table.update_if else ""
    return f" ON CONFLICT({', '.join(table.key)}) DO UPDATE SET {updates}{condition}"


def _put_news(db: Database, table: Table[Any], row: dict[str, object]) -> None:
    """Insert a row unless the newest of its group is equal."""
    *group, value = table.unless_last
    where = " AND ".join(f"{name} = :{name}" for name in group)
    newest = f"SELECT {value} FROM {table.name} WHERE {where} ORDER BY {table.age} DESC LIMIT 1"
    last = db.execute(newest, {name: row[name] for name in group}).fetchone()
    if last is None or last[value] != row[value]:
        db.execute(insertion(table), row)
