"""Specifications as documents: reading them from a store or a file, and their parts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from specmine.model import text
from specmine.model.errors import InputError, NoData

if TYPE_CHECKING:
    from specmine.store import Where

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
    """Return what the function of an entry is called: ``name (module)``, or its program where that is its own file."""
    return text.title(str(entry.get("function", "?")), place_of(entry))


def place_of(entry: Entry) -> str:
    """Return where a function is: the program, as people call it, if its file is the program's own; else the file."""
    program, module = str(entry.get("program") or ""), str(entry.get("module") or "")
    nameless = str(entry.get("function")).startswith(f"{module}+0x")
    return program if entry.get("in_program") and program and "," not in program and not nameless else module


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


def is_store(path: Where) -> bool:
    """Return whether a file is an SQLite database, as every store is; a place that is no file reads like one."""
    if not isinstance(path, Path):
        return True
    return _head(path)[:16] == b"SQLite format 3\0"


def document_in(path: Where) -> Document:
    """Return the specification that a store holds, or a file of JSON is.

    Raises
    ------
    InputError
        If the file cannot be read, or is neither.
    NoData
        If the store holds no specification yet.
    """
    if not isinstance(path, Path):
        return _from_store(path)
    first = _head(path).lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    return json_specification(path) if first == b"{" else _from_store(path)


def schema_of(path: Path) -> str | None:
    """Return what a file of JSON says that it is, as ``specmine.specification/1``; None if it is no such file."""
    if _head(path).lstrip(b"\xef\xbb\xbf \t\r\n")[:1] != b"{":
        return None
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    schema = document.get("schema") if isinstance(document, dict) else None
    return schema if isinstance(schema, str) else None


def _head(path: Path) -> bytes:
    """Return how a file begins; nothing of what is no file, such as a FIFO, which would have to be waited for."""
    try:
        if not path.is_file():
            return b""
        with path.open("rb") as file:
            return file.read(64)
    except OSError:
        return b""


def _check_shape(document: Any, where: object) -> None:
    from .specification_shape import check_shape  # noqa: PLC0415  (it brings numpy, which no help needs)

    check_shape(document, where)


def json_specification(path: Path) -> Document:
    """Return the specification that a file of JSON is; InputError if it is none."""
    try:
        return parsed_document(path.read_bytes(), path)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error


def parsed_document(content: str | bytes, where: object) -> Document:
    """Return the specification that a text of JSON is.

    Parameters
    ----------
    content : str or bytes
    where : object
        What to call it in messages.

    Raises
    ------
    InputError
        If it is none.
    """
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error).splitlines()[0]
        raise InputError(f"{where} is no JSON: {reason}") from error
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema == SPECIFICATION and not isinstance(document.get("functions"), list):
        raise InputError(f"{where} is no {SPECIFICATION}: functions is no list", remedy="write it anew")
    if schema != SPECIFICATION:
        raise InputError(f"{where} is no {SPECIFICATION} but {text.escaped(str(schema)[:60])}")
    _check_shape(document, where)
    return cast("Document", document)


def _from_store(store: Where) -> Document:
    from specmine.store import read_store  # noqa: PLC0415

    with read_store(store) as opened:
        document = opened.document("specification")
    if document is None:
        raise NoData(f"the store {store} holds no specification yet", remedy="mine with --store first")
    if not isinstance(document.get("functions"), list):
        raise InputError(f"the store {store} holds no specification")
    _check_shape(document, f"what the store {store} holds")
    return document
