"""The two sides of a comparison: which lifetimes a user means by BASE and NEW."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from pathlib import Path

from specmine.analysis.documents import is_store
from specmine.analysis.lifetimes.lifetime import FunctionLifetime
from specmine.analysis.lifetimes.selection import lifetimes_named, read_lifetimes
from specmine.mining.regression.comparison import LifetimeSample
from specmine.model.errors import InputError
from specmine.model.globs import fits

Key = tuple[str, str]
"""Function and module: what makes it the same in another build."""


class Sides:
    """The lifetimes of both sides by function, and what the sides were called."""

    def __init__(
        self,
        positional: tuple[str | None, str | None],
        store: Path | None,
        labels: tuple[str | None, str | None],
        *,
        skip_bad: bool,
        warmup: bool,
    ) -> None:
        self.skipped_lines = 0
        self._options = {"skip_bad": skip_bad, "warmup": warmup}
        first, second = positional
        file, names = _meant(first, second, store, labels)
        self.names = names
        self.files = (file, file) if file is not None else (Path(names[0]), Path(names[1]))
        if file is not None:
            everything = self._read(file)
            chosen = (
                [lifetimes_named(everything, name, what) for name, what in zip(names, ("BASE", "NEW"), strict=True)]
                if everything
                else [[], []]
            )
        else:
            chosen = [self._read(Path(name)) for name in names]
        self.renamed = other_name(*({each.module for each in side} for side in chosen))
        """Module of the base to the name of the same program on the new side."""
        base = [replace(each, module=self.renamed.get(each.module, each.module)) for each in chosen[0]]
        self.base, self.new = _by_function(base), _by_function(chosen[1])

    def _read(self, path: Path) -> list[FunctionLifetime]:
        found, skipped = read_lifetimes(path, **self._options)
        self.skipped_lines += skipped
        return found


def _meant(
    first: str | None, second: str | None, store: Path | None, labels: tuple[str | None, str | None]
) -> tuple[Path | None, tuple[str, str]]:
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
    return [each.as_sample() for each in observed]


def calls_of(sides: Sides, key: Key) -> int:
    return sum(each.sample.calls for each in [*sides.base.get(key, ()), *sides.new.get(key, ())])
