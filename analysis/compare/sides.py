"""The two sides of a comparison: which lifetimes a user means by BASE and NEW."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from specmine.analysis.documents import is_store
from specmine.analysis.lifetimes.lifetime import FunctionLifetime
from specmine.analysis.lifetimes.programs import check_same_program, of_builds
from specmine.analysis.lifetimes.seen import SeenLifetime
from specmine.analysis.lifetimes.selection import RecordedLifetimes, lifetimes_named, read_lifetimes
from specmine.mining.assertions.expression import Formula
from specmine.mining.regression.comparison import LifetimeSample
from specmine.model.errors import InputError
from specmine.model.globs import fits
from specmine.store import Where

Key = tuple[str, str]
"""Function and module: what makes it the same in another build."""
ByFunction = Mapping[Key, Sequence[FunctionLifetime]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sides:
    """The lifetimes of both sides by function, and what the sides were called."""

    names: tuple[str, str]
    files: tuple[Where, Where]
    base: ByFunction
    new: ByFunction
    seen: tuple[Sequence[SeenLifetime], Sequence[SeenLifetime]]
    """All lifetimes of each side, also those in which no call was timed."""
    by_path: Callable[[], tuple[ByFunction, ByFunction]] = lambda: ({}, {})
    """Reads the calls of both sides by call path."""
    by_window: Callable[[], tuple[ByFunction, ByFunction]] = lambda: ({}, {})
    """Reads the newest windows of both sides, once."""
    stated: Mapping[Key, tuple[Formula, ...]] = field(default_factory=dict)
    """Behaviours that were stated of functions."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Module of the base to the name of the same program on the new side."""
    skipped_lines: int = 0


def read_sides(
    positional: tuple[str | None, str | None],
    store: Where | None,
    labels: tuple[str | None, str | None],
    *,
    skip_bad: bool,
    warmup: bool,
) -> Sides:
    """Return the sides that a user means.

    Raises
    ------
    InputError
        If they are not named in one of the three ways, or cannot be read.
    """
    file, names = _meant(*positional, store, labels)
    files = (file, file) if file is not None else (Path(names[0]), Path(names[1]))
    read = {each: read_lifetimes(each, skip_bad=skip_bad, warmup=warmup) for each in dict.fromkeys(files)}
    if file is None:
        _check_programs(names, (read[files[0]], read[files[1]]))
        return _sides(names, files, (read[files[0]], read[files[1]]))
    whole = read[file]
    if not whole.observed:
        return replace(_sides(names, files, (whole, whole)), skipped_lines=whole.skipped_lines)
    chosen = [_narrowed(whole, name, what) for name, what in zip(names, ("BASE", "NEW"), strict=True)]
    _check_programs(names, (chosen[0], chosen[1]))
    return replace(_sides(names, files, (chosen[0], chosen[1])), skipped_lines=whole.skipped_lines)


def _check_programs(names: tuple[str, str], recorded: tuple[RecordedLifetimes, RecordedLifetimes]) -> None:
    first, second = (of_builds(each.programs(), {one.build for one in each.seen}) for each in recorded)
    check_same_program(names, (first, second))


def sides_of_builds(recorded: RecordedLifetimes, file: Where, base: str, new: str) -> Sides:
    """Return two builds of one source as sides."""

    def of(build: str) -> RecordedLifetimes:
        return replace(
            recorded,
            observed=[each for each in recorded.observed if each.build == build],
            seen=[each for each in recorded.seen if each.build == build],
            by_path=lambda: [each for each in recorded.by_path() if each.build == build],
            by_window=lambda: [each for each in recorded.by_window() if each.build == build],
        )

    return _sides((base, new), (file, file), (of(base), of(new)))


