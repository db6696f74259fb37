"""What every store can do, whatever its engine."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, Self, TypeVar

from specmine.model.batch import Lifetime
from specmine.model.function import Function
from specmine.model.observation import Observation

from .contents import Contents
from .retention import Retention
from .table import JsonObject
from .tables.documents import Document
from .tables.functions import FunctionRecord
from .tables.host_environments import EnvironmentVector, ExperimentWindow
from .tables.hosts import Host
from .tables.programs import Build
from .tables.violations import StoredViolation
from .writes import Writes

T = TypeVar("T")


class Store(Protocol):
    """One open store. It may pass from thread to thread, but not be used by two at once."""

    path: Path

    def write(self, writes: Writes, utc_ns: int) -> None:
        """Write records, all or none of them.

        Parameters
        ----------
        writes : Writes
        utc_ns : int
            Now.

        Raises
        ------
        StoreError
            If they cannot be written now.
        StoreCorrupt
            If the store is damaged.
        ValueError, TypeError, ArithmeticError
            If no store would take one of them.
        """
        ...

    def read(self, record: type[T], *, newest: int | None = None, **equal: object) -> tuple[T, ...]:
        """Return the records of a type, in the order of their table.

        Parameters
        ----------
        record : type
        newest : int, optional
            Only so many, the newest; of observations so many of each function and kind.
        equal : dict
            Only records that have these values in these columns.

        Raises
        ------
        StoreCorrupt
            If something in it cannot be read.
        """
        ...

    def absorb(self, other: str | Path) -> None:
        """Copy all rows of another store that are not here yet, except its documents. Raises StoreError."""
        ...

    def thin(self, limits: Retention, now_utc_ns: int) -> tuple[int, int]:
        """Merge old observations, delete the oldest of what does not fit; return how many each took."""
        ...

    def begin_anew(self, why: str) -> str:
        """Set the damaged store aside and begin a new one; return one line about it. Raises StoreError."""
        ...

    def close(self) -> None:
        """Close the store, and let others write to it."""
        ...

    def __enter__(self) -> Self:
        """Return the store."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def load(self, *, newest: int = 20) -> Contents:
        """Read everything, of observations the newest of each function and kind. Raises StoreCorrupt."""
        return Contents(
            hosts=self.read(Host),
            builds=self.read(Build),
            lifetimes=self.read(Lifetime),
            functions=self.read(Function),
            observations=self.read(Observation, newest=newest),
            states={record.function: record.state for record in self.read(FunctionRecord)},
            documents={each.name: each.document for each in self.read(Document)},
            environments=self.read(EnvironmentVector),
            experiment_windows=self.read(ExperimentWindow),
            violations=self.read(StoredViolation),
        )

    def document(self, name: str) -> JsonObject | None:
        """Return a document as it was last written, None if it never was."""
        found = self.read(Document, name=name)
        return found[0].document if found else None
