"""Durations in NDJSON: one object a line with the fields that a CSV has as columns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from specmine.model.call_path import Frame

from .csv import DURATION, LATEST_NS, TIME, decimal, whole_ns
from .records import ALL, Calls, Chunk, Faults, Names

_LINES = 1 << 13


def read_ndjson(file: BinaryIO, names: Names, faults: Faults) -> Iterator[Chunk]:
    """Yield the calls of an NDJSON file.

    ``path`` is a text as in CSV or a list of frames; numbers may be written as JSON numbers or as texts.

    Raises
    ------
    InputError
        At a bad line that is not to be skipped.
    """
    calls, records, at = Calls(), _Records(names), 1
    while lines := file.readlines(_LINES * 64):
        for number, record in _objects(lines, at):
            why = records.take(record, calls) if isinstance(record, dict) else str(record)
            if why:
                faults.bad(number, why)
        at += len(lines)
        if calls.full:
            yield calls.take()
    yield calls.take()


def _objects(lines: Sequence[bytes], at: int) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """Yield the number of each line with its object, or with what is wrong with it."""
    kept = [(at + place, line) for place, line in enumerate(lines) if not line.isspace()]
    try:
        # one parse for all is twice as fast; a line that only makes sense with its neighbours changes the number
        objects = json.loads(b"[" + b",".join(line for _, line in kept) + b"]")
        if len(objects) == len(kept):
            yield from ((number, _checked(found)) for (number, _), found in zip(kept, objects, strict=True))
            return
    except (ValueError, RecursionError):
        pass
    for number, line in kept:
        try:
            yield number, _checked(json.loads(line))
        except (ValueError, RecursionError) as error:
            yield number, f"not JSON ({str(error).split(':', maxsplit=1)[0]})"


def _checked(found: object) -> dict[str, Any] | str:
    return found if isinstance(found, dict) else "not a JSON object"


class _Records:
    """Turns objects into calls."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._paths: dict[tuple[str, str], int] = {}
        self._timed: bool | None = None

    def take(self, record: dict[str, Any], calls: Calls) -> str:
        """Add the call of an object; return what is wrong with it, '' if nothing is."""
        duration: Any = record.get(DURATION)
        if type(duration) not in (int, float) or not 0 <= duration <= 1e18:
            duration, why = decimal("" if duration is None else _text(duration))
            if why:
                return why
        time_ns: Any = record.get(TIME)
        timed = time_ns is not None
        if self._timed is None:
            self._timed = timed
        if timed is not self._timed:
            return f"{TIME} stands in some lines and not in others"
        if timed and not (type(time_ns) is int and abs(time_ns) <= LATEST_NS):
            time_ns, why = whole_ns(_text(time_ns))
            if why:
                return why
        function, path = record.get("function"), record.get("path")
        if not isinstance(function, str | None) or not isinstance(path, str | list | None):
            return "function and path are texts, or path a list of texts"
        calls.add(
            self._path(function or "", path or ""),
            duration,
            self._names.lifetime(_text(record.get("lifetime") or "")),
            time_ns,
        )
        return ""

    def _path(self, function: str, path: str | list[Any]) -> int:
        if isinstance(path, str):
            key = (function, path)
            if key not in self._paths:
                self._paths[key] = self._names.path_of_text(function, path)
            return self._paths[key]
        own = Frame(function or ALL, "")
        frames = tuple(Frame(str(name), "") for name in path)
        return self._names.path(own, frames[:-1] if frames[-1] == own else frames)


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
