"""Formulas read from a text, a specification in JSON or a store."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from specmine.analysis.documents import Document, document_in, functions_of, is_store, parsed_document
from specmine.daemon.documents.json_text import rounded
from specmine.mining.spl.from_assertions import statements_of
from specmine.mining.spl.grammar import SplError
from specmine.mining.spl.parser import parse_specification
from specmine.mining.spl.syntax import Specification
from specmine.model.errors import InputError
from specmine.model.text import title

from .data_age import utc_ns_of


def read_formulas(path: Path | None, texts: Sequence[str]) -> Specification:
    """Return the formulas of a file, ``-`` for standard input, and those given as texts behind them.

    Raises
    ------
    InputError
        If the file cannot be read, or a text is no formula.
    """
    found = _read(path) if path is not None else Specification(statements=())
    more = [_parsed(each, "--formula").statements for each in texts]
    return Specification(
        statements=(*found.statements, *(statement for each in more for statement in each)),
        builds=found.builds,
        settings=found.settings,
        since_ns=found.since_ns,
        lifetimes=found.lifetimes,
    )


def _read(path: Path) -> Specification:
    if str(path) != "-" and is_store(path):
        return _mined(document_in(path))
    try:
        content = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text in UTF-8") from error
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    if not content.lstrip().startswith("{"):
        return _parsed(content, str(path))
    return _mined(parsed_document(content, path))


def _mined(document: Document) -> Specification:
    """Return what a document states, with the digits of its JSON, and since when it was observed.

    A store says the same as what it exports. Since when is when its mining began, or when its windows did, where those
    of an earlier daemon were taken over.
    """
    functions = functions_of(document)
    began = utc_ns_of((document.get("collection") or {}).get("began"))
    since: dict[str, int] = {}
    for each in functions if began is not None else ():
        start = utc_ns_of((each.get("windows_span") or {}).get("start"))
        since[_named(each)] = min(filter(None, (began, start, since.get(_named(each)))))
    listed = (document.get("program") or {}).get("lifetimes")
    return Specification(
        statements=tuple(statements_of(rounded(functions))),
        since_ns=since,
        lifetimes=frozenset(str(each.get("id")) for each in listed) if isinstance(listed, list) else frozenset(),
    )


def _named(entry: Mapping[str, Any]) -> str:
    return title(str(entry["function"]), str(entry["module"]))


def _parsed(content: str, where: str) -> Specification:
    try:
        return parse_specification(content)
    except SplError as error:
        shown = error.picture.split("\n")[0].strip()
        raise InputError(f"{where}, {error}", remedy=f"in: {shown}") from error
    except RecursionError as error:
        raise InputError(f"{where}: nested too deeply") from error
