"""Names, numbers and quantities as formulas write them; parsing gives back an equal value."""

from __future__ import annotations

import re
from decimal import Decimal

NAME = r"[A-Za-z_][A-Za-z0-9_.$~]*(?:::[A-Za-z_~][A-Za-z0-9_.$~]*)*"
KEYWORDS = frozenset(
    "and or not implies forall exists in at within share shares levels of none set build list true false s".split(" ")  # noqa: SIM905
)
UNITS = {"ns": -9, "us": -6, "\N{MICRO SIGN}s": -6, "\N{GREEK SMALL LETTER MU}s": -6, "ms": -3, "s": 0}
"""Unit to its power of ten. Formulas are written with us, and printed with the letter that people use."""
SECONDS, SHARE, RATE = "seconds", "share", "rate"
"""What a quantity measures."""


def quoted(name: str) -> str:
    """Return a name as it is written in a formula."""
    if re.fullmatch(NAME, name) and name not in KEYWORDS:
        return name
    return "`" + name.replace("`", "``") + "`"


def number(value: float) -> str:
    """Return a number in the fewest digits that come back equal."""
    whole = int(value) if value == int(value) and abs(value) < 1e15 else None
    return str(whole) if whole is not None else repr(float(value))


def duration(seconds: float) -> str:
    """Return a duration in the unit that suits it; it comes back equal to the last digit."""
    exact = Decimal(repr(float(seconds)))
    unit = next((name for name in ("s", "ms", "us") if exact >= Decimal(1).scaleb(UNITS[name])), "ns")
    scaled = (exact.scaleb(-UNITS[unit])).normalize()
    return f"{scaled:f} {unit}"


def percent(share: float) -> str:
    """Return a share in per cent; it comes back equal to the last digit."""
    return f"{Decimal(repr(float(share))).scaleb(2).normalize():f}%"


def quantity(value: float, dimension: str) -> str:
    """Return a constant with its unit."""
    if dimension == SECONDS:
        return duration(value)
    return f"{number(value)}/s" if dimension == RATE else number(value)
