"""Objects out of a JSON text that may be larger than memory: the elements of one array, one after the other."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from specmine.model.errors import InputError

from .records import Faults

_BLOCK = 1 << 20
_LARGEST = 1 << 28
"""No element is so many characters long."""
_BETWEEN = re.compile(r"[\s,]*")


def elements(file: BinaryIO, key: str, faults: Faults) -> Iterator[tuple[int, Any]]:
    """Yield the elements of every array that stands at ``key``, or of an array that is the whole text.

    Parameters
    ----------
    file : binary file
        UTF-8.
    key : str
        Arrays inside the elements are part of them.
    faults : Faults
        Takes up what is no JSON; what follows it is not read, as nobody knows where it goes on.

    Raises
    ------
    InputError
        If there is no such array in a text that is not empty.

    Yields
    ------
    int, object
        Line on which the element ends, and the element.
    """
    text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace")
    start = re.compile(rf'"{re.escape(key)}"\s*:\s*\[')
    decode = json.JSONDecoder().raw_decode
    buffer, at, line, ended = "", 0, 1, False
    inside, first, known, empty = False, True, False, True
    while True:
        if not inside:
            found = start.search(buffer, at) or (re.compile(r"\s*\[").match(buffer) if first else None)
            if found:
                inside, first, known = True, False, True
                line += buffer.count("\n", at, found.end())
                at = found.end()
        if inside:
            here = _BETWEEN.match(buffer, at).end()  # type: ignore[union-attr]  # it always matches
            line += buffer.count("\n", at, here)
            at = here
            if buffer.startswith("]", at):
                inside, at = False, at + 1
                continue
            try:
                value, end = decode(buffer, at)
            except (ValueError, RecursionError) as error:
                if ended and at >= len(buffer):
                    return  # a writer that was stopped left the array open
                if ended or len(buffer) - at > _LARGEST:
                    faults.bad(line, f"no JSON value ({str(error).split(':', maxsplit=1)[0]})")
                    return
            else:
                if end < len(buffer) or ended:  # at the end of the buffer a number may go on
                    line += buffer.count("\n", at, end)
                    at = end
                    yield line, value
                    continue
        if ended:
            _check_found(known or empty, key, faults)
            return
        more = text.read(_BLOCK)
        empty = empty and not more.strip()
        ended = not more
        keep = at if inside else max(at, len(buffer) - len(key) - 64)
        if not inside:
            line += buffer.count("\n", at, keep)
        first = first and not buffer.strip()
        buffer, at = buffer[keep:] + more, 0


def _check_found(found: bool, key: str, faults: Faults) -> None:
    """Raise InputError if a text is of another kind."""
    if not found:
        raise InputError(f"{faults.source} holds no array {key}", remedy="choose its format with --from")
