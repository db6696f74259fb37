"""The call paths of a recording: which of them behave alike, and the levels of the behaviours.

Paths and windows are counted in passes of their own, so memory grows with the paths and with the windows, not with
both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import overload

import numpy as np
from numpy.typing import NDArray

from specmine.daemon.worker.jobs import Job, run_job
from specmine.mining.assertions.explanation import Explanation
from specmine.mining.assertions.merged_paths import MergedPaths, merged_paths, unmerged
from specmine.mining.levels.window import Window
from specmine.mining.settings import MiningSettings
from specmine.model.buckets import BUCKETS
from specmine.model.call_path import CallPath
from specmine.model.histogram import EMPTY, Histogram
from specmine.model.observation import Observation, PathHistogram

from .importers.records import Names
from .importers.windows import Cut, Part

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ToExplain:
    """A function with classes whose call paths are known."""

    number: int
    """In the recording."""
    key: str
    module: str
    edges: tuple[int, ...]
    since: int
    """The first part that counts."""
    observations: tuple[Observation, ...]
    """Of the parts that count, oldest first, without paths."""
    parts: tuple[Part, ...]
    """The same parts."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Explained:
    """What call paths say of a function."""

    explanation: Explanation
    paths: PathHistograms
    """All calls over each path."""
    behaviours: tuple[tuple[Window, ...], ...]
    """The windows of each behaviour."""


class PathHistograms(Sequence[PathHistogram]):
    """The histograms of call paths, made one by one when asked for: all at once may be gigabytes."""

    def __init__(self, paths: Sequence[CallPath], buckets: Numbers, calls: Numbers, ends: Numbers) -> None:
        """Take the buckets of all paths and the calls of each, one path after the other, and where each ends."""
        self._paths, self._buckets, self._calls = paths, buckets.astype(np.uint16), calls.astype(np.uint32)
        self._ends = ends
        self._buckets.flags.writeable = self._calls.flags.writeable = False

    def __len__(self) -> int:
        return len(self._paths)

    @overload
    def __getitem__(self, place: int) -> PathHistogram: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[PathHistogram]: ...
    def __getitem__(self, place: int | slice) -> PathHistogram | Sequence[PathHistogram]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        begin, end = int(self._ends[place - 1]) if place else 0, int(self._ends[place])
        histogram = Histogram(self._buckets[begin:end], self._calls[begin:end])
        return PathHistogram(path=self._paths[place], histogram=histogram)

    def class_calls(self, edges: Sequence[int]) -> Numbers:
        """Return the calls per class of each path, shape (paths, classes)."""
        which = np.repeat(np.arange(len(self._paths)), np.diff(self._ends, prepend=0))
        cells = which * (len(edges) + 1) + np.searchsorted(np.asarray(edges), self._buckets, side="right")
        size = len(self._paths) * (len(edges) + 1)
        return np.bincount(cells, weights=self._calls, minlength=size).astype(np.int64).reshape(len(self._paths), -1)


def explained_paths(
    cut: Cut, names: Names, functions: Sequence[ToExplain], mining: MiningSettings
) -> Iterator[tuple[ToExplain, Explained]]:
    """Yield what call paths say of each function.

    Parameters
    ----------
    cut : Cut
    names : Names
    functions : sequence of ToExplain
    mining : MiningSettings
    """
    if not functions:
        return
    since = {each.number: each.since for each in functions}
    pooled = _pooled(cut, names, since)
    numbers = {number: found for number, (found, _) in pooled.items()}
    merged = {}
    for each in functions:
        own = pooled[each.number][1]
        paths = [names.paths[number] for number in numbers[each.number].tolist()]
        merged[each.number] = merged_paths(paths, own.class_calls(()).ravel())
    explanations = {}
    of_merged = _by_group(cut, names, functions, numbers, {number: one.member for number, one in merged.items()})
    for each in functions:
        explanations[each.number] = _explanation(
            each, pooled[each.number][1], merged[each.number], of_merged[each.number], mining
        )
    of_behaviours = _by_group(
        cut, names, functions, numbers,
        {each.number: _behaviours(explanations[each.number], names, numbers[each.number]) for each in functions},
    )  # fmt: skip
    for each in functions:
        windows = tuple(
            tuple(_window(part, names) for part in (of_behaviours[each.number].get(number) or {}).values())
            for number in range(len(explanations[each.number].behaviours))
        )
        yield each, Explained(explanation=explanations[each.number], paths=pooled[each.number][1], behaviours=windows)


