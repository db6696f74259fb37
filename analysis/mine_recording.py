"""The same mining as of a running program, over recorded durations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, cast

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
from specmine.mining.borders.inference import Inference, infer_stable_borders, unstretched
from specmine.mining.borders.stretch import STABLE_Z
from specmine.mining.levels.estimate import level_of
from specmine.mining.levels.window import windows_of, windows_of_class
from specmine.mining.settings import MiningSettings
from specmine.model.function import Function, Reason
from specmine.model.histogram import Histogram
from specmine.model.json_codec import encode
from specmine.model.level import Level
from specmine.model.observation import Kind, Observation, PathHistogram
from specmine.model.pooling import pooled

from .recorded_paths import ToExplain, explained_paths, histogram_of

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
        states, levels = _learned(cut, names, settings, functions)
    state = ControllerState(settings=settings, functions=states)
    document = specification(state, detail=True, levels=levels)
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


def _learned(
    cut: Cut, names: Names, settings: Settings, globs: Sequence[str]
) -> tuple[dict[str, FunctionState], dict[str, Levels]]:
    """Return the functions by key, and their levels."""
    states: dict[str, FunctionState] = {}
    levels: dict[str, Levels] = {}
    asked: list[ToExplain] = []
    chains = _of_stretched(cut, names, settings.mining)
    with_paths = {names.function_of[number] for number, path in enumerate(names.paths) if path.complete}
    for number, parts in cut.parts():
        frame = names.functions[number]
        if globs and not any(fnmatchcase(frame.name, glob) for glob in globs):
            continue
        function = _begun(number, parts, names, timed=cut.timed)
        seen = [_observation(function.function, part, names) for part in parts[-NEWEST:]]
        function = _inferred(function, parts, seen, settings, chains.get(number))
        chain = function.inference.learned
        told = seen if chain is None else _since(seen, chain)
        levels[function.key] = Levels(whole=level_of(windows_of(told)), classes=_class_levels(told, chain))
        if chain is not None and chain.borders:
            if number in with_paths:
                asked.append(_to_explain(number, function, chain, parts[-len(told) :], told))
            else:
                function = function.moved(State.UNEXPLAINED, _no_paths(), parts[-1].end_ns)
        states[function.key] = function
    for one, explained_by_paths in explained_paths(cut, names, asked, settings.mining):
        function = states[one.key]
        (calls,) = function.history.paths
        paths = cast("tuple[PathHistogram, ...]", explained_by_paths.paths)
        function = replace(function, history=replace(function.history, paths=(replace(calls, paths=paths),)))
        states[one.key] = explained(function, explained_by_paths.explanation, one.parts[-1].end_ns, settings)
        behaviours = tuple(level_of(windows) for windows in explained_by_paths.behaviours)
        levels[one.key] = replace(levels[one.key], behaviours=behaviours)
    return states, levels


def _of_stretched(cut: Cut, names: Names, mining: MiningSettings) -> dict[int, Inference]:
    """Return what the observations agree on of functions whose durations are close together, and cut them there."""
    chains: dict[int, Inference] = {}
    # the parts have the resolution in them
    exactly = replace(mining, resolution_ns=0.0, stable_z=max(mining.stable_z, STABLE_Z))
    for number, parts in cut.stretched_parts(mining.resolution_ns):
        frame = names.functions[number]
        function = Function(build_id="", offset=number, name=frame.name, module=frame.module, in_program=True)
        seen = [_observation(function, part, names) for part in parts[-NEWEST:]]
        stretch = cut.exact.stretches[number]
        chains[number] = unstretched(infer_stable_borders(seen, {}, None, exactly, stretch)[0], stretch)
        if chains[number].borders:
            cut.exact.cut(number, chains[number].borders)
    return chains


def _begun(number: int, parts: Sequence[Part], names: Names, *, timed: bool) -> FunctionState:
    """Return a function of which only calls are known."""
    frame = names.functions[number]
    calls = sum(int(part.calls.sum()) for part in parts)
    counts = CallCounts(
        calls=calls + names.inner[number],
        watched_ns=sum(part.end_ns - part.start_ns for part in parts) if timed else 0,
    )
    totals = Totals(
        timed=calls,
        inner=names.inner[number],
        censored=names.censored[number],
        observations=len(parts),
    )
    return FunctionState(
        identity=Identity(
            function=Function(build_id="", offset=number, name=frame.name, module=frame.module, in_program=True)
        ),
        probe=ProbeState(counts=counts),
        history=History(totals=totals, histogram=Histogram.sum(map(histogram_of, parts)), tried=len(parts)),
    )


def _inferred(
    function: FunctionState,
    parts: Sequence[Part],
    seen: Sequence[Observation],
    settings: Settings,
    chain: Inference | None,
) -> FunctionState:
    """Return a function with what its observations agree on, if that is not known yet."""
    mining, now_ns = settings.mining, parts[-1].end_ns
    chain = chain or infer_stable_borders(seen, {}, None, mining)[0]
    function = replace(function, inference=InferenceState(chain=chain))
    if not chain.stable:
        enough = sum(each.timed >= mining.minimum_calls for each in seen)
        return function.moved(*_unsettled(enough, chain, settings, timed=parts[-1].timed), now_ns)
    function = replace(
        function,
        history=replace(function.history, paths=(pooled(_since(seen, chain)),)),
        inference=replace(function.inference, learned=chain),
    )
    return function if chain.borders else function.moved(State.SINGLE, None, now_ns)


def _since(seen: Sequence[Observation], chain: Inference) -> Sequence[Observation]:
    """Return the observations of a chain."""
    return [each for each in seen if chain.start_ns is None or each.start_ns >= chain.start_ns]


def _class_levels(told: Sequence[Observation], chain: Inference | None) -> tuple[Level, ...]:
    if chain is None or not chain.borders:
        return ()
    return tuple(level_of(windows_of_class(told, chain.edges, at, 0.0)) for at in range(len(chain.edges) + 1))


def _to_explain(
    number: int, function: FunctionState, chain: Inference, parts: Sequence[Part], told: Sequence[Observation]
) -> ToExplain:
    return ToExplain(
        number=number,
        key=function.key,
        module=function.function.module,
        edges=chain.edges,
        since=parts[0].number,
        observations=tuple(told),
        parts=tuple(parts),
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


def _observation(function: Function, part: Part, names: Names) -> Observation:
    histogram = histogram_of(part)
    return Observation(
        function=function.key,
        lifetime=names.lifetimes[part.lifetime],
        kind=Kind.PATH,
        start_ns=part.start_ns,
        end_ns=part.end_ns,
        histogram=histogram,
        calls=histogram.total,
        watched_ns=part.end_ns - part.start_ns if part.timed else 0,
    )
