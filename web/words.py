"""How the page writes what the documents hold: units that people use, names that may break, addresses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from markupsafe import Markup

from specmine.model.text import age, escaped, in_markup, shortened

Entry = Mapping[str, Any]
_BREAKS = re.compile(r"(?<=[_:,.])(?=\w)|(?<=[a-z0-9])(?=[A-Z])")
_LONGEST_NAME = 90
_NOW_S = 1.5


def name(text: object) -> Markup:
    """Return a name of a program, safe in HTML: shortened, control characters escaped, with places to break."""
    shown = shortened(escaped(str(text)), _LONGEST_NAME)
    if len(shown) > _LONGEST_NAME:
        shown = f"{shown[: _LONGEST_NAME // 2]}…{shown[-_LONGEST_NAME // 2 :]}"
    return Markup("<wbr>".join(in_markup(part) for part in _BREAKS.split(shown)))


def moment(told: object, now: datetime | None) -> str:
    """Return a time of day in UTC, with the date if it is not of today; '' for None."""
    if not told:
        return ""
    then = datetime.fromisoformat(str(told)).astimezone(UTC)
    if now is None or then.date() == now.date():
        return then.strftime("%H:%M:%S")
    return f"{then.day} {then.strftime('%b %H:%M')}"


def ago(told: object, now: datetime | None) -> str:
    """Return how long ago a moment was: ``25 min ago``; '' where now is not known."""
    if not told or now is None:
        return ""
    seconds = (now - datetime.fromisoformat(str(told))).total_seconds()
    return "now" if seconds < _NOW_S else f"{age(seconds)} ago"


def date(now: datetime | None) -> str:
    """Return ``03:12:40 UTC, Sun 22 Nov 2026``."""
    return f"{now.strftime('%H:%M:%S')} UTC, {now.strftime('%a')} {now.day} {now.strftime('%b %Y')}" if now else ""


def address(path: str, **query: object) -> str:
    """Return an address with a query; parts that are empty are left out."""
    kept = {key: str(value) for key, value in query.items() if value not in (None, "", False)}
    return f"{path}?{urlencode(kept, errors='surrogateescape')}" if kept else path


def function_address(entry: Entry, **more: object) -> str:
    """Return the address of the page of a function, for its entry or one of its violations; ``more`` is its query."""
    named = {"name": entry.get("function"), "module": entry.get("module"), "program": entry.get("program")}
    return address("/function", **named, **more)


def violation_address(entry: Entry) -> str:
    """Return the address of a violation."""
    return address("/violation", id=entry.get("id"))
