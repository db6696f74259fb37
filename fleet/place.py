"""The fleet as a place that reading commands read like a store."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from importlib.util import find_spec
from typing import TYPE_CHECKING

from specmine.model.errors import HostError, InputError
from specmine.model.units import parse_duration
from specmine.store import Store

if TYPE_CHECKING:
    from .database.reading import Filters


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetPlace:
    """A part of a fleet."""

    url: str = field(repr=False)
    """Of its database; it may hold a password."""
    filters: Filters

    def opened(self) -> Store:
        """Connect, and return the store. Raises SpecmineError."""
        from .database.reading import FleetStore  # noqa: PLC0415

        return FleetStore(self.url, self.filters)

    def __str__(self) -> str:
        """Return the URL without its password, and the filters."""
        from .database.connecting import shown  # noqa: PLC0415

        chosen = str(self.filters)
        return f"{shown(self.url)} ({chosen})" if chosen else shown(self.url)


def fleet_place(url: str, labels: tuple[str, ...], host: str | None, since: str | None) -> FleetPlace:
    """Return the part of a fleet that a user names.

    Raises
    ------
    InputError
        If a label or an age cannot be read.
    HostError
        If psycopg is missing.
    """
    need_psycopg()
    from .database.hosts import labels_of  # noqa: PLC0415
    from .database.reading import Filters  # noqa: PLC0415

    try:
        newest = timedelta(microseconds=parse_duration(since) / 1e3) if since is not None else None
    except (ValueError, OverflowError) as error:
        raise InputError(f"{since!r} is no age", remedy="write 90m, 48h or 7d") from error
    return FleetPlace(url=url, filters=Filters(labels=tuple(labels_of(labels).items()), host=host, since=newest))


def need_psycopg() -> None:
    """Raise HostError if the package that speaks to PostgreSQL is missing."""
    if find_spec("psycopg") is None:
        raise HostError("the fleet needs the package psycopg", remedy="install it with: pip install 'specmine[fleet]'")
