"""Recorded durations as CSV: lifetimes of functions, by call path if the file has paths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from specmine.analysis.importers.csv import DURATION, read_csv
from specmine.analysis.importers.records import Faults, Names
from specmine.analysis.importers.registry import opened
from specmine.mining.regression.sample import Floats, sample_of_durations
from specmine.mining.regression.warmup import warmup_calls
from specmine.model.histogram import Histogram

from .lifetime import PREFIX, FunctionLifetime

COMPARED = ("build", "lifetime", DURATION)
"""Columns that a comparison needs."""
TIMED = (DURATION,)
"""Columns that formulas need; without the others all is one build and one lifetime."""
WINDOWS = 10
"""Parts of a lifetime whose durations are compared, to see how far windows vary."""
_ONE = "1"

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecordedCalls:
    """The calls of a file in its order; arrays of one length."""

    names: Names
    paths: Numbers
    """Numbers of call paths in ``names``."""
    lifetimes: Numbers
    durations_ns: Floats
    times_ns: Numbers | None
    skipped_lines: int

    def by_lifetime(self, *, warmup: bool = True) -> list[FunctionLifetime]:
        """Return the lifetimes of each function; calls in the order of time, without the warm-up if it is left out."""
        functions = np.array(self.names.function_of, dtype=np.int64)[self.paths]
        return [self._observed(calls, warmup=warmup) for calls in self._groups(functions, len(self.names.functions))]

    def by_path(self) -> list[FunctionLifetime]:
        """Return the lifetimes of each call path, nothing left out as warm-up; [] if the file has no paths."""
        if not any(path.complete for path in self.names.paths):
            return []
        return [
            self._observed(calls, warmup=False, with_path=True)
            for calls in self._groups(self.paths, len(self.names.paths))
        ]

    def by_window(self) -> list[FunctionLifetime]:
        """Return the calls of each path and window: the calls of each lifetime are cut into ``WINDOWS`` equal parts."""
        functions = np.array(self.names.function_of, dtype=np.int64)[self.paths]
        window = np.zeros(len(self.paths), dtype=np.int64)
        for calls in self._groups(functions, len(self.names.functions)):
            ordered = calls if self.times_ns is None else calls[np.argsort(self.times_ns[calls], kind="stable")]
            window[ordered] = 1 + np.arange(len(calls)) * WINDOWS // len(calls)
        groups = self._groups(self.paths * (WINDOWS + 1) + window, len(self.names.paths) * (WINDOWS + 1))
        return [
            replace(
                self._observed(calls, warmup=False, with_path=True),
                window=int(window[calls[0]]),
                histogram=Histogram.from_durations(self.durations_ns[calls]),
            )
            for calls in groups
        ]

    def _groups(self, numbers: Numbers, size: int) -> list[Numbers]:
        """Return the positions of the calls of each number and lifetime, in the order of first appearance."""
        keys = self.lifetimes * size + numbers
        order = np.argsort(keys, kind="stable")
        starts = np.flatnonzero(np.diff(keys[order], prepend=-1))
        return sorted(np.split(order, starts[1:]), key=lambda calls: int(calls[0])) if len(keys) else []

    def _observed(self, calls: Numbers, *, warmup: bool, with_path: bool = False) -> FunctionLifetime:
        start_ns = 0
        if self.times_ns is not None:
            calls = calls[np.argsort(self.times_ns[calls], kind="stable")]
            start_ns = int(self.times_ns[calls[0]])
        path_number, lifetime = int(self.paths[calls[0]]), int(self.lifetimes[calls[0]])
        path = self.names.paths[path_number]
        build, host = self.names.origins[lifetime]
        durations = self.durations_ns[calls]
        cut = warmup_calls(durations) if warmup else 0
        rest = durations[cut:]
        chance = np.random.default_rng(len(rest))
        return FunctionLifetime(
            function=path.frames[-1].name,
            module="",
            build=build,
            label=None,
            host=host,
            lifetime=self.names.lifetimes[lifetime] or _ONE,
            start_ns=start_ns,
            sample=sample_of_durations(rest),
            warmup=cut,
            first_ns=rest[:PREFIX].copy(),
            drawn_ns=rest.copy() if len(rest) <= PREFIX else rest[chance.choice(len(rest), PREFIX, replace=False)],
            path=tuple(frame.name for frame in path.frames) if with_path and path.complete else (),
        )


def read_calls(path: Path, *, required: Sequence[str] = COMPARED, skip_bad: bool = False) -> RecordedCalls:
    """Read recorded durations.

    Parameters
    ----------
    path : Path
        Columns ``build,lifetime,duration_ns[,function,host,time_ns,path]`` in any order, others ignored; ``-`` for
        standard input.
    required : sequence of str
        Columns that must be there.
    skip_bad : bool
        Count bad lines instead of raising.

    Raises
    ------
    InputError
        If the file cannot be read, lacks a column, or has a bad line that is not to be skipped.
    """
    names, faults = Names(), Faults(str(path), skip=skip_bad)
    with opened(str(path)) as (file, _, _):
        chunks = list(read_csv(file, names, faults, required=required, with_origin=True))
    times = [each.times_ns for each in chunks if each.times_ns is not None]
    return RecordedCalls(
        names=names,
        paths=_joined([each.paths for each in chunks]).astype(np.int64),
        lifetimes=_joined([each.lifetimes for each in chunks]).astype(np.int64),
        durations_ns=_joined([each.durations_ns for each in chunks]).astype(np.float64),
        times_ns=np.concatenate(times) if times else None,
        skipped_lines=faults.skipped,
    )


def _joined(arrays: Sequence[NDArray[np.generic]]) -> NDArray[np.generic]:
    return np.concatenate(arrays) if arrays else np.zeros(0)
