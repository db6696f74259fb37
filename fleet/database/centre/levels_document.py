"""``specmine.fleet_levels/1``, read from the database."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any

from specmine.fleet.database.connecting import Connection
from specmine.fleet.database.host_levels import read_levels
from specmine.fleet.database.host_times import with_times
from specmine.fleet.database.storing import document
from specmine.fleet.host_levels import document_of
from specmine.fleet.outlying_hosts import outlying
from specmine.model.json_codec import decode
from specmine.store import Build

_ALL: Mapping[str, str] = MappingProxyType({})


def levels_document(
    db: Connection, since: timedelta, labels: Mapping[str, str] = _ALL, *, level: float = 0.95
) -> dict[str, Any]:
    """Return ``specmine.fleet_levels/1`` of the hosts with some labels, of what was observed so lately."""
    read = read_levels(db, since, labels)
    hosts = with_times(db, outlying(read.functions), read.names, read.lately)
    return document_of(read.functions, _build_labels(db), hosts, level=level)


def _build_labels(db: Connection) -> dict[str, str]:
    """Return what builds are called, by build-id: the label that most hosts know."""
    rows = db.execute("SELECT key, document FROM held WHERE what = 'Build' ORDER BY key, host_id")
    named: dict[str, list[str]] = {}
    for row in rows:
        build: Build = decode(Build, document(row["document"]))
        if build.label:
            named.setdefault(row["key"], []).append(build.label)
    return {key: max(sorted(set(labels)), key=labels.count) for key, labels in named.items()}
