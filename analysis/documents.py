"""Specifications as documents: reading them from a store or a file, and their parts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from specmine.model import text
from specmine.model.errors import InputError, NoData

SPECIFICATION = "specmine.specification/1"
Document = Mapping[str, Any]
Entry = Mapping[str, Any]
"""One function of a document."""


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


def title(entry: Entry) -> str:
    """Return what the function of an entry is called: ``name (module)``."""
    return text.title(str(entry.get("function", "?")), str(entry.get("module") or ""))


def functions_of(document: Document) -> list[Entry]:
    """Return the functions of a document in its order."""
    return [each for each in document["functions"] if isinstance(each, Mapping)]


def is_recorded(entry: Entry) -> bool:
    """Return whether a function is known from recorded durations only: nothing was probed, no binary is known."""
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


def is_store(path: Path) -> bool:
    """Return whether a file is an SQLite database, as every store is."""
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
    from specmine.store import open_store  # noqa: PLC0415

    with open_store(store, read_only=True) as opened:
        document = opened.document("specification")
    if document is None:
        raise NoData(f"the store {store} holds no specification yet", remedy="mine with --store first")
    return document
