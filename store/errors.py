"""What can be wrong with a store."""

from __future__ import annotations

from specmine.model.errors import InputError


class StoreError(InputError):
    """The store cannot be used."""


class StoreCorrupt(StoreError):
    """The store is damaged, or is no store at all."""
