"""Formulas read from a text, a specification in JSON or a store."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from specmine.analysis.documents import document_in, is_store, parsed_document
from specmine.mining.spl.from_assertions import statements_of
from specmine.mining.spl.grammar import SplError
from specmine.mining.spl.parser import parse_specification
from specmine.mining.spl.syntax import Specification
from specmine.model.errors import InputError


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
    )


def _read(path: Path) -> Specification:
    if str(path) != "-" and is_store(path):
        return Specification(statements=tuple(statements_of(document_in(path)["functions"])))
    try:
        content = sys.stdin.read() if str(path) == "-" else path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text in UTF-8") from error
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    if not content.lstrip().startswith("{"):
        return _parsed(content, str(path))
    return Specification(statements=tuple(statements_of(parsed_document(content, path)["functions"])))


def _parsed(content: str, where: str) -> Specification:
    try:
        return parse_specification(content)
    except SplError as error:
        shown = error.picture.split("\n")[0].strip()
        raise InputError(f"{where}, {error}", remedy=f"in: {shown}") from error
    except RecursionError as error:
        raise InputError(f"{where}: nested too deeply") from error
