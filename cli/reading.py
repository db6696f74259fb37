"""Where the reading commands get the specification from: a running daemon or a store."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import click

from specmine.probes.errors import InputError

from .exits import nothing

SPECIFICATION = "specmine.specification/1"
Document = Mapping[str, Any]
Entry = Mapping[str, Any]
"""One function of a document."""


def read_document(store: Path | None, socket: Path | None) -> Document:
    """Return the specification with all details.

    Raises
    ------
    InputError
        If no daemon answers, or the store cannot be read.
    NoData
        If nothing has been learned yet.
    """
    one_place(store, socket)
    document = document_in(store) if store else _ask(socket, {"command": "specification", "detail": True})
    if not isinstance(document.get("functions"), list):
        raise InputError(f"{store or 'the daemon'} gave no specification")
    return document


def read_status(socket: Path | None) -> Document:
    """Return what the daemon says of itself."""
    return _ask(socket, {"command": "status"})


def ask_daemon(socket: Path | None, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the daemon's answer to a request."""
    return _ask(socket, request)


def send_label(build: str, name: str, store: Path | None, socket: Path | None) -> str:
    """Give a build a label and return its whole build-id; ``build`` may be a beginning of it.

    Raises
    ------
    InputError
        If the build is unknown, or several begin like that.
    """
    one_place(store, socket)
    if store is None:
        result = _ask(socket, {"command": "label", "build": build, "name": name})
        return str(result.get("build_id", build))
    from specmine.daemon.store import Store  # noqa: PLC0415

    if not store.is_file():
        raise InputError(f"there is no store {store}")
    with Store.open(store) as opened:
        known = sorted({each.build_id for each in opened.builds()})
        chosen = pick_build(known, build)
        with opened.transaction():
            opened.label(chosen, name)
    return chosen


def one_place(store: Path | None, socket: Path | None) -> None:
    """Raise UsageError if both a store and a socket are given."""
    if store is not None and socket is not None:
        raise click.UsageError("--store names a file, --socket a daemon: choose one.")


def pick_build(known: list[str], build: str) -> str:
    """Return the one known build-id that is ``build`` or begins with it.

    Raises
    ------
    InputError
        If there is none, or more than one.
    """
    found = [each for each in known if each == build] or [each for each in known if each.startswith(build)]
    if len(found) == 1 and build:
        return found[0]
    if not found or not build:
        seen = ", ".join(each[:12] for each in known[:5]) or "none"
        raise InputError(f"no build {build!r} is known", remedy=f"known builds: {seen}")
    raise InputError(f"{len(found)} builds begin with {build}", remedy="give more digits")


def functions_of(document: Document) -> list[Entry]:
    """Return the functions of a document in its order."""
    return [each for each in document["functions"] if isinstance(each, Mapping)]


def recorded(entry: Entry) -> bool:
    """Tell whether a function is known from recorded durations only: nothing was probed, no binary is known."""
    return not entry.get("build_id")


def without_details(document: Document) -> Document:
    """Return the specification without what only ``show`` draws."""
    return {**document, "functions": [_without_histogram(each) for each in functions_of(document)]}


def _without_histogram(entry: Entry) -> dict[str, Any]:
    kept = {key: value for key, value in entry.items() if key != "histogram"}
    if any("histogram" in each for each in kept.get("behaviours") or []):
        kept["behaviours"] = [_without_histogram(each) for each in kept["behaviours"]]
    if "histogram" in (kept.get("on_cpu") or {}):
        kept["on_cpu"] = _without_histogram(kept["on_cpu"])
    return kept


def _ask(socket: Path | None, request: Mapping[str, Any]) -> dict[str, Any]:
    from specmine.daemon.client import DEFAULT_SOCKET, ask  # noqa: PLC0415

    return ask(socket or DEFAULT_SOCKET, request)


def is_store(path: Path) -> bool:
    """Tell whether a file is an SQLite database, as every store is."""
    try:
        with path.open("rb") as file:
            return file.read(16) == b"SQLite format 3\0"
    except OSError:
        return False


def document_in(path: Path) -> Document:
    """Return the specification that a store holds, or a file of JSON is.

    Raises
    ------
    InputError
        If the file cannot be read, or is neither.
    NoData
        If the store holds no specification yet.
    """
    try:
        with path.open("rb") as file:
            head = file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    except OSError:
        head = b""
    return _from_json(path) if head == b"{" else _from_store(path)


def _from_json(path: Path) -> Document:
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} is no JSON: {str(error).splitlines()[0]}") from error
    functions = document.get("functions")
    if not isinstance(functions, list) or not all(isinstance(each, dict) for each in functions):
        raise InputError(f"{path} is no specification: it has no list of functions")
    schema = document.get("schema")
    if schema != SPECIFICATION:
        raise InputError(f"{path} is no {SPECIFICATION} but {str(schema)[:60]}")
    return cast("Document", document)


def _from_store(store: Path) -> Document:
    from specmine.daemon.store import Store  # noqa: PLC0415

    with Store.open(store, read_only=True) as opened:
        document = opened.document("specification")
    if document is None:
        raise nothing(f"the store {store} holds no specification yet", "mine with --store first")
    return document
