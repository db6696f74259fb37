"""Recorded durations with a known truth: z is fast over b->c and mixed elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from specmine.analysis.mine_recording import analyze
from specmine.daemon.config.settings import Settings

PATHS = ("main;a;b;c;z", "main;a;b;z", "main;a;c;z")
SLOW = (0.0, 0.4, 0.4)
FAST_NS, SLOW_NS = 20_000, 60_000


def calls(number: int, *, seed: int = 1) -> list[tuple[str, int]]:
    """Draw calls of z: the path and the duration in ns of each."""
    random = np.random.default_rng(seed)
    which = random.integers(0, len(PATHS), number)
    slow = random.random(number) < np.array(SLOW)[which]
    durations = random.lognormal(0.0, 0.08, number) * np.where(slow, SLOW_NS, FAST_NS)
    return [(PATHS[path], int(duration)) for path, duration in zip(which, durations, strict=True)]


def csv_text(some: Sequence[tuple[str, int]], *, head: str = "function,path,duration_ns") -> str:
    """Return calls as CSV."""
    return "\n".join([head, *(f"z,{path},{duration}" for path, duration in some)]) + "\n"


def analyzed(folder: Path, text: str | bytes, **options: Any) -> dict[str, Any]:
    """Write a recording and return what was learned from it."""
    file = folder / "recording"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return analyze(str(file), settings=Settings(), **options).document


def one(document: dict[str, Any], function: str = "z") -> dict[str, Any]:
    """Return the one function of a name."""
    (found,) = (each for each in document["functions"] if each["function"] == function)
    return dict(found)


def behaviours(document: dict[str, Any], function: str = "z") -> dict[str, int]:
    """Return the calls of each behaviour by its expression."""
    return {each["expression"]: each["calls"] for each in one(document, function)["behaviours"]}
