"""What a configuration value may be: one reader for each kind of value.

A reader takes what YAML made of the value (text, number, truth value, list, null) and returns the checked
one; what does not fit raises ``ValueError`` with the offending value and what would fit.
"""

from __future__ import annotations

import math
import pwd
import re
from collections.abc import Callable
from dataclasses import field
from typing import Any, TypeVar

from specmine.model.text import escaped
from specmine.model.units import parse_duration, parse_ratio, parse_size, show_duration, show_ratio, show_size

N = TypeVar("N", int, float)
Reader = Callable[[object], Any]
_ADDRESS = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^:\s/\[\]]+):([0-9]{1,5})", re.ASCII)
_HIGHEST_USER = (1 << 32) - 2
_LONGEST_PATH, _LONGEST_NAME, _LONGEST_SOCKET = 4095, 255, 107
"""Of a path, a name in it and the path of a socket, in bytes."""
_SUFFIX = re.compile(r"_(ns|bytes)$")


def key(reader: Reader, default: Any) -> Any:
    """Return a dataclass field that is read by ``reader`` and has this default."""
    return field(default=default, metadata={"reader": reader})


def key_name(attribute: str) -> str:
    """Return the key of an attribute: a unit in its name is dropped, since the value carries its own."""
    return _SUFFIX.sub("", attribute)


def duration(low: int, high: int) -> Reader:
    """Read a duration from ``low`` to ``high`` ns."""

    def read(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise ValueError(f"{shown(value)} is not a duration such as 10s")
        if isinstance(value, int) and value != 0:
            raise ValueError(f"{value} has no unit; write for example {value}s")
        return _between(parse_duration(str(value)), low, high, value, show_duration)

    return read


def size(low: int, high: int) -> Reader:
    """Read a size from ``low`` to ``high`` bytes."""

    def read(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise ValueError(f"{shown(value)} is not a size such as 64MiB")
        return _between(parse_size(str(value)), low, high, value, show_size)

    return read


def ratio(low: float, high: float) -> Reader:
    """Read a ratio, as ``1%`` or ``0.01``, from ``low`` to ``high``."""

    def read(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError(f"{shown(value)} is not a ratio such as 1%")
        text = value if isinstance(value, str) else f"{float(value):.17f}"
        return _between(parse_ratio(text), low, high, value, show_ratio)

    return read


def integer(low: int, high: int) -> Reader:
    """Read a whole number."""

    def read(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"{shown(value)} is not a whole number")
        return _between(value, low, high, value, str)

    return read


def number(low: float, high: float) -> Reader:
    """Read a finite number."""

    def read(value: object) -> float:
        if isinstance(value, str):
            try:  # YAML 1.1 takes 1e-6 for text
                value = float(value)
            except ValueError:
                raise ValueError(f"{shown(value)} is not a number") from None
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError(f"{shown(value)} is not a number")
        return _between(float(value), low, high, value, "{:g}".format)

    return read


def numbers(value: object) -> tuple[float, ...]:
    """Read a list of finite numbers."""
    if not isinstance(value, list):
        raise ValueError(f"{shown(value)} is not a list of numbers")
    read = number(-1e18, 1e18)
    return tuple(read(item) for item in value)


def boolean(value: object) -> bool:
    """Read true or false."""
    if not isinstance(value, bool):
        raise ValueError(f"{shown(value)} is neither true nor false")
    return value


def choice(*options: str) -> Reader:
    """Read one of some words."""

    def read(value: object) -> str:
        if value not in options:
            raise ValueError(f"{shown(value)} is none of {', '.join(options)}")
        return str(value)

    return read


def text(value: object) -> str:
    """Read a non-empty text without control characters, which can be encoded."""
    if not isinstance(value, str) or not value or not _is_plain(value):
        raise ValueError(f"{shown(value)} is not a text")
    return value


def text_or_off(value: object) -> str | None:
    """Read a text, or ``off`` as None."""
    return None if value in ("off", False, None) else text(value)  # YAML 1.1 reads a bare off as false


def users(value: object) -> tuple[int, ...]:
    """Read one or several users of the host, by name or number, as numbers."""
    return tuple(_user(each) for each in (value if isinstance(value, list) else [value]))


def _user(value: object) -> int:
    if isinstance(value, int):
        return integer(0, _HIGHEST_USER)(value)  # type: ignore[no-any-return]
    name = text(value)
    try:
        return pwd.getpwnam(name).pw_uid
    except (KeyError, UnicodeError):
        raise ValueError(f"there is no user {shown(name)}") from None


def path(value: object) -> str:
    """Read an absolute path without control characters: a daemon has no folder that a relative one starts from."""
    if not isinstance(value, str) or not value.startswith("/") or not _is_plain(value):
        raise ValueError(f"{shown(value)} is not an absolute path")
    if len(value.encode()) > _LONGEST_PATH or any(len(part.encode()) > _LONGEST_NAME for part in value.split("/")):
        raise ValueError(f"{shown(value)} is longer than a path, or a name in it, can be")
    return value


def socket_path(value: object) -> str:
    """Read the absolute path of a socket."""
    read = path(value)
    if len(read.encode()) > _LONGEST_SOCKET:
        raise ValueError(f"{shown(read)} is longer than the {_LONGEST_SOCKET} bytes that a socket's path can have")
    return read


def optional(reader: Reader) -> Reader:
    """Read null as None, everything else by ``reader``."""
    return lambda value: None if value is None else reader(value)


def texts(value: object) -> tuple[str, ...]:
    """Read a list of texts."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise ValueError(f"{shown(value)} is not a list; write [{escaped(str(value))}]")
    return tuple(text(item) for item in value)


def mode(value: object) -> int:
    """Read the mode of a file in octal: 0666, 0o666 or "0660"."""
    # YAML 1.1 reads 0666 as octal already and leaves 0o666 as text
    if isinstance(value, str) and re.fullmatch(r"(0o?)?[0-7]{3}", value):
        value = int(value.removeprefix("0o"), 8)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 0o777:
        raise ValueError(f"{shown(value)} is not a file mode such as 0660")
    return value


def address(value: object) -> tuple[str, int] | None:
    """Read HOST:PORT, [IPV6]:PORT, or ``off`` as None; port 0 is any free one."""
    if value in ("off", False, None):  # YAML 1.1 reads a bare off as false
        return None
    match = _ADDRESS.fullmatch(value) if isinstance(value, str) and _is_plain(value) else None
    if match is None or int(match[2]) > 65535:
        raise ValueError(f"{shown(value)} is not HOST:PORT such as 127.0.0.1:9752, nor off")
    return match[1].strip("[]"), int(match[2])


def shown(value: object) -> str:
    """Write a value as it may stand in a message: short, printable."""
    if value is None:
        return "nothing"
    written = repr(value)
    return written if len(written) <= 60 else written[:57] + "..."


def _is_plain(value: str) -> bool:
    """Return whether a text has no control characters, and no halves of pairs, which nothing can encode."""
    return not any(ord(letter) < 32 or 0xD800 <= ord(letter) <= 0xDFFF for letter in value)


def _between(value: N, low: N, high: N, given: object, show: Callable[[N], str]) -> N:
    if not low <= value <= high:
        raise ValueError(f"{shown(given)} is not between {show(low)} and {show(high)}")
    return value
