"""Boots of hosts: monotonic times mean something only together with their boot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from specmine.store.table import INTEGER, OBJECT, Column, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One boot of a host."""

    boot_id: str
    hostname: str
    utc_offset_ns: int
    """What to add to CLOCK_MONOTONIC of this boot to get UTC, ns."""
    facts: Mapping[str, str] = field(default_factory=dict)


HOSTS = Table(
    name="hosts",
    record=Host,
    columns=(
        Column("boot_id"),
        Column("hostname"),
        Column("utc_offset_ns", INTEGER),
        Column("facts", OBJECT),
    ),
    key=("boot_id",),
    order=("utc_offset_ns", "boot_id"),
)
