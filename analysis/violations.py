"""The violations that a store holds, as the daemon would list them."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from specmine.daemon.documents.timestamps import rfc3339
from specmine.daemon.documents.violations import SCHEMA, Context, Named, explained_by, listed
from specmine.model.errors import InputError
from specmine.model.function import Function
from specmine.model.violation import Violation, ViolationState
from specmine.store import Build, Host, Store, StoredViolation, Where, Writes, open_store, read_store, stored

from .documents import Document, document_in, functions_of, is_store


def violations_in(store: Where) -> dict[str, Any]:
    """Return ``specmine.violations/1`` of a store: all that it holds, open ones first.

    Raises
    ------
    InputError
        If there is no store, or it cannot be read.
    """
    if isinstance(store, Path) and not store.is_file():
        raise InputError(f"there is no store {store}")
    if isinstance(store, Path) and not is_store(store):
        return _in_document(document_in(store))
    with read_store(store) as opened:
        hosts = opened.read(Host)
        specification = opened.document("specification") or {}
        violations = tuple(each.violation for each in opened.read(StoredViolation))
        return {
            "schema": SCHEMA,
            "host": hosts[-1].hostname if hosts else "",
            "at": _newest(specification, violations),
            "short_of_cpu": [],  # a store does not hold it
            "violations": listed(violations, _context_in(opened, violations)),
        }


def acknowledge_in(store: Path, ids: frozenset[str], by: str, comment: str, utc_ns: int) -> None:
    """Acknowledge open violations of a store; the daemon takes it up when it starts.

    Parameters
    ----------
    store : path
    ids : frozenset of str
    by, comment : str
        Who knows of them, and why.
    utc_ns : int
        Now.

    Raises
    ------
    InputError
        If the store cannot be written.
    """
    with open_store(store) as opened:
        known = [each.violation for each in opened.read(StoredViolation) if each.id in ids]
        closed = [each.closed(ViolationState.ACKNOWLEDGED, utc_ns, by, comment) for each in known]
        opened.write(Writes(tuple(stored(each, 0) for each in closed)), utc_ns)


def _newest(specification: Document, violations: tuple[Violation, ...]) -> str | None:
    """Return the time of the newest data, RFC 3339; None if there is none.

    A violation is written when it opens or closes, the specification every minute or more rarely.
    """
    told = (specification.get("collection") or {}).get("at")
    times = [str(told)] if told else []
    times += [rfc3339(each.found_ns if each.closed_ns is None else each.closed_ns) for each in violations]
    return max(times, key=datetime.fromisoformat, default=None)


def _in_document(document: Document) -> dict[str, Any]:
    """Return the violations that a specification in a file states."""
    found = []
    for entry in functions_of(document):
        names = {key: entry.get(key) for key in ("function", "module", "program", "build_id", "key")}
        found += [names | dict(each) for each in entry.get("violations") or ()]
    collection = document.get("collection") or {}
    host = str((document.get("host") or {}).get("hostname", ""))
    return {"schema": SCHEMA, "host": host, "at": collection.get("at"), "short_of_cpu": [], "violations": found}


def _context_in(store: Store, violations: tuple[Violation, ...]) -> Context:
    labels = {each.build_id: each.label or "" for each in store.read(Build)}
    known = {each.key: each for each in store.read(Function)}
    document = store.document("specification") or {}
    entries = {str(each.get("key")): each for each in document.get("functions", ())}
    keys = {each.function for each in violations} | {each.because for each in violations if each.because}
    names = {}
    for key in keys & set(known):
        function, entry = known[key], entries.get(key, {})
        names[key] = Named(
            function=function.name,
            module=function.module,
            program=str(entry.get("program") or function.module),
            build_id=function.build_id,
            build=labels.get(function.build_id, ""),
            behaviours=tuple(str(each.get("expression")) for each in entry.get("behaviours") or ()),
        )
    return Context(names=names, explained=explained_by(violations))
