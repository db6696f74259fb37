"""Recorded durations with a known truth: z is fast over b->c and mixed elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from specmine.analysis.importers.records import Faults, Names
from specmine.analysis.importers.registry import opened, reader_of
from specmine.analysis.mine_recording import analyze
from specmine.daemon.config.settings import Settings

Durations = dict[tuple[str, ...], list[float]]
"""Durations of each path; the last name of one that is not whole is ``?``."""
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


def read_calls(file: Path, wanted: str | None = None, *, skip: bool = False) -> tuple[str, Durations, Names, Faults]:
    """Return the format, the durations of each path, the names and the bad lines."""
    names, faults = Names(), Faults(file.name, skip=skip)
    found: Durations = {}
    with opened(str(file)) as (stream, _, _):
        form, reader = reader_of(stream, file.name, wanted)
        for chunk in reader(stream, names, faults):
            for number, duration in zip(chunk.paths.tolist(), chunk.durations_ns.tolist(), strict=True):
                path = names.paths[number]
                key = tuple(frame.name for frame in path.frames) + (() if path.complete else ("?",))
                found.setdefault(key, []).append(duration)
    return form, found, names, faults
