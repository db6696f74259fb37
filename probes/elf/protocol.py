"""What the parser child answers, as bytes and back: one line of JSON, then the arrays.

The child handles foreign files and may be subverted by one, so its answers are checked here: their types, their
order, and that every text can be printed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from specmine.model import json_codec
from specmine.model.errors import InputError

from .facts import BinaryFacts, FunctionFacts, RowTable, Site

Answer = BinaryFacts | RowTable | Sequence[FunctionFacts | None] | Sequence[Site] | Sequence[str] | InputError
_Json = Any

_KINDS: Mapping[str, Any] = {
    "facts": BinaryFacts,
    "functions_at": list[FunctionFacts | None],
    "find": list[FunctionFacts],
    "wrappers": list[FunctionFacts],
    "sites": list[Site],
    "return_sites": list[Site],
    "landings": list[Site],
    "code": list[str],
}
"""Types of the answers by request; ``rows`` are arrays."""
UNCONFINED = 77
"""Exit status of a child that could not give up its privileges, and so has parsed nothing."""
_CODE = re.compile(r"(?:[0-9.]{1,20}:[0-9a-f]{16}:[el][0-9a-f]{16})?")


def encode(value: Answer) -> bytes:
    """Return an answer as bytes."""
    if isinstance(value, InputError):
        return _line({"error": value.message, "remedy": value.remedy})
    if isinstance(value, RowTable):
        arrays = (value.pc, value.info, value.pages)
        return _line({"rows": [len(array) for array in arrays]}) + b"".join(array.tobytes() for array in arrays)
    return _line({"answer": json_codec.encode(value)})


def decode(op: str, data: bytes) -> Answer:
    """Return the answer to a request of kind ``op``; InputError, as a value, if it is none."""
    try:
        line, _, rest = data.partition(b"\n")
        answer = json.loads(line)
        _check_printable(answer)
        if "error" in answer:
            return InputError(_text(answer["error"]), remedy=_text(answer["remedy"]))
        if op == "rows":
            rows, again, pages = json_codec.decode(tuple[int, int, int], answer["rows"])
            return _rows(rows, again, pages, rest)
        value: Any = json_codec.decode(_KINDS[op], answer["answer"])
        if op == "code" and not all(map(_CODE.fullmatch, value)):
            raise ValueError("no digests of code")
        return value if op == "facts" else list(value)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        return InputError(f"the reader's answer makes no sense: {type(error).__name__}: {error}")


def _line(value: Mapping[str, _Json]) -> bytes:
    text = json.dumps(value, ensure_ascii=False, check_circular=False)
    return text.encode("utf-8", "backslashreplace") + b"\n"


def _rows(rows: int, again: int, pages: int, data: bytes) -> RowTable:
    if not rows == again >= 0 <= pages or len(data) != 4 * (2 * rows + pages):
        raise ValueError("lengths do not fit")
    array: NDArray[np.uint32] = np.frombuffer(data, dtype=np.uint32)
    pc, info, index = np.split(array, (rows, 2 * rows))
    if rows and ((pc[1:] <= pc[:-1]).any() or int(index.max(initial=0)) >= rows):
        raise ValueError("rows are not in order")
    return RowTable(pc=pc, info=info, pages=index)


def _check_printable(value: _Json) -> None:
    """Raise ValueError if a text anywhere in a JSON value holds what does not print."""
    if isinstance(value, str):
        if not value.isprintable():
            raise ValueError(f"{value!r:.40} is no printable text")
    elif isinstance(value, list | dict):
        for item in value if isinstance(value, list) else (*value, *value.values()):
            _check_printable(item)


def _text(value: _Json) -> str:
    return str(json_codec.decode(str, value))
