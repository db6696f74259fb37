"""Rows of a level by COPY, as text that is made column by column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from specmine.fleet.varints import Places

from .connecting import Connection

ROW_COLUMNS = (
    "function_id", "lifetime_id", "host_id", "kind", "start_ns", "end_ns", "ends_at", "load_id", "windows", "calls",
    "timed", "watched_ns", "inner_calls", "censored", "bias_ns", "uncertainty_ns", "counts", "split", "paths",
    "path_ids", "inside",
)  # fmt: skip
Column = Sequence[str]


def copy_lines(db: Connection, table: str, lines: Iterable[str], columns: Sequence[str] = ROW_COLUMNS) -> None:
    """Copy lines of ``lines_of`` into a table."""
    with db.cursor() as cursor, cursor.copy(f"COPY {table}({', '.join(columns)}) FROM STDIN") as copy:
        copy.write("".join(lines))


def lines_of(columns: Mapping[str, Column], order: Sequence[str] = ROW_COLUMNS) -> list[str]:
    """Return rows as COPY reads them."""
    return [f"{line}\n" for line in map("\t".join, zip(*(columns[name] for name in order), strict=True))]


def whole_numbers(values: Places | Sequence[int]) -> Column:
    """Return whole numbers as text."""
    return list(map(str, values.tolist() if isinstance(values, np.ndarray) else values))


def real_numbers(values: NDArray[np.float64]) -> Column:
    """Return numbers as text that is read as the same."""
    return list(map(repr, values.tolist()))


def byte_strings(values: Iterable[bytes | None]) -> Column:
    """Return bytes as text."""
    return ["\\N" if each is None else "\\\\x" + each.hex() for each in values]


def times(microseconds: Places) -> Column:
    """Return times as text, given their UTC in us."""
    found: list[str] = np.datetime_as_string(microseconds.astype("datetime64[us]"), timezone="UTC").tolist()
    return found
