"""How pages write what the documents hold in ASCII: µs, ×, and no break between a number and its unit."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from specmine.daemon.documents import violation_text

_RANGE = re.compile(r"(?<=\d)-(?=\d[\d.]* (?:ns|us|ms|s)\b)")
_UNIT = re.compile(r"(?<=\d) (?=(?:[nµm]?s|min|h|d|B|[KMG]iB)\b|%)")


def typeset(text: str) -> str:
    """Write units as a page does: µs, ×, and no break between a number and its unit."""
    return _UNIT.sub("\N{NO-BREAK SPACE}", violation_text.typeset(_RANGE.sub("\N{EN DASH}", text)))


def or_dash(text: str) -> str:
    """Write what is not known as a page does."""
    return "–" if text in ("", "-") else text


def moment_of(at: datetime) -> str:
    """Return a time of day in UTC: ``03:12``."""
    return at.astimezone(UTC).strftime("%H:%M")


def day_of(at: datetime) -> str:
    """Return a date in UTC: ``22 Nov 2026``."""
    then = at.astimezone(UTC)
    return f"{then.day} {then.strftime('%b %Y')}"
