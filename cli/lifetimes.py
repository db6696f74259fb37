"""Where compare, check and report take lifetimes from: recorded durations as CSV, or a store."""

from __future__ import annotations

import csv
import gzip
import io
import math
import sys
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO

import numpy as np

from specmine.mining.change.sample import Floats, Sample, sample_of_counts, sample_of_durations
from specmine.mining.change.verdicts import LifetimeSample
from specmine.mining.change.warmup import warmup_calls
from specmine.mining.observation import Function
from specmine.probes.errors import InputError

_SQLITE = b"SQLite format 3\0"
_REQUIRED = ("build", "lifetime", "duration_ns")
_OPTIONAL = ("function", "process", "host", "time_ns", "path")
EVERYTHING = "all"
"""Name of the function where a file names none."""
PREFIX = 256
"""So many durations of each lifetime are kept in their order."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Observed:
    """One function in one lifetime."""

    function: str
    module: str
    build: str
    """Build-id, or the label in a CSV."""
    label: str | None
    host: str
    lifetime: str
    start_ns: int
    """When it began, UTC; 0: unknown."""
    sample: Sample
    rate: float | None = None
    """Calls per watched second."""
    warmup: int = 0
    """Calls left out as warm-up."""
    prefix: Floats | None = None
    """The first durations in their order, if the source has an order."""

    @property
    def key(self) -> tuple[str, str]:
        """What makes it the same function in another build."""
        return self.function, self.module

    @property
    def shown(self) -> str:
        """The build as people call it."""
        return self.label or self.build[:12]

    def as_lifetime(self) -> LifetimeSample:
        """Return what the comparison needs."""
        return LifetimeSample(lifetime=self.lifetime, host=self.host, sample=self.sample, rate=self.rate)


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """Lines of a file that could not be used."""

    lines: int = 0
    first: str = ""


def is_store(path: Path) -> bool:
    """Tell whether a file is a database."""
    try:
        with path.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error


def read_lifetimes(path: Path, *, skip_bad: bool = False, warmup: bool = True) -> tuple[list[Observed], Skipped]:
    """Read a store, or recorded durations as CSV (``-``: standard input).

    Raises
    ------
    InputError
        If the file is neither, or a line is bad and ``skip_bad`` is not given.
    """
    if str(path) != "-" and is_store(path):
        return from_store(path), Skipped()
    return from_csv(path, skip_bad=skip_bad, warmup=warmup)


def from_store(path: Path) -> list[Observed]:
    """Return all lifetimes that a store remembers."""
    from specmine.daemon.store import Store  # noqa: PLC0415

    with Store.open(path, read_only=True) as store:
        contents, summaries, builds = store.load(newest=0), store.summaries(), store.builds()
    labels = {each.build_id: each.label for each in builds}
    hosts = {each.boot_id: each.hostname for each in contents.hosts}
    functions = {each.key: each for each in contents.functions}
    lifetimes = {each.id: each for each in contents.lifetimes}
    # the better known kind of each function, so that nothing is compared across kinds of probes
    kinds: dict[tuple[str, str], int] = defaultdict(int)
    for each in summaries:
        kinds[_name(each.function, functions), each.kind.value] += 1
    found = []
    for each in summaries:
        name = _name(each.function, functions)
        if any(kinds[name, other] > kinds[name, each.kind.value] or
               (kinds[name, other] == kinds[name, each.kind.value] and other > each.kind.value)
               for other in ("time", "path") if kinds[name, other]):  # fmt: skip
            continue
        function, lifetime = functions.get(each.function), lifetimes.get(each.lifetime)
        if function is None:
            continue
        build = lifetime.build_id if lifetime is not None else function.build_id
        found.append(
            Observed(
                function=function.name,
                module=function.module,
                build=build,
                label=labels.get(build),
                host=hosts.get(each.lifetime.split(":", maxsplit=1)[0], ""),
                lifetime=each.lifetime,
                start_ns=each.start_utc_ns,
                sample=sample_of_counts(each.counts, each.bias_ns),
                rate=each.calls / (each.watched_ns * 1e-9) if each.watched_ns else None,
                warmup=each.warmup_calls,
            )
        )
    return _kept_apart(found)


def from_csv(path: Path, *, skip_bad: bool = False, warmup: bool = True) -> tuple[list[Observed], Skipped]:
    """Return the lifetimes of recorded durations.

    Parameters
    ----------
    path : Path
        Columns ``build,lifetime,duration_ns[,function,process,host,time_ns]`` in any order, others ignored; calls
        of one lifetime in the order of ``time_ns``, or of the file.
    skip_bad : bool
        Count bad lines instead of raising.
    warmup : bool
        Leave out the warm-up, see ``warmup_calls``.
    """
    durations: dict[tuple[str, str, str, str], array[float]] = defaultdict(lambda: array("d"))
    times: dict[tuple[str, str, str, str], array[float]] = defaultdict(lambda: array("d"))
    skipped, first = 0, ""
    with _opened(path) as file:
        reader = csv.reader(file, strict=True)
        place = _places(_first_row(reader, path), path)
        at_build, at_lifetime, at_duration = (place[name] for name in _REQUIRED)
        at_function, at_host, at_time = place.get("function"), place.get("host"), place.get("time_ns")
        rows = _rows(reader, path)
        for row in rows:
            if not row:
                continue
            try:
                duration = float(row[at_duration])
                moment = float(row[at_time]) if at_time is not None else 0.0
                # not "< 0": a NaN is refused too
                if not (0.0 <= duration < math.inf) or not math.isfinite(moment):
                    raise ValueError(f"a duration is at least 0, not {row[at_duration]}")
                key = (
                    row[at_function] if at_function is not None else EVERYTHING,
                    row[at_build],
                    row[at_host] if at_host is not None else "",
                    row[at_lifetime],
                )
            except (ValueError, IndexError) as error:
                what = "too few columns" if isinstance(error, IndexError) else str(error)
                if not skip_bad:
                    raise InputError(
                        f"{path}, line {reader.line_num}: {what}", remedy="correct it, or pass --skip-bad"
                    ) from error
                skipped, first = skipped + 1, first or f"line {reader.line_num}: {what}"
                continue
            durations[key].append(duration)
            if at_time is not None:
                times[key].append(moment)
    return [_observed(key, values, times.get(key), warmup) for key, values in durations.items()], Skipped(
        lines=skipped, first=first
    )


def side(observed: Sequence[Observed], wanted: str, what: str) -> list[Observed]:
    """Return the lifetimes that a user means: by label, beginning of a build-id, host or lifetime.

    Raises
    ------
    InputError
        If it names nothing, or build-ids of which several begin so.
    """
    exact = [each for each in observed if wanted in (each.label, each.build)]
    if exact:
        return exact
    builds = sorted({each.build for each in observed if wanted and each.build.startswith(wanted)})
    if len(builds) > 1:
        raise InputError(f"{len(builds)} builds begin with {wanted}", remedy="give more digits")
    if builds:
        return [each for each in observed if each.build == builds[0]]
    for field in ("host", "lifetime"):
        found = [each for each in observed if getattr(each, field) == wanted]
        if found:
            return found
    known = sorted({each.shown for each in observed})
    seen = ", ".join(known[:8]) + (", ..." if len(known) > 8 else "")
    raise InputError(f"{what} names no build, host or lifetime: {wanted!r}", remedy=f"builds there: {seen or 'none'}")


def _name(key: str, functions: Mapping[str, Function]) -> str:
    found = functions.get(key)
    return f"{found.name}\0{found.module}" if found is not None else key


def _kept_apart(found: list[Observed]) -> list[Observed]:
    """Give two functions of one name in one module and lifetime names of their own."""
    seen: dict[tuple[str, str, str], int] = defaultdict(int)
    renamed = []
    for each in found:
        key = (*each.key, each.lifetime)
        seen[key] += 1
        renamed.append(each if seen[key] == 1 else replace(each, function=f"{each.function}~{seen[key]}"))
    return renamed


def _observed(
    key: tuple[str, str, str, str], durations: array[float], times: array[float] | None, warmup: bool
) -> Observed:
    function, build, host, lifetime = key
    values = np.frombuffer(durations, dtype=np.float64)
    start = 0
    if times is not None:
        order = np.argsort(np.frombuffer(times, dtype=np.float64), kind="stable")
        values, start = values[order], int(times[int(order[0])])
    cut = warmup_calls(values) if warmup else 0
    return Observed(
        function=function or EVERYTHING,
        module="",
        build=build,
        label=None,
        host=host,
        lifetime=lifetime,
        start_ns=start,
        sample=sample_of_durations(values[cut:]),
        warmup=cut,
        prefix=values[cut : cut + PREFIX].copy(),
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
    raise InputError(f"{path} is empty", remedy=f"the first line names the columns: {','.join(_REQUIRED)}")


def _places(header: Sequence[str], path: Path) -> dict[str, int]:
    names = [name.strip() for name in header]
    missing = [name for name in _REQUIRED if name not in names]
    if missing:
        raise InputError(
            f"{path} has no column {', '.join(missing)}",
            remedy=f"the first line names the columns: {','.join((*_REQUIRED, *_OPTIONAL))}",
        )
    twice = [name for name in (*_REQUIRED, *_OPTIONAL) if names.count(name) > 1]
    if twice:
        raise InputError(f"{path} has two columns {twice[0]}")
    return {name: at for at, name in enumerate(names)}
