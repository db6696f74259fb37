"""The records that a host tells of itself, and which of them are news."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from specmine.model.batch import Lifetime
from specmine.model.function import Function
from specmine.model.json_codec import encode
from specmine.store import (
    Build,
    Document,
    EnvironmentVector,
    ExperimentWindow,
    FunctionProfile,
    Host,
    Store,
    StoredViolation,
)

from .push import key_of

TOLD = (Host, Build, Lifetime, Function, FunctionProfile, EnvironmentVector, ExperimentWindow, StoredViolation)
"""Records that are few: all are read, and those that changed are sent."""
SPECIFICATION = "specification"


def records_of(store: Store) -> list[Any]:
    """Return all records of a store that a host sends of itself.

    A program that ended before its build was read has a build without a name. It is nobody's key, so it is not sent.
    """
    found: list[Any] = [record for each in TOLD for record in store.read(each) if key_of(record)[1]]
    return [*found, *store.read(Document, name=SPECIFICATION)]


def changed(
    records: Iterable[Any], sent: Mapping[tuple[str, str], bytes]
) -> tuple[tuple[Any, ...], dict[tuple[str, str], bytes]]:
    """Return the records that differ from what was sent, and their digests."""
    news, digests = [], {}
    for each in records:
        key = key_of(each)
        text = json.dumps(encode(each), sort_keys=True, separators=(",", ":")).encode()
        digest = hashlib.blake2b(text, digest_size=16).digest()
        if sent.get(key) != digest:
            digests[key] = digest
            news.append(each)
    return tuple(news), digests
