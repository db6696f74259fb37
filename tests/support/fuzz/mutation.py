"""Damage to bytes, texts and JSON values, by a seeded generator: each case can be made again."""

from __future__ import annotations

import copy
import json
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

EVIL: Sequence[Any] = (
    *(None, True, -1, 0, 1, 2**31, 2**63, 2**64, -(2**63), 10**30, 1e308, -1e308, 1e-320, -0.0),
    *(float("nan"), float("inf"), "", " ", "0", "-1", "NaN", "x" * 20_000, "\x00", "\x1b[2J\x1b]0;owned\x07"),
    *("a\nlevel=error msg=forged", "a\rb", "\x9b31m", "\u202egnp.exe\u2066", "a\u2028b", "\x0c", "\ud800"),
    *("../../etc/passwd", "{}", "%s%n", "<script>alert(1)</script>"),
    *([], {}, [[]], [None], {"": None}, [-1, 2**64], ["a", "b"] * 500),
)
"""Values that readers tend not to expect."""
_EDGES = (0x00, 0x01, 0x0A, 0x1B, 0x22, 0x2C, 0x3B, 0x7F, 0x80, 0x85, 0xFF)


def damaged_bytes(data: bytes, chance: random.Random) -> bytes:
    """Change, remove, repeat or insert some bytes."""
    new = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4, 16, 64))):
        at, length = chance.randrange(len(new) + 1), chance.choice((1, 1, 4, 8, 64, 512))
        match chance.randrange(6):
            case 0 | 1:
                new[at : at + 1] = bytes([chance.choice((*_EDGES, chance.randrange(256)))])
            case 2:
                new[at : at + length] = chance.randbytes(len(new[at : at + length]))
            case 3:
                del new[at : at + length]
            case 4:
                new[at:at] = new[at : at + length]
            case _:
                new[at : at + 8] = chance.choice((0, 1, 2**63, 2**64 - 1, chance.getrandbits(24))).to_bytes(8, "little")
    if chance.random() < 0.05:
        del new[chance.randrange(len(new) + 1) :]
    return bytes(new)


def damaged_lines(text: str, chance: random.Random, separators: str = ",;:| =") -> str:
    """Remove, repeat, exchange or damage some lines, or parts of them."""
    lines = text.split("\n")
    for _ in range(chance.choice((1, 1, 2, 8))):
        at, other = chance.randrange(len(lines)), chance.randrange(len(lines))
        match chance.randrange(6):
            case 0:
                lines[at : at + chance.choice((1, 1, 5))] = [""]
            case 1:
                lines[at], lines[other] = lines[other], lines[at]
            case 2:
                lines[at] = lines[at] + lines[other]
            case _:
                by = chance.choice(separators)
                parts = lines[at].split(by)
                parts[chance.randrange(len(parts))] = _as_text(chance.choice(EVIL))
                lines[at] = by.join(parts)
    return "\n".join(lines)


def damaged_value(value: Any, chance: random.Random) -> Any:
    """Return a copy of a JSON value with some parts replaced, removed, repeated, added or nested."""
    with _deep():
        new = {"": copy.deepcopy(value)}
        for _ in range(chance.choice((1, 1, 1, 2, 4))):
            _damage(new, chance)
        return new[""]


def damaged_json(value: Any, chance: random.Random) -> str:
    """Return the text of a damaged value; it may hold what JSON does not have, such as NaN."""
    with _deep():
        return json.dumps(damaged_value(value, chance))


def damaged_json_text(text: str, chance: random.Random) -> str:
    """Return a damaged form of a text of JSON; a part of it if it is none any more."""
    with _deep():
        try:
            value = json.loads(text)
        except ValueError:
            return text[: chance.randrange(len(text) + 1)]
        return damaged_json(value, chance)


@contextmanager
def _deep() -> Iterator[None]:
    """Let values be nested deeper than those may be that the product reads."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _damage(root: dict[str, Any], chance: random.Random) -> None:
    holder: Any = root
    key: Any = ""
    while isinstance(holder[key], dict | list) and holder[key] and chance.random() < 0.9:
        holder = holder[key]
        key = chance.choice(list(holder)) if isinstance(holder, dict) else chance.randrange(len(holder))
    match chance.randrange(8):
        case 0 if holder is not root:
            del holder[key]
        case 1 if isinstance(holder, list):
            holder[key:key] = [copy.deepcopy(holder[key])] * chance.choice((1, 2, 300))
        case 2 if isinstance(holder, dict):
            holder[_as_text(chance.choice(EVIL))] = holder[key]
        case 3:
            for _ in range(chance.choice((1, 3, 200, 2000))):
                holder[key] = [holder[key]]
        case 4 if isinstance(holder[key], int | float):
            holder[key] = chance.choice((-holder[key], holder[key] + 1, holder[key] * 1e9, str(holder[key])))
        case _:
            holder[key] = copy.deepcopy(chance.choice(EVIL))


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else str(value)
