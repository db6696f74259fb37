"""The same mining as of a running program, over recorded durations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, cast, overload

import numpy as np
from numpy.typing import NDArray

from specmine.analysis.importers.oddities import Resolution, oddities
from specmine.analysis.importers.records import Faults, Names
from specmine.analysis.importers.registry import opened, reader_of
from specmine.analysis.importers.spool import Spool
from specmine.analysis.importers.windows import Cut, Part
from specmine.daemon.config.settings import Settings
from specmine.daemon.controller import reasons
from specmine.daemon.controller.call_counts import CallCounts, ProbeState
from specmine.daemon.controller.explanation import explained
from specmine.daemon.controller.function import FunctionState, Identity
from specmine.daemon.controller.history import History, Totals
from specmine.daemon.controller.inference import InferenceState
from specmine.daemon.controller.phase import State
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.documents.levels import Levels
from specmine.daemon.documents.specification import specification
from specmine.daemon.worker.jobs import Job, run_job
from specmine.mining.assertions.expression import Formula, evaluate, named_edges, shared_names
from specmine.mining.borders.inference import Inference, infer_stable_borders
from specmine.mining.levels.estimate import level_of
from specmine.mining.levels.window import Window, windows_of, windows_of_class
from specmine.model.buckets import BUCKETS
from specmine.model.function import Function, Reason
from specmine.model.histogram import Histogram
from specmine.model.json_codec import encode
from specmine.model.observation import Kind, Observation, PathHistogram
from specmine.model.pooling import pooled

NEWEST = 1000
"""Observations of a function that conclusions are drawn from; older ones only count."""

_MATTERS = 0.4
"""Steps finer than this share of the resolution disappear in it."""

Progress = Callable[[int, float | None], None]
"""Told how many calls were read so far, and the share of the file, None for a pipe."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """What was learned from a recording."""

    document: dict[str, Any]
    """``specmine.specification/1`` with histograms."""
    records: int
    skipped: int


def analyze(
    path: str,
    *,
    wanted: str | None = None,
    skip_bad: bool = False,
    functions: Sequence[str] = (),
    settings: Settings,
    progress: Progress = lambda *_: None,
) -> Analysis:
    """Mine the durations that a file holds.

    Parameters
    ----------
    path : str
        File, ``-`` for standard input; may be packed with gzip.
    wanted : str, optional
        One of ``FORMATS``; by default it is recognised by the beginning of the file.
    skip_bad : bool
        Count lines that cannot be read, instead of stopping at the first.
    functions : sequence of str
        Globs; functions of other names are left out.
    settings : Settings
    progress : callable

    Raises
    ------
    InputError
        If the file cannot be read, its format is unknown, or a line is bad.
    """
    source = "standard input" if path == "-" else path
    names, faults, resolution = Names(), Faults(source, skip=skip_bad), Resolution()
    with closing(Spool()) as spool:
        with opened(path) as (file, position, size):
            found, reader = reader_of(file, source, wanted)
            for chunk in reader(file, names, faults):
                spool.put(chunk)
                resolution.add(chunk)
                progress(spool.records, position() / size if size else None)
        cut = Cut(spool, names, settings.mining.minimum_calls, _MATTERS * settings.mining.resolution_ns)
        learned = {
            each.function.key: (each, levels)
            for each, levels in _learned(cut, names, settings)
            if not functions or any(fnmatchcase(each.function.name, glob) for glob in functions)
        }
    states = {key: each for key, (each, _) in learned.items()}
    state = ControllerState(settings=settings, functions=states)
    document = specification(state, detail=True, levels={key: levels for key, (_, levels) in learned.items()})
    for entry in document["functions"]:
        _with_histograms(entry, states[entry["key"]])
    document["program"] |= {"lifetimes": []}
    document["collection"] |= {
        "seconds": cut.seconds,
        "overhead_budget_ratio": 0.0,
        "source": {
            "path": path,
            "format": found,
            "records": spool.records,
            "skipped": faults.skipped,
            "first_skipped": {"line": faults.first[0], "reason": faults.first[1]} if faults.first else None,
            "lifetimes": len(names.lifetimes),
            "timed": cut.timed,
            "warnings": list(oddities(names, resolution)),
        },
    }
    return Analysis(document=document, records=spool.records, skipped=faults.skipped)


def _learned(cut: Cut, names: Names, settings: Settings) -> Iterator[tuple[FunctionState, Levels]]:
    for number, parts in cut.parts():
        frame = names.functions[number]
        function = Function(build_id="", offset=number, name=frame.name, module=frame.module, in_program=True)
        timed = sum(int(part.calls.sum()) for part in parts)
        counts = CallCounts(
            calls=timed + names.inner[number],
            watched_ns=sum(part.end_ns - part.start_ns for part in parts) if cut.timed else 0,
        )
        totals = Totals(
            timed=timed,
            inner=names.inner[number],
            censored=names.censored[number],
            observations=len(parts),
        )
        state = FunctionState(
            identity=Identity(function=function),
            probe=ProbeState(counts=counts),
            history=History(totals=totals),
        )
        yield _of_function(state, parts, names, settings)


def _of_function(
    function: FunctionState, parts: Sequence[Part], names: Names, settings: Settings
) -> tuple[FunctionState, Levels]:
    """Return what the parts of a function say of it, and its levels by all of them."""
    mining = settings.mining
    seen = [_observation(function.function, part, names) for part in parts[-NEWEST:]]
    chain, _ = infer_stable_borders(seen, {}, None, mining)
    now_ns = parts[-1].end_ns
    function = replace(
        function,
        history=replace(function.history, histogram=Histogram.sum(map(_histogram, parts)), tried=len(parts)),
        inference=InferenceState(chain=chain),
    )
    if not chain.stable:
        enough = sum(each.timed >= mining.minimum_calls for each in seen)
        state, reason = _unsettled(enough, chain, settings, timed=parts[-1].timed)
        return function.moved(state, reason, now_ns), Levels(whole=level_of(windows_of(seen)))
    agreed = [part for part in parts[-NEWEST:] if chain.start_ns is None or part.start_ns >= chain.start_ns]
    told = seen[-len(agreed) :]
    function = replace(
        function,
        history=replace(function.history, paths=(pooled(told),)),
        inference=replace(function.inference, learned=chain),
    )
    function = _stable(function, parts, told, chain, names, settings)
    return function, _levels(function, agreed, told, chain.edges, names)


def _stable(
    function: FunctionState,
    parts: Sequence[Part],
    told: Sequence[Observation],
    chain: Inference,
    names: Names,
    settings: Settings,
) -> FunctionState:
    """Return a function whose durations are stable, its call paths explained if it has borders."""
    now_ns = parts[-1].end_ns
    if not chain.borders:
        return function.moved(State.SINGLE, None, now_ns)
    if not any(names.paths[number].complete for part in parts for number in np.unique(part.paths).tolist()):
        return function.moved(State.UNEXPLAINED, _no_paths(), now_ns)
    job = Job(
        function=function.key,
        observations=tuple(told),
        borders=chain.edges,
        program_modules=(function.function.module,),
        mining=settings.mining,
    )
    return explained(function, run_job(job), now_ns, settings)


def _levels(
    function: FunctionState, parts: Sequence[Part], told: Sequence[Observation], edges: Sequence[int], names: Names
) -> Levels:
    result = function.explanation.result
    behaviours = result.behaviours if result is not None else ()
    shared = shared_names(each.path for each in result.paths) if result is not None else frozenset()
    edges = result.borders if result is not None else edges
    return Levels(
        whole=level_of(windows_of(told)),
        behaviours=tuple(
            level_of([_window(part, names, of) for part in parts])
            for of in (_members(each.formula, shared, parts, names) for each in behaviours)
        ),
        classes=tuple(level_of(windows_of_class(told, edges, at, 0.0)) for at in range(len(edges) + 1))
        if edges
        else (),
    )


def _members(formula: Formula, shared: frozenset[str], parts: Sequence[Part], names: Names) -> NDArray[np.int64]:
    """Return the numbers of the complete paths that fulfil a formula."""
    numbers = np.unique(np.concatenate([part.paths for part in parts])).tolist()
    return np.array(
        [
            number
            for number in numbers
            if names.paths[number].complete and evaluate(formula, named_edges(names.paths[number], shared))
        ],
        dtype=np.int64,
    )


def _window(part: Part, names: Names, paths: NDArray[np.int64]) -> Window:
    """Return the calls of a part over some call paths."""
    kept = np.isin(part.paths, paths)
    return Window(
        histogram=Histogram.from_pairs(part.buckets[kept], part.calls[kept]),
        start_ns=part.start_ns,
        end_ns=part.end_ns,
        lifetime=names.lifetimes[part.lifetime],
    )


def _with_histograms(entry: dict[str, Any], function: FunctionState) -> None:
    """Add to each behaviour the durations of the calls over its paths."""
    result = function.explanation.result
    if len(entry["behaviours"]) < 2 or result is None:
        return
    owner = {path.path: path.behaviour for path in result.paths}
    parts: dict[int | None, list[Histogram]] = {}
    for observation in function.history.paths:
        for path in observation.paths:
            parts.setdefault(owner.get(path.path), []).append(path.histogram)
    place = {behaviour.expression: number for number, behaviour in enumerate(result.behaviours)}
    for behaviour in entry["behaviours"]:
        behaviour["histogram"] = encode(Histogram.sum(parts.get(place[behaviour["expression"]], ())))


def _unsettled(enough: int, chain: Inference, settings: Settings, *, timed: bool) -> tuple[State, Reason]:
    mining = settings.mining
    need = mining.chain_observations
    if enough < need:
        text = f"{enough} of {need} observations of at least {mining.minimum_calls} calls"
        return State.TIMING, Reason(code="learning", text=text, remedy="record more calls")
    # without times the length of a recording is not known
    course = chain.course if timed or chain.course is None else replace(chain.course, span_ns=0)
    unsteady = reasons.unsteady(replace(chain, course=course))
    if unsteady is not None:
        return State.UNSTABLE, unsteady
    text = f"only the last {chain.chain} of {enough} observations agree; {need} must"
    remedy = "record longer, or under a steadier load"
    if chain.ended_by == "level":
        text += f": its durations became {chain.step:.2g} times as long there"
        return State.UNSTABLE, Reason(code="level", text=text, remedy=remedy)
    return State.UNSTABLE, Reason(code="unstable", text=text, remedy=remedy)


def _no_paths() -> Reason:
    return Reason(code="no-paths", text="the recording says no call path of it", remedy="record call paths as well")


def _histogram(part: Part) -> Histogram:
    return Histogram.from_dense(np.bincount(part.buckets, weights=part.calls, minlength=BUCKETS))


def _observation(function: Function, part: Part, names: Names) -> Observation:
    histogram = _histogram(part)
    return Observation(
        function=function.key,
        lifetime=names.lifetimes[part.lifetime],
        kind=Kind.PATH,
        start_ns=part.start_ns,
        end_ns=part.end_ns,
        histogram=histogram,
        calls=histogram.total,
        watched_ns=part.end_ns - part.start_ns if part.timed else 0,
        paths=cast("tuple[PathHistogram, ...]", _Unpacked(part, names)),
    )


class _Unpacked(Sequence[PathHistogram]):
    """The histograms of the paths of a part, made one by one when asked for: all at once may be gigabytes."""

    def __init__(self, part: Part, names: Names) -> None:
        self._part, self._names = part, names
        self._at = np.flatnonzero(np.diff(part.paths, prepend=-1))

    def __len__(self) -> int:
        return len(self._at)

    @overload
    def __getitem__(self, place: int) -> PathHistogram: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[PathHistogram]: ...
    def __getitem__(self, place: int | slice) -> PathHistogram | Sequence[PathHistogram]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        begin = int(self._at[place])
        end = int(self._at[place + 1]) if place + 1 < len(self._at) else len(self._part.paths)
        histogram = Histogram.from_pairs(self._part.buckets[begin:end], self._part.calls[begin:end])
        return PathHistogram(path=self._names.paths[int(self._part.paths[begin])], histogram=histogram)
