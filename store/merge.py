"""Several stores as one new one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from specmine.model.clock import utc_ns

from .errors import StoreError
from .sqlite import SqliteStore, store_lock
from .sqlite_file import remove_log
from .table import JsonObject
from .tables.documents import Document
from .writes import Writes


def merged_store(target: Path, sources: Sequence[Path], specification: JsonObject) -> None:
    """Write a store with all that some stores hold, in place of ``target``, completely or not at all.

    Parameters
    ----------
    target : path
    sources : sequence of path
        Hosts, lifetimes, functions and observations are taken from all; rows that several hold, once.
    specification : mapping
        The document that the new store shows.

    Raises
    ------
    StoreError
        If a source cannot be read or the target not be written.
    LockTaken
        If another process writes to the target.
    """
    lock = store_lock(target)
    try:
        _merge(target, sources, specification)
    finally:
        lock.release()


def _merge(target: Path, sources: Sequence[Path], specification: JsonObject) -> None:
    partial = target.with_name(f".{target.name}.partial")
    files = [Path(f"{partial}{end}") for end in ("", "-wal", "-shm", ".lock")]
    for each in files:
        each.unlink(missing_ok=True)
    try:
        with SqliteStore.open(partial) as store:
            for source in sources:
                store.absorb(source)
            store.write(Writes((Document(name="specification", document=specification),)), utc_ns())
        remove_log(target)
        partial.replace(target)
    except OSError as error:
        raise StoreError(f"the merged store {target} cannot be written ({error})") from error
    finally:
        for each in files:
            with suppress(OSError):
                each.unlink(missing_ok=True)
