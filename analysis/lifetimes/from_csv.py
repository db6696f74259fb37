"""Recorded durations as CSV: lifetimes of functions, by call path if the file has paths."""

from __future__ import annotations

import csv
import gzip
import io
import math
import sys
from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import numpy as np

from specmine.mining.regression.sample import sample_of_durations
from specmine.mining.regression.warmup import warmup_calls
from specmine.model.errors import InputError

from .lifetime import EVERYTHING, PREFIX, Observed, Skipped

COMPARED = ("build", "lifetime", "duration_ns")
"""Columns that a comparison needs."""
TIMED = ("duration_ns",)
"""Columns that formulas need; without the others all is one build and one lifetime."""
_KNOWN = ("build", "lifetime", "duration_ns", "function", "process", "host", "time_ns", "path")
_ONE = "1"

_Key = tuple[str, str, str, str, str]


def from_csv(
    path: Path,
    *,
    required: Sequence[str] = COMPARED,
    by_path: bool = False,
    skip_bad: bool = False,
    warmup: bool = True,
) -> tuple[list[Observed], Skipped]:
    """Return the lifetimes of recorded durations.

    Parameters
    ----------
    path : Path
        Columns ``build,lifetime,duration_ns[,function,process,host,time_ns,path]`` in any order, others ignored;
        calls of one lifetime in the order of ``time_ns``, or of the file.
    required : sequence of str
        Columns that must be there.
    by_path : bool
        Keep the calls of different paths apart, nothing left out as warm-up.
    skip_bad : bool
        Count bad lines instead of raising.
    warmup : bool
        Leave out the warm-up, see ``warmup_calls``.
    """
    durations: dict[_Key, array[float]] = defaultdict(lambda: array("d"))
    times: dict[_Key, array[float]] = defaultdict(lambda: array("d"))
    skipped, first = 0, ""
    with _opened(path) as file:
        reader = csv.reader(file, strict=True)
        place = _places(_first_row(reader, path), path, required)
        at_duration, at_time = place["duration_ns"], place.get("time_ns")
        columns = [(place.get(name), default) for name, default in (
            ("function", EVERYTHING), ("build", ""), ("host", ""), ("lifetime", _ONE),
            ("path" if by_path else "", ""),
        )]  # fmt: skip
        for row in _rows(reader, path):
            if not row:
                continue
            try:
                duration = float(row[at_duration])
                moment = float(row[at_time]) if at_time is not None else 0.0
                # not "< 0": a NaN is refused too
                if not (0.0 <= duration < math.inf) or not math.isfinite(moment):
                    raise ValueError(f"a duration is a number of at least 0, not {row[at_duration]}")
                name, build, host, lifetime, frames = [default if at is None else row[at] for at, default in columns]
            except (ValueError, IndexError) as error:
                what = "too few columns" if isinstance(error, IndexError) else str(error)
                if not skip_bad:
                    raise InputError(
                        f"{path}, line {reader.line_num}: {what}", remedy="correct it, or pass --skip-bad"
                    ) from error
                skipped, first = skipped + 1, first or f"line {reader.line_num}: {what}"
                continue
            key = name, build, host, lifetime, frames
            durations[key].append(duration)
            if at_time is not None:
                times[key].append(moment)
    found = [_observed(key, values, times.get(key), warmup and not by_path) for key, values in durations.items()]
    return found, Skipped(lines=skipped, first=first)


def has_paths(path: Path) -> bool:
    """Tell whether a file has a column of call paths."""
    with _opened(path) as file:
        return "path" in [name.strip() for name in _first_row(csv.reader(file, strict=True), path)]


def split_path(text: str, function: str) -> tuple[str, ...]:
    r"""Return the frames of a path, outermost first, the function last; ``;`` between them, ``\;`` in a name."""
    frames, name, letters = [], "", iter(text)
    for letter in letters:
        if letter == "\\":
            following = next(letters, "")
            name += following if following in (";", "\\") else letter + following
        elif letter == ";":
            frames.append(name)
            name = ""
        else:
            name += letter
    frames = [frame for frame in [*frames, name] if frame]
    return tuple(frames if frames and frames[-1] == function else [*frames, function]) if frames else ()


def _observed(key: _Key, durations: array[float], times: array[float] | None, warmup: bool) -> Observed:
    function, build, host, lifetime, frames = key
    values = np.frombuffer(durations, dtype=np.float64)
    start = 0
    if times is not None:
        order = np.argsort(np.frombuffer(times, dtype=np.float64), kind="stable")
        values, start = values[order], int(times[int(order[0])])
    cut = warmup_calls(values) if warmup else 0
    rest = values[cut:]
    few = len(rest) <= PREFIX
    chance = np.random.default_rng(len(rest))
    return Observed(
        function=function or EVERYTHING,
        module="",
        build=build,
        label=None,
        host=host,
        lifetime=lifetime,
        start_ns=start,
        sample=sample_of_durations(rest),
        warmup=cut,
        prefix=rest[:PREFIX].copy(),
        kept=rest.copy() if few else rest[chance.choice(len(rest), PREFIX, replace=False)],
        path=split_path(frames, function) if frames else (),
    )


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    try:
        if str(path) == "-":
            yield io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8-sig", newline="")
        elif path.suffix == ".gz":
            with gzip.open(path, "rt", encoding="utf-8-sig", newline="") as file:
                yield file
        else:
            with path.open(encoding="utf-8-sig", newline="") as file:
                yield file
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is neither a store nor text in UTF-8") from error
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error


def _rows(reader: Iterator[list[str]], path: Path) -> Iterator[list[str]]:
    try:
        yield from reader
    except csv.Error as error:
        line = getattr(reader, "line_num", 0)
        raise InputError(f"{path}, line {line}: {error}", remedy="quote as RFC 4180 says") from error


def _first_row(reader: Iterator[list[str]], path: Path) -> list[str]:
    for row in _rows(reader, path):
        if row:
            return row
    raise InputError(f"{path} is empty", remedy=f"the first line names the columns: {','.join(COMPARED)}")


def _places(header: Sequence[str], path: Path, required: Sequence[str]) -> dict[str, int]:
    names = [name.strip() for name in header]
    missing = [name for name in required if name not in names]
    if missing:
        raise InputError(
            f"{path} has no column {', '.join(missing)}",
            remedy=f"the first line names the columns: {','.join(_KNOWN)}",
        )
    twice = [name for name in _KNOWN if names.count(name) > 1]
    if twice:
        raise InputError(f"{path} has two columns {twice[0]}")
    return {name: at for at, name in enumerate(names)}
