"""A store as pushes of a stream of its own: what was learned without a fleet comes in the same way as from a host."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator
from pathlib import Path

from specmine.fleet.folding import FoldedRow
from specmine.fleet.push import Push, pushes_of
from specmine.fleet.received import boots_of, decode_push
from specmine.fleet.records import records_of
from specmine.model.batch import CallSamples
from specmine.model.errors import InputError
from specmine.model.observation import Observation
from specmine.store import LifetimeSummary, Store, read_store

from .connecting import Connection
from .hosts import enroll, host_named, hosts

_NAMESPACE = uuid.UUID("5a1b4c5e-3c0e-4f63-9a40-6b1e9a3a4c11")
_PER_PUSH = 500


def import_store(db: Connection, path: Path, name: str) -> int:
    """Let a store's content wait in the inbox as pushes of a host; return how many were new.

    Parameters
    ----------
    db : Connection
        Of the database's administrator, each statement a transaction of its own.
    path : path
        The store. Imported twice, it is there once.
    name : str
        The host that it belongs to; enrolled if there is none.

    Raises
    ------
    InputError
        If a boot of it is in the fleet already, by another way.
    """
    stream = uuid.uuid5(_NAMESPACE, _digest(path))
    with read_store(path) as store:
        pushes = list(_pushes(store))
        boots = {boot for each in pushes for boot in boots_of(decode_push(each))}
    host = next(iter(hosts(db, name=name)), None)
    known = db.execute("SELECT 1 FROM specmine.stream WHERE stream = %s", (stream,)).fetchone() is not None
    other = db.execute("SELECT boot_id FROM specmine.boot WHERE boot_id = ANY(%s) LIMIT 1", (sorted(boots),)).fetchone()
    if other is not None and not known:
        raise InputError(
            f"boot {other['boot_id']} of {path} is in the fleet already",
            remedy="its host sent it, or another file had it",
        )
    if host is None:
        enroll(db, name, {})
        host = host_named(db, name)
    with db.cursor() as cursor:  # now, so that nobody else's import or push speaks of them meanwhile
        cursor.executemany(
            "INSERT INTO specmine.boot(boot_id, host_id) VALUES (%s, %s) ON CONFLICT DO NOTHING",
            [(each, host.host_id) for each in sorted(boots)],
        )
    before = db.execute("SELECT accepted FROM specmine.stream WHERE stream = %s", (stream,)).fetchone()
    for number, payload in enumerate(pushes, start=1):
        db.execute(
            "SELECT * FROM specmine.import_push(%s, %s, %s, %s, %s)",
            (host.host_id, stream, number, payload, hashlib.sha256(payload).digest()),
        )
    return len(pushes) - (before["accepted"] if before is not None else 0)


def store_parts(store: Store) -> Iterator[Push]:
    """Yield all that a store holds, records first, as pushes of any size."""
    yield Push(records=tuple(records_of(store)))
    yield Push(records=store.read(CallSamples), summaries=store.read(LifetimeSummary))
    windows = store.read(Observation)
    for at in range(0, len(windows), _PER_PUSH):
        yield Push(rows=tuple(FoldedRow(observation=each, windows=1) for each in windows[at : at + _PER_PUSH]))


def _pushes(store: Store) -> Iterator[bytes]:
    for part in store_parts(store):
        yield from pushes_of(part)


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
