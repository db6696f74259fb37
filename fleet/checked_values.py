"""Single values of a push, checked: they come from a host that may lie or be damaged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .varints import Places

LONGEST_KEY = 512
LARGEST_INT = 1 << 60
_MOST_REAL = 1e15


class BadPush(ValueError):
    """Bytes that are no push, or say what none may."""


@dataclass(slots=True)
class Reader:
    """Bytes that are taken one after the other."""

    raw: bytes
    at: int

    def take(self, length: object) -> bytes:
        """Return the next bytes."""
        size = integer(length)
        found = self.raw[self.at : self.at + size]
        if len(found) < size:
            raise BadPush("rows are cut short")
        self.at += size
        return found


def listed(values: Any, number: int) -> list[Any]:
    """Return a list of so many entries."""
    if type(values) is not list or len(values) != number:
        raise BadPush("fields of rows have different lengths")
    return values


def column(values: Any, number: int, most: int) -> Places:
    """Return whole numbers of rows, each at least 0 and below ``most``."""
    if not number:
        return np.zeros(len(listed(values, 0)), np.int64)
    found = np.array(listed(values, number))
    if found.dtype != np.int64 or found.ndim != 1 or int(found.min()) < 0 or int(found.max()) >= most:
        raise BadPush("a field of a row is no number, or too large")
    return found


def reals(values: Any, number: int) -> NDArray[np.float64]:
    """Return numbers of rows."""
    if not number:
        return np.zeros(len(listed(values, 0)))
    found = np.array(listed(values, number))
    if found.dtype.kind not in "if" or found.ndim != 1 or not bool(np.all(np.abs(found) < _MOST_REAL)):
        raise BadPush("a field of a row is no number, or too large")
    return found.astype(np.float64)


def integer(value: object, most: int = LARGEST_INT) -> int:
    """Return a whole number of at least 0 and below ``most``."""
    if type(value) is not int or not 0 <= value < most:
        raise BadPush(f"{value!r:.40} is no number")
    return value


def real(value: object) -> float:
    """Return a number."""
    if not isinstance(value, int | float) or not abs(value) < _MOST_REAL:
        raise BadPush(f"{value!r:.40} is no number")
    return float(value)


def text_of(value: object) -> str:
    """Return a text that can be written."""
    if type(value) is not str:
        raise BadPush("a name is no text")
    value.encode()  # half a surrogate pair is no text either
    return value


def name_of(value: object) -> str:
    """Return a text that may be a key."""
    name = text_of(value)
    if not 0 < len(name) <= LONGEST_KEY or "\0" in name:
        raise BadPush("a key is empty or too long")
    return name