def _sides(
    names: tuple[str, str], files: tuple[Where, Where], recorded: tuple[RecordedLifetimes, RecordedLifetimes]
) -> Sides:
    first, second = recorded
    renamed = other_name(*({each.module for each in side.observed} for side in recorded))

    def named(observed: Sequence[FunctionLifetime]) -> list[FunctionLifetime]:
        return [replace(each, module=renamed.get(each.module, each.module)) for each in observed]

    def known(seen: SeenLifetime) -> SeenLifetime:
        names = frozenset((name, renamed.get(module, module)) for name, module in seen.not_counted)
        return replace(seen, not_counted=names)

    return Sides(
        names=names,
        files=files,
        base=_by_function(named(first.observed)),
        new=_by_function(second.observed),
        seen=([known(each) for each in first.seen], second.seen),
        by_path=lambda: (_by_function(named(first.by_path())), _by_function(second.by_path())),
        by_window=cache(lambda: (_by_function(named(first.by_window())), _by_function(second.by_window()))),
        stated={
            **second.stated,
            **{(name, renamed.get(module, module)): each for (name, module), each in first.stated.items()},
        },
        renamed=renamed,
        skipped_lines=first.skipped_lines + second.skipped_lines,
    )


def _narrowed(whole: RecordedLifetimes, wanted: str, what: str) -> RecordedLifetimes:
    observed = lifetimes_named(whole.observed, wanted, what)
    runs = {(each.build, each.host, each.lifetime) for each in observed}

    def by_path() -> list[FunctionLifetime]:
        return [each for each in whole.by_path() if (each.build, each.host, each.lifetime) in runs]

    def by_window() -> list[FunctionLifetime]:
        return [each for each in whole.by_window() if (each.build, each.host, each.lifetime) in runs]

    builds = {each.build for each in observed} if wanted not in {each.lifetime for each in observed} else set()
    hosts = {each.host for each in observed}
    by_host = wanted in hosts and len(builds) > 0 and not any(wanted in (each.label, each.build) for each in observed)
    seen = [
        each for each in whole.seen if each.run in runs or (each.host == wanted if by_host else each.build in builds)
    ]
    return replace(whole, observed=observed, seen=seen, by_path=by_path, by_window=by_window, skipped_lines=0)


def _meant(
    first: str | None, second: str | None, store: Where | None, labels: tuple[str | None, str | None]
) -> tuple[Where | None, tuple[str, str]]:
    """Return the one file to read, None if there are two, and the names of both sides."""
    if store is not None:
        if not is_store(store):
            raise InputError(f"{store} is not a store", remedy="give a CSV file without --store")
        names = labels if labels != (None, None) and first is None else (first, second)
        if names[0] is not None and names[1] is not None and (names is labels or labels == (None, None)):
            return store, (names[0], names[1])
    elif first is not None and second is None and labels[0] is not None and labels[1] is not None:
        return Path(first), (labels[0], labels[1])
    elif first is not None and second is not None and labels == (None, None):
        return None, (first, second)
    raise InputError(
        "say which two: compare BASE NEW (two stores), compare --store FILE BASE NEW, or"
        " compare FILE --base LABEL --new LABEL",
        remedy="see `specmine compare --help`",
    )


def other_name(base: Set[str], new: Set[str]) -> dict[str, str]:
    """Map base module to new module if the program's file changed its name, as from ``app-1.2`` to ``app-1.3``."""
    left, right = base - new, new - base
    return {next(iter(left)): next(iter(right))} if len(left) == len(right) == 1 else {}


def _by_function(observed: Sequence[FunctionLifetime]) -> dict[Key, list[FunctionLifetime]]:
    found: dict[Key, list[FunctionLifetime]] = {}
    for each in observed:
        found.setdefault(each.key, []).append(each)
    return found


def chosen_functions(sides: Sides, globs: Sequence[str]) -> list[Key]:
    """Return the functions to compare: those of both sides, all that are asked for by name."""
    known = {**sides.base, **sides.new}
    if not globs:
        return [key for key in known if key in sides.base and key in sides.new]
    chosen = [key for key in known if any(fits(*key, glob) for glob in globs)]
    if not chosen:
        raise InputError(f"no function matches {', '.join(globs)}", remedy="without --function all are compared")
    return chosen


def samples(observed: Sequence[FunctionLifetime]) -> list[LifetimeSample]:
    """Return what the comparison needs of each lifetime."""
    return [each.as_sample() for each in observed]


def calls_of(sides: Sides, key: Key) -> int:
    """Return the calls of a function on both sides."""
    return sum(each.sample.calls for each in [*sides.base.get(key, ()), *sides.new.get(key, ())])
