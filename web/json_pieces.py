"""Large JSON read piece by piece: other threads of the process go on meanwhile.

The parser of the standard library holds the interpreter until it is done, 0.3 s for 8 MB.
"""

from __future__ import annotations

import json
import re
from json.decoder import JSONDecodeError
from typing import Any

LARGE = 1 << 17
"""Bytes from which a text is read in pieces."""
_DEPTH = 3
"""Objects and lists within each other that are taken apart; what is deeper is read at once."""
_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


def loads(text: str | bytes, *, large: int = LARGE) -> Any:
    """Return what ``json.loads`` returns, or raise what it raises; of equal keys the last one counts."""
    if len(text) < large:
        return json.loads(text)
    whole = text.decode("utf-8", "surrogatepass") if isinstance(text, bytes) else text
    value, at = _value(whole, _after_space(whole, 0), _DEPTH)
    at = _after_space(whole, at)
    if at != len(whole):
        raise JSONDecodeError("Extra data", whole, at)
    return value


def _value(text: str, at: int, depth: int) -> tuple[Any, int]:
    """Return the value that begins at a place, and where it ends."""
    opening = text[at : at + 1]
    if depth and opening == "{":
        return _object(text, at + 1, depth)
    if depth and opening == "[":
        return _list(text, at + 1, depth)
    try:
        return _DECODER.raw_decode(text, at)
    except StopIteration as error:
        raise JSONDecodeError("Expecting value", text, error.value) from None


def _object(text: str, at: int, depth: int) -> tuple[dict[str, Any], int]:
    found: dict[str, Any] = {}
    at = _after_space(text, at)
    if text[at : at + 1] == "}":
        return found, at + 1
    while True:
        if text[at : at + 1] != '"':
            raise JSONDecodeError("Expecting property name enclosed in double quotes", text, at)
        key, at = _DECODER.raw_decode(text, at)
        at = _after_space(text, at)
        if text[at : at + 1] != ":":
            raise JSONDecodeError("Expecting ':' delimiter", text, at)
        found[key], at = _value(text, _after_space(text, at + 1), depth - 1)
        at = _after_space(text, at)
        if text[at : at + 1] == "}":
            return found, at + 1
        if text[at : at + 1] != ",":
            raise JSONDecodeError("Expecting ',' delimiter", text, at)
        at = _after_space(text, at + 1)


def _list(text: str, at: int, depth: int) -> tuple[list[Any], int]:
    found: list[Any] = []
    at = _after_space(text, at)
    if text[at : at + 1] == "]":
        return found, at + 1
    while True:
        value, at = _value(text, at, depth - 1)
        found.append(value)
        at = _after_space(text, at)
        if text[at : at + 1] == "]":
            return found, at + 1
        if text[at : at + 1] != ",":
            raise JSONDecodeError("Expecting ',' delimiter", text, at)
        at = _after_space(text, at + 1)


def _after_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    assert match is not None
    return match.end()
