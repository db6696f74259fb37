"""The fields of a request: read with their limits, since anybody may send one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specmine.model.errors import InputError

Request = Mapping[str, Any]
MOST_HOURS = 31 * 24
LONGEST_LABEL = 200
_HOUR_NS = 3_600 * 10**9


def span_asked(request: Request, most: int, usual_hours: float) -> tuple[list[str], int]:
    """Return the keys of functions and the time in ns that a request asks for."""
    keys, hours = request.get("functions"), request.get("hours", usual_hours)
    if not isinstance(keys, list) or not 0 < len(keys) <= most or not all(isinstance(k, str) for k in keys):
        raise InputError(f"functions is a list of 1 to {most} keys")
    if isinstance(hours, bool) or not isinstance(hours, int | float) or not 0 < hours <= MOST_HOURS:
        raise InputError(f"hours is a number above 0 and at most {MOST_HOURS}, not {hours!r:.100}")
    return keys, int(hours * _HOUR_NS)


def optional_text(request: Request, name: str) -> str:
    """Return a field that is a text; '' where it is not there."""
    value = request.get(name, "")
    if not isinstance(value, str) or len(value) > 1000:
        raise InputError(f"{name} is a text of at most 1000 characters")
    return value


def comment_of(request: Request) -> str:
    """Return what a person says about something, as the command line permits it; '' where it is not there."""
    value = optional_text(request, "comment")
    if not value.isprintable():
        raise InputError("comment is printable text of at most 1000 characters")
    return value


def label_of(request: Request) -> str:
    """Return the name of a build, as the command line permits it."""
    value = text_of(request, "name")
    if len(value) > LONGEST_LABEL or not value.strip() or not value.isprintable():
        raise InputError(f"name is printable text of 1 to {LONGEST_LABEL} characters")
    return value


def text_of(request: Request, name: str) -> str:
    """Return a field that must be there and a text."""
    value = request.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= 1000:
        raise InputError(f"the request needs {name}, a text, not {value!r:.100}")
    return value
