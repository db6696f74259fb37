"""The lifetimes that a user means: read from a file, chosen by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from specmine.analysis.documents import is_store, schema_of
from specmine.mining.assertions.expression import Formula
from specmine.model import text
from specmine.model.errors import InputError
from specmine.store import Where

from .from_csv import read_calls
from .from_store import (
    from_store,
    seen_in_store,
    specified,
    stated_behaviours,
    whole_windows_of_store,
    windows_of_store,
)
from .lifetime import FunctionLifetime
from .programs import KnownProgram, programs_in_store
from .seen import SeenLifetime, seen_in

L = TypeVar("L", FunctionLifetime, SeenLifetime)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecordedLifetimes:
    """What a store or a file of durations holds about lifetimes."""

    observed: Sequence[FunctionLifetime]
    seen: Sequence[SeenLifetime]
    """All lifetimes, also those in which no call was timed."""
    skipped_lines: int = 0
    by_path: Callable[[], Sequence[FunctionLifetime]] = tuple
    """Reads the same calls by call path, as far as paths are known."""
    by_window: Callable[[], Sequence[FunctionLifetime]] = tuple
    """Reads the newest windows of each function, with all their calls; nothing where a source has no windows."""
    stated: Mapping[tuple[str, str], tuple[Formula, ...]] = field(default_factory=dict)
    """Function and module to the behaviours that were stated of it."""
    programs: Callable[[], Mapping[str, KnownProgram]] = dict
    """The program of each build, as far as it is known."""
    specified: Sequence[Mapping[str, Any]] = ()
    """The functions of the specification, as in ``specmine.specification/1``."""


def read_lifetimes(path: Where, *, skip_bad: bool = False, warmup: bool = True) -> RecordedLifetimes:
    """Return the lifetimes in a store or in recorded durations as CSV (``-``: standard input).

    Raises
    ------
    InputError
        If the file is neither, or a line is bad and ``skip_bad`` is not given.
    """
    if not isinstance(path, Path) or (str(path) != "-" and is_store(path)):
        functions = specified(path)
        return RecordedLifetimes(
            observed=from_store(path, warmup=warmup),
            seen=seen_in_store(path),
            by_path=lambda: windows_of_store(path),
            by_window=lambda: whole_windows_of_store(path),
            stated=stated_behaviours(functions),
            specified=functions,
            programs=lambda: programs_in_store(path),
        )
    schema = schema_of(path)
    if schema is not None:
        raise InputError(
            f"{path} is {text.escaped(schema[:60])}, which holds no single runs",
            remedy="give stores, as --store FILE of mine fills them",
        )
    calls = read_calls(path, skip_bad=skip_bad)
    observed = calls.by_lifetime(warmup=warmup)
    return RecordedLifetimes(
        observed=observed, seen=seen_in(observed), skipped_lines=calls.skipped_lines, by_path=calls.by_path
    )


def lifetimes_named(observed: Sequence[L], wanted: str, what: str) -> list[L]:
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
    for name in ("host", "lifetime"):
        found = [each for each in observed if getattr(each, name) == wanted]
        if found:
            return found
    known = sorted({each.shown for each in observed})
    seen = ", ".join(known[:8]) + (", ..." if len(known) > 8 else "")
    raise InputError(f"{what} names no build, host or lifetime: {wanted!r}", remedy=f"builds there: {seen or 'none'}")
