"""Values that cross a boundary as JSON, both ways: dataclasses, named tuples, histograms, enums, tuples and mappings.

The annotations of the classes are the format. A field at its default is left out, and an unknown one is ignored.
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
_PLAIN = frozenset({NoneType, bool, int, float, str})
_Member = tuple[str, type, object]
"""Name, and type and value of the default; no value is of the type ``_NoDefault``."""


class _NoDefault:
    pass


def encode(value: object, *, full: bool = False) -> Json:
    """Return the JSON form of a value; TypeError for a type that has none.

    With ``full`` fields at their defaults are written too, for values whose defaults may change.
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    members = _members(kind)  # type: ignore[arg-type]
    if members is not None:
        return _encode_members(value, members, full)
    if kind is list or kind is tuple:
        return [each if type(each) in _PLAIN else encode(each, full=full) for each in value]  # type: ignore[attr-defined]
    return _encode_other(value, full)


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


def _encode_members(value: object, members: tuple[_Member, ...], full: bool) -> Json:
    found = {}
    for name, kind, default in members:
        held = getattr(value, name)
        if full or type(held) is not kind or held != default:
            found[name] = held if type(held) in _PLAIN else encode(held, full=full)
    return found


def _encode_other(value: object, full: bool) -> Json:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, int | float | str):
        return value
    if isinstance(value, Histogram):
        return value.pairs
    if isinstance(value, Mapping):
        return {str(key): encode(value[key], full=full) for key in sorted(value)}
    if isinstance(value, list | tuple):
        return [encode(each, full=full) for each in value]
    raise TypeError(f"{type(value).__name__} has no JSON form")


@cache
def _members(kind: type) -> tuple[_Member, ...] | None:
    """Return the members of a dataclass or a named tuple, None for a type with a form of its own."""
    if issubclass(kind, tuple) and hasattr(kind, "_field_defaults"):
        defaults: Mapping[str, object] = kind._field_defaults
        return tuple(
            (name, type(defaults[name]), defaults[name]) if name in defaults else (name, _NoDefault, None)
            for name in kind._fields  # type: ignore[attr-defined]
        )
    if not is_dataclass(kind) or issubclass(kind, Enum | Histogram):
        return None
    return tuple(_member(each) for each in fields(kind))


def _member(item: Field[Any]) -> _Member:
    if item.default is not MISSING:
        return item.name, type(item.default), item.default
    if item.default_factory is not MISSING:
        made = item.default_factory()
        return item.name, type(made), made
    return item.name, _NoDefault, None


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
    members = _members(kind)
    if members is not None:
        if not isinstance(data, Mapping):
            raise ValueError(f"{data!r:.80} is no object")
        hints = _hints(kind)
        return kind(**{name: _decode(hints[name], data[name]) for name, _, _ in members if name in data})
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
