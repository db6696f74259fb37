"""Values that cross a boundary as JSON, both ways: dataclasses, histograms, enums, tuples and mappings.

The annotations of the dataclasses are the format. A field at its default is left out, and an unknown one is ignored.
So recordings stay readable when a field is added. Histograms are sparse: ``[[bucket, count], ...]``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from .histogram import Histogram

Json = Any
"""What ``json.loads`` returns."""


def encode(value: object, *, full: bool = False) -> Json:
    """Return the JSON form of a value; TypeError for a type that has none.

    With ``full`` fields at their defaults are written too, for values whose defaults may change.
    """
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Histogram):
        return value.pairs
    if is_dataclass(value):
        members = [(member, getattr(value, member.name)) for member in fields(value)]
        return {
            member.name: encode(held, full=full) for member, held in members if full or not _is_default(member, held)
        }
    return _encode_collection(value, full)


def decode(kind: Any, data: Json) -> Any:
    """Return the value of type ``kind`` from its JSON form.

    Raises
    ------
    ValueError
        If the data do not fit the type; the message names the type.
    """
    try:
        return _decode(kind, data)
    except (TypeError, LookupError, AttributeError, ArithmeticError) as error:
        raise ValueError(f"not a {getattr(kind, '__name__', kind)}: {error}") from error


def _encode_collection(value: object, full: bool) -> Json:
    if isinstance(value, Mapping):
        return {str(key): encode(value[key], full=full) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [encode(each, full=full) for each in value]
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _is_default(item: Field[Any], value: object) -> bool:
    if item.default is not MISSING:
        return type(value) is type(item.default) and bool(value == item.default)
    if item.default_factory is not MISSING:
        made = item.default_factory()
        return type(value) is type(made) and bool(value == made)
    return False


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _decode(kind: Any, data: Json) -> Any:
    origin = get_origin(kind)
    if kind is Any:
        return data
    if kind is Histogram:
        return Histogram.from_pairs([bucket for bucket, _ in data], [count for _, count in data])
    if origin in (Union, UnionType):
        return _decode_union(get_args(kind), data)
    if origin is tuple:
        return _decode_tuple(get_args(kind), data)
    if origin is not None:
        return _decode_collection(get_args(kind), data)
    return _decode_class(kind, data)


def _decode_class(kind: Any, data: Json) -> Any:
    if is_dataclass(kind):
        if not isinstance(data, Mapping):
            raise ValueError(f"{data!r:.80} is no object")
        hints = _hints(kind)  # type: ignore[arg-type]
        names = [member.name for member in fields(kind) if member.name in data]
        return kind(**{name: _decode(hints[name], data[name]) for name in names})  # type: ignore[operator]
    if issubclass(kind, Enum):
        return kind(data)
    if kind is float and type(data) is int:
        return float(data)
    if type(data) is not kind:  # true is no number, and no text is one
        raise ValueError(f"{data!r:.80} is not of type {kind.__name__}")
    return data


def _decode_union(choices: tuple[Any, ...], data: Json) -> Any:
    if data is None and NoneType in choices:
        return None
    rest = [choice for choice in choices if choice is not NoneType]
    if len(rest) != 1:
        raise ValueError(f"a union of {len(rest)} types has no JSON form of its own")
    return _decode(rest[0], data)


def _decode_tuple(choices: tuple[Any, ...], data: Json) -> Any:
    if not isinstance(data, list | tuple):
        raise ValueError(f"{data!r:.80} is no list")
    if len(choices) == 2 and choices[1] is Ellipsis:
        return tuple(_decode(choices[0], each) for each in data)
    return tuple(_decode(kind, each) for kind, each in zip(choices, data, strict=True))


def _decode_collection(choices: tuple[Any, ...], data: Json) -> Any:
    if len(choices) == 2:
        return {_key(choices[0], key): _decode(choices[1], each) for key, each in data.items()}
    return _decode_tuple((choices[0], Ellipsis), data)


def _key(kind: Any, text: str) -> Any:
    return int(text) if kind is int else _decode(kind, text)
