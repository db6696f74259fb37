"""The lifetimes that a user means: read from a file, chosen by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from specmine.analysis.documents import is_store
from specmine.model.errors import InputError

from .from_csv import read_calls
from .from_store import from_store
from .lifetime import FunctionLifetime


def read_lifetimes(path: Path, *, skip_bad: bool = False, warmup: bool = True) -> tuple[list[FunctionLifetime], int]:
    """Return the lifetimes in a store or in recorded durations as CSV (``-``: standard input), and the lines skipped.

    Raises
    ------
    InputError
        If the file is neither, or a line is bad and ``skip_bad`` is not given.
    """
    if str(path) != "-" and is_store(path):
        return from_store(path), 0
    calls = read_calls(path, skip_bad=skip_bad)
    return calls.by_lifetime(warmup=warmup), calls.skipped_lines


def lifetimes_named(observed: Sequence[FunctionLifetime], wanted: str, what: str) -> list[FunctionLifetime]:
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
