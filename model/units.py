"""Durations, sizes and ratios as people write them: ``10s``, ``64MiB``, ``1%``."""

from __future__ import annotations

import re
from fractions import Fraction

_DURATION_UNITS_NS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "min": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
}
_SIZE_UNITS = {
    "": 1,
    "b": 1,
    "k": 1000,
    "kb": 1000,
    "kib": 1 << 10,
    "m": 1000**2,
    "mb": 1000**2,
    "mib": 1 << 20,
    "g": 1000**3,
    "gb": 1000**3,
    "gib": 1 << 30,
}
_MOST_LETTERS = 100
"""Of a text: longer ones say nothing that fits, and Python refuses to read very long numbers."""
_NUMBER = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_DURATION = re.compile(rf"(?:{_NUMBER}\s*[a-zµμ]+\s*)+", re.ASCII)
_DURATION_PART = re.compile(rf"({_NUMBER})\s*([a-zµμ]+)", re.ASCII)
_SIZE = re.compile(rf"({_NUMBER})\s*([A-Za-z]*)", re.ASCII)
_RATIO = re.compile(rf"({_NUMBER})\s*(?:(%)|/\s*([1-9][0-9]*))?", re.ASCII)


def parse_duration(text: str) -> int:
    """Return the nanoseconds of a duration such as ``10s``, ``250ms`` or ``1h30m``.

    Raises
    ------
    ValueError
        If there is no unit, or an unknown one.
    """
    stripped = _short(text, "a duration").strip()
    if stripped == "0":
        return 0
    if not _DURATION.fullmatch(stripped):
        raise ValueError(f"{text!r} is not a duration such as 10s, 250ms or 1h30m")
    total = Fraction(0)
    for number, unit in _DURATION_PART.findall(stripped):
        if unit not in _DURATION_UNITS_NS:
            raise ValueError(f"{text!r} has the unknown unit {unit!r}: ns, us, ms, s, m, h and d are known")
        total += Fraction(number) * _DURATION_UNITS_NS[unit]
    return _whole(total, text)


def parse_size(text: str) -> int:
    """Return the bytes of a size such as ``64MiB`` (powers of two) or ``64MB`` (powers of ten).

    Raises
    ------
    ValueError
        If it is not a number with a known unit.
    """
    match = _SIZE.fullmatch(_short(text, "a size").strip())
    if match is None or match[2].lower() not in _SIZE_UNITS:
        raise ValueError(f"{text!r} is not a size such as 64MiB")
    return _whole(Fraction(match[1]) * _SIZE_UNITS[match[2].lower()], text)


def parse_ratio(text: str) -> float:
    """Return the ratio written as ``1%``, ``0.01`` or ``1/100``.

    Raises
    ------
    ValueError
        If it is none of them.
    """
    match = _RATIO.fullmatch(_short(text, "a ratio").strip())
    if match is None:
        raise ValueError(f"{text!r} is not a ratio such as 1% or 0.01")
    return float(match[1]) / (100.0 if match[2] else float(match[3] or 1))


def show_duration(nanoseconds: int) -> str:
    """Write a duration in the largest unit that leaves it whole."""
    for unit in ("d", "h", "m", "s", "ms", "us"):
        if nanoseconds and nanoseconds % _DURATION_UNITS_NS[unit] == 0:
            return f"{nanoseconds // _DURATION_UNITS_NS[unit]}{unit}"
    return f"{nanoseconds}ns" if nanoseconds else "0"


def show_size(size: int) -> str:
    """Write a size in the largest binary unit that leaves it whole."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size and size % factor == 0:
            return f"{size // factor}{unit}"
    return f"{size}B"


def show_ratio(ratio: float) -> str:
    """Write a ratio in per cent."""
    return f"{ratio * 100:g}%"


def _short(text: str, what: str) -> str:
    if len(text) > _MOST_LETTERS:
        raise ValueError(f"{text[:40]!r}... has {len(text):,} letters, too many for {what}")
    return text


def _whole(value: Fraction, text: str) -> int:
    if value >= 1 << 63:
        raise ValueError(f"{text!r} is too large")
    return round(value)
