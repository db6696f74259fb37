"""How numbers, durations and foreign names are written for people."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_NO_BRACKET = re.compile(r"operator\s*(?:<=>|<<=|>>=|<<|>>|<=|>=|->\*|->|<|>|\(\))|->")
"""Operators that contain brackets without a partner."""
_STEPS = ((1e-9, "ns"), (1e-6, "us"), (1e-3, "ms"), (1.0, "s"))


def escaped(text: str) -> str:
    """Escape what could control a terminal: control characters, directions of writing, surrogates."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(escape(letter) if unicodedata.category(letter) in _HIDDEN else letter for letter in text)


def escape(letter: str) -> str:
    """Write one character by its code: ``\\x1b``, ``\\u200f``, ``\\U000e0001``."""
    code = ord(letter)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def in_markup(words: str) -> str:
    """Return words as they stand in HTML or SVG, control characters escaped."""
    return html.escape(escaped(words), quote=True)


def title(name: str, module: str) -> str:
    """Return how a function is shown: ``name (module)``; a nameless one has its module in the name."""
    return name if not module or name.startswith(f"{module}+0x") else f"{name} ({module})"


def shortened(name: str, width: int = 60) -> str:
    """Write a long C++ or Rust name without its template arguments, then without its parameters.

    For display only: two functions may get the same text. Short names and operators stay as they are.
    """
    for opening, closing in ("<>", "()"):
        if len(name) > width:
            name = _emptied(name, opening, closing)
    return name


def _emptied(name: str, opening: str, closing: str) -> str:
    """Replace the content of the outermost brackets by dots; unmatched brackets leave the name as it is."""
    plain = _NO_BRACKET.sub(lambda match: "_" * len(match[0]), name)  # of the same length
    parts: list[str] = []
    depth = done = 0
    for at, letter in enumerate(plain):
        if letter == opening:
            depth += 1
            if depth == 1:
                parts.append(name[done : at + 1])
                done = at + 1
        elif letter == closing:
            depth -= 1
            if depth < 0:
                return name
            if depth == 0:
                content = name[done:at]
                # a name that begins with a bracket needs its content: <Basket as Shop>::total
                parts.append(content if done == 1 or len(content) <= len("...") else "...")
                done = at
    return "".join(parts) + name[done:] if depth == 0 else name


def duration(seconds: float) -> str:
    """Write a duration in two or three digits: ``61 us``, ``4.2 ms``, ``120 s``."""
    if seconds <= 0:
        return "0 s"
    for scale, unit in _STEPS:
        value = seconds / scale
        if value < 9.95 and unit != "ns":
            return f"{value:.1f} {unit}"
        if value < 999.5:
            return f"{value:.0f} {unit}"
    return f"{count(seconds)} s"


def three_digits(seconds: float) -> str:
    """Write a duration in three digits where they say something: ``160 us``, ``30.2 us``, ``1.91 ms``, ``54 us``."""
    if seconds <= 0:
        return "0 s"
    scale, unit = _unit(seconds)
    value = seconds / scale
    if value >= 999.5:  # more than that only in seconds
        return f"{count(value)} {unit}"
    decimals = 0 if unit == "ns" or value >= 99.95 else 1 if value >= 9.995 else 2
    text = f"{value:.{decimals}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} {unit}"


def duration_range(low: float, high: float) -> str:
    """Write a range of durations with one unit, and as many digits as tell its ends apart: ``72-80 us``."""
    scale, unit = _unit(max(low, high))
    first, last = low / scale, high / scale
    decimals = 0
    while decimals < 2 and unit != "ns" and (abs(last - first) * 10**decimals < 3 or 0 < first * 10**decimals < 10):
        decimals += 1
    ends = f"{first:.{decimals}f}", f"{last:.{decimals}f}"
    return f"{ends[0]} {unit}" if ends[0] == ends[1] else f"{ends[0]}-{ends[1]} {unit}"


def _unit(seconds: float) -> tuple[float, str]:
    """Return the unit in which a duration has one to three digits before the point."""
    return next(((scale, unit) for scale, unit in _STEPS if seconds / scale < 999.5), _STEPS[-1])


def age(seconds: float) -> str:
    """Write how long something took, or how long ago it was: ``12 s``, ``3 min 20 s``, ``2 h 5 min``, ``4 d 1 h``."""
    whole = max(0, round(seconds))
    for unit, size, part, part_size in (
        ("d", 86_400, "h", 3_600),
        ("h", 3_600, "min", 60),
        ("min", 60, "s", 1),
    ):
        if whole >= size:
            rest = whole % size // part_size
            return f"{whole // size} {unit}" + (f" {rest} {part}" if rest else "")
    return f"{whole} s"


def count(number: float) -> str:
    """Write a count with thousands separators."""
    return f"{number:,.0f}"


def rate(per_second: float) -> str:
    """Write calls a second; below ten with one decimal."""
    return f"{per_second:.1f}" if 0 < per_second < 9.95 else count(per_second)


def share(part: float) -> str:
    """Write a share in per cent; only exactly 0 and 1 are shown as 0 % and 100 %."""
    if part <= 0:
        return "0 %"
    if part >= 1:
        return "100 %"
    if part < 0.0995:
        return "<0.1 %" if part < 0.0005 else f"{100 * part:.1f}".removesuffix(".0") + " %"
    if part >= 0.985:
        return ">99.9 %" if part >= 0.9995 else f"{100 * part:.1f}".removesuffix(".0") + " %"
    return f"{100 * part:.0f} %"


def size(number: float) -> str:
    """Write bytes in binary units."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024 or unit == "GiB":
            break
        number /= 1024
    return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"


def cells(text: str) -> int:
    """Return how many columns of a terminal a text fills."""
    wide = (unicodedata.east_asian_width(letter) in "WF" for letter in text if not unicodedata.combining(letter))
    return sum(1 + double for double in wide)


def plural(number: int, noun: str) -> str:
    """Write a count with its noun: ``1 call``, ``2,700 calls``."""
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"


def listed(words: Iterable[str]) -> str:
    """Join words as a sentence does: ``a, b and c``."""
    every = list(words)
    return " and ".join([", ".join(every[:-1]), every[-1]]) if len(every) > 1 else "".join(every)


def cut(text: str, width: int) -> str:
    """Return a text of at most so many columns, its middle left out."""
    if cells(text) <= width:
        return text
    keep = width - 2
    head, tail = text[: keep - keep // 2], text[len(text) - keep // 2 :]
    while cells(head) + cells(tail) > keep:
        head = head[:-1]
    return f"{head}..{tail}"