def _pooled(cut: Cut, names: Names, since: Mapping[int, int]) -> dict[int, tuple[Numbers, PathHistograms]]:
    """Return for each function the numbers of its paths, and the histograms of these, in the order of paths."""
    found: dict[int, list[tuple[int, Numbers, Numbers]]] = {number: [] for number in since}
    for path, buckets, calls in cut.paths(since):
        found[names.function_of[path]].append((path, buckets, calls))
    result = {}
    for function, every in found.items():
        every.sort(key=lambda one: names.paths[one[0]])
        numbers = np.array([path for path, _, _ in every], dtype=np.int64)
        result[function] = (
            numbers,
            PathHistograms(
                [names.paths[number] for number in numbers.tolist()],
                np.concatenate([buckets for _, buckets, _ in every]),
                np.concatenate([calls for _, _, calls in every]),
                np.cumsum([len(buckets) for _, buckets, _ in every]),
            ),
        )
    return result


def _by_group(
    cut: Cut,
    names: Names,
    functions: Sequence[ToExplain],
    numbers: Mapping[int, Numbers],
    groups: Mapping[int, Numbers],
) -> dict[int, dict[int, dict[int, Part]]]:
    """Return the parts of each group of paths, by function, group and number of the part."""
    group = np.full(len(names.paths), -1, dtype=np.int64)
    first, begin = 0, {}
    for each in functions:
        own = groups[each.number]
        begin[each.number] = first
        group[numbers[each.number]] = np.where(own >= 0, own + first, -1)
        first += int(own.max(initial=-1)) + 1
    owner = np.repeat([each.number for each in functions], np.diff([*begin.values(), first])).tolist() if first else []
    result: dict[int, dict[int, dict[int, Part]]] = {each.number: {} for each in functions}
    for number, parts in cut.groups({each.number: each.since for each in functions}, group):
        result[owner[number]][number - begin[owner[number]]] = parts
    return result


def _explanation(
    function: ToExplain,
    paths: PathHistograms,
    merged: MergedPaths,
    groups: Mapping[int, Mapping[int, Part]],
    mining: MiningSettings,
) -> Explanation:
    observations = []
    for part, observation in zip(function.parts, function.observations, strict=True):
        own = [(merged.paths[which], parts[part.number]) for which, parts in groups.items() if part.number in parts]
        listed = tuple(
            PathHistogram(path=path, histogram=Histogram.from_pairs(of_path.buckets, of_path.calls))
            for path, of_path in own
        )
        observations.append(replace(observation, paths=listed))
    job = Job(
        function=function.key,
        observations=tuple(observations),
        borders=function.edges,
        program_modules=(function.module,),
        mining=mining,
    )
    every = [one.path for one in paths]
    return unmerged(run_job(job), every, paths.class_calls(function.edges), merged)


def _behaviours(explanation: Explanation, names: Names, numbers: Numbers) -> Numbers:
    """Return the number of the behaviour of each path, -1 where it has none."""
    known = {one.path: one.behaviour for one in explanation.paths if one.behaviour is not None}
    return np.array([known.get(names.paths[number], -1) for number in numbers.tolist()], dtype=np.int64)


def _window(part: Part, names: Names) -> Window:
    return Window(
        histogram=histogram_of(part),
        start_ns=part.start_ns,
        end_ns=part.end_ns,
        lifetime=names.lifetimes[part.lifetime],
    )


def histogram_of(part: Part) -> Histogram:
    """Return the durations of a part."""
    if not len(part.buckets):
        return EMPTY
    return Histogram.from_dense(np.bincount(part.buckets, weights=part.calls, minlength=BUCKETS))
