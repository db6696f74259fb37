"""What the reader's child answers, as bytes and back: one line of JSON, then the arrays.

The child handles foreign files and may be subverted by one, so what it says is checked here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specmine.model.errors import InputError

from .facts import BinaryFacts, FunctionFacts, FunctionKind, Grade, RowTable, Segment, Site

Answer = BinaryFacts | RowTable | Sequence[FunctionFacts | None] | Sequence[Site] | Sequence[str] | InputError
_Json = Any

_SEGMENT = ("offset", "address", "file_size", "memory_size", "flags")
_FUNCTION = ("offset", "size", "name", "module", "kind", "mangled", "aliases", "parent")
_SITE = ("function", "offset", "grade", "code", "text", "callee")
_SITES = ("sites", "return_sites", "landings")
_CODE = re.compile(r"(?:[0-9.]{1,20}:[0-9a-f]{16}:[el][0-9a-f]{16})?")


def encode(op: str, value: Answer) -> bytes:
    """Return an answer to a request of kind ``op`` as bytes."""
    if isinstance(value, InputError):
        return _line({"error": value.message, "remedy": value.remedy})
    if isinstance(value, RowTable):
        arrays = (value.pc, value.info, value.pages)
        return _line({"rows": [len(each) for each in arrays]}) + b"".join(each.tobytes() for each in arrays)
    if isinstance(value, BinaryFacts):
        known = {name: getattr(value, name) for name in BinaryFacts.__slots__}
        known["segments"] = [[getattr(each, name) for name in _SEGMENT] for each in value.segments]
        return _line({"facts": known})
    if op == "code":
        return _line({"code": list(value)})
    names = _SITE if op in _SITES else _FUNCTION
    return _line({op: [each and [getattr(each, name) for name in names] for each in value]})


def decode(op: str, data: bytes) -> Answer:
    """Return the answer to a request of kind ``op``; InputError, as a value, if it is none."""
    try:
        line, _, rest = data.partition(b"\n")
        answer = json.loads(line)
        if "error" in answer:
            return InputError(_text(answer["error"]), remedy=_text(answer["remedy"]))
        if op == "facts":
            return _facts(answer["facts"])
        if op == "rows":
            return _rows(answer["rows"], rest)
        known: Callable[[_Json], Any] = _code if op == "code" else _site if op in _SITES else _function
        return [None if each is None and known is _function else known(each) for each in answer[op]]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        return InputError(f"the reader's answer makes no sense: {type(error).__name__}: {error}")


def _line(value: Mapping[str, _Json]) -> bytes:
    text = json.dumps(value, ensure_ascii=False, check_circular=False)
    return text.encode("utf-8", "backslashreplace") + b"\n"


def _rows(lengths: _Json, data: bytes) -> RowTable:
    rows, again, pages = (_number(each) for each in lengths)
    if not rows == again >= 0 <= pages or len(data) != 4 * (2 * rows + pages):
        raise ValueError("lengths do not fit")
    array: NDArray[np.uint32] = np.frombuffer(data, dtype=np.uint32)
    pc, info, index = np.split(array, (rows, 2 * rows))
    if rows and ((pc[1:] <= pc[:-1]).any() or int(index.max(initial=0)) >= rows):
        raise ValueError("rows are not in order")
    return RowTable(pc=pc, info=info, pages=index)


def _facts(known: Mapping[str, _Json]) -> BinaryFacts:
    segments = tuple(
        Segment(**{name: _number(value) for name, value in zip(_SEGMENT, each, strict=True)})
        for each in known["segments"]
    )
    return BinaryFacts(
        build_id=_text(known["build_id"]),
        kind=_text(known["kind"]),
        entry=_number(known["entry"]),
        segments=segments,
        text_offset=_number(known["text_offset"]),
        text_size=_number(known["text_size"]),
        needed=_texts(known["needed"]),
        interpreter=_text(known["interpreter"]),
        soname=_text(known["soname"]),
        static=bool(known["static"]),
        has_symtab=bool(known["has_symtab"]),
        has_frames=bool(known["has_frames"]),
        is_go=bool(known["is_go"]),
        unwinder=_texts(known["unwinder"]),
        debuglink=_text(known["debuglink"]),
        frames_digest=_text(known["frames_digest"]),
        self_check=_text(known["self_check"]),
        languages=_texts(known["languages"]),
    )


def _function(values: Sequence[_Json]) -> FunctionFacts:
    offset, size, name, module, kind, mangled, aliases, parent = values
    return FunctionFacts(
        offset=_number(offset),
        size=_number(size),
        name=_text(name),
        module=_text(module),
        kind=FunctionKind(kind),
        mangled=_text(mangled),
        aliases=_texts(aliases),
        parent=_number(parent),
    )


def _site(values: Sequence[_Json]) -> Site:
    function, offset, grade, code, text, callee = values
    return Site(
        function=_number(function),
        offset=_number(offset),
        grade=Grade(grade),
        code=_text(code),
        text=_text(text),
        callee=_number(callee),
    )


def _number(value: _Json) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r:.40} is no whole number")
    return value


def _text(value: _Json) -> str:
    if type(value) is not str or not value.isprintable():
        raise TypeError(f"{value!r:.40} is no printable text")
    return value


def _code(value: _Json) -> str:
    if not _CODE.fullmatch(_text(value)):
        raise ValueError(f"{value!r:.80} is no digest of code")
    return str(value)


def _texts(values: _Json) -> tuple[str, ...]:
    return tuple(_text(each) for each in values)
