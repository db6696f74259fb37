"""Where a store can be read: a file, or a place elsewhere that reads like one, such as a fleet."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, runtime_checkable

from .protocol import Store
from .sqlite import SqliteStore


@runtime_checkable
class StorePlace(Protocol):
    """A place that is no file and reads like a store; as text it is what people read."""

    def opened(self) -> Store:
        """Return the store, to be read only; the caller closes it. Raises SpecmineError."""
        ...


Where = Path | StorePlace
"""What ``--store`` or ``--fleet`` names."""


def read_store(where: Where) -> Store:
    """Open a store to read it only. Raises StoreError if it is not there, or cannot be read."""
    return SqliteStore.open(where, read_only=True) if isinstance(where, Path) else where.opened()
