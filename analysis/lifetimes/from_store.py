"""Lifetimes that a store remembers: their summaries, and their windows with call paths."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from specmine.mining.assertions.expression import Formula, from_records, shared_names, shown
from specmine.mining.inside.call_kinds import kinds_of, named_edges_of, names_of_callees
from specmine.mining.regression.sample import sample_of_histogram
from specmine.model.batch import CallSamples, boot_of
from specmine.model.call_path import CallPath
from specmine.model.histogram import Histogram
from specmine.model.host.environment import environment_from
from specmine.model.observation import Observation
from specmine.store import Build, Contents, LifetimeSummary, Where, environment_at, read_store

from .lifetime import FunctionLifetime
from .lifetime_calls import calls_by_lifetime, not_counted
from .seen import SeenLifetime

_WINDOWS = 400
"""Newest windows of each function and kind that are read."""


def from_store(path: Where, *, warmup: bool = True) -> list[FunctionLifetime]:
    """Return all lifetimes that a store remembers, without their warm-up unless that is wanted."""
    with read_store(path) as store:
        contents, summaries, builds = store.load(newest=0), store.read(LifetimeSummary), store.read(Build)
        singles = {(each.function, each.lifetime): each for each in store.read(CallSamples)}
    labels = {each.build_id: each.label for each in builds}
    hosts = {each.boot_id: each.hostname for each in contents.hosts}
    functions = {each.key: each for each in contents.functions}
    lifetimes = {each.id: each for each in contents.lifetimes}
    found = []
    for calls in calls_by_lifetime(summaries, functions, warmup=warmup):
        newest = calls.newest
        function, lifetime = functions[newest.function], lifetimes.get(newest.lifetime)
        build = lifetime.build_id if lifetime is not None else function.build_id
        single = singles.get((newest.function, newest.lifetime))
        found.append(
            FunctionLifetime(
                function=function.name,
                module=function.module,
                build=build,
                label=labels.get(build),
                host=hosts.get(boot_of(newest.lifetime), ""),
                lifetime=newest.lifetime,
                start_ns=calls.start_utc_ns,
                end_utc_ns=newest.end_utc_ns,
                sample=calls.sample,
                rate=calls.rate,
                warmup=calls.warmup,
                first_ns=np.array(single.first, dtype=np.float64) if single is not None else None,
                drawn_ns=np.array(single.sample, dtype=np.float64) if single is not None else None,
                environment=environment_from(vector) if (vector := _vector(contents, newest)) else None,
            )
        )
    return _kept_apart(found)


def seen_in_store(path: Where) -> list[SeenLifetime]:
    """Return all lifetimes that a store knows, also those in which no call was timed."""
    with read_store(path) as store:
        contents, builds, summaries = store.load(newest=0), store.read(Build), store.read(LifetimeSummary)
    timed = {each.lifetime for each in summaries}
    others = not_counted(summaries, {each.key: each for each in contents.functions})
    labels = {each.build_id: each.label for each in builds}
    hosts = {each.boot_id: each for each in contents.hosts}
    found = []
    for each in contents.lifetimes:
        host = hosts.get(each.boot_id)
        found.append(
            SeenLifetime(
                lifetime=each.id,
                build=each.build_id,
                label=labels.get(each.build_id),
                host=host.hostname if host is not None else "",
                start_ns=each.start_ns + host.utc_offset_ns if host is not None else 0,
                timed=each.id in timed,
                not_counted=others.get(each.id, frozenset()),
            )
        )
    return found


def specified(path: Where) -> list[Mapping[str, Any]]:
    """Return the functions of the specification in a store; [] while there is none."""
    with read_store(path) as store:
        document = store.document("specification") or {}
    return [each for each in document.get("functions", ()) if isinstance(each, Mapping)]


def stated_behaviours(functions: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], tuple[Formula, ...]]:
    """Return the behaviours that a specification states, of functions that have several."""
    return {
        (str(each["function"]), str(each["module"])): tuple(from_records(one["formula"]) for one in each["behaviours"])
        for each in functions
        if len(each.get("behaviours") or ()) > 1
    }


def windows_of_store(path: Where) -> list[FunctionLifetime]:
    """Return the windows split by complete path, and split by what happened inside calls; oldest first."""
    windows = [(seen, window) for seen, window in _windows(path) if seen.paths or seen.told_inside]
    paths: dict[str, list[CallPath]] = defaultdict(list)
    for seen, _ in windows:
        paths[seen.function] += [one.path for one in seen.paths]
    shared = {function: shared_names(each) for function, each in paths.items()}
    found = []
    for seen, window in windows:
        for one in seen.paths:
            if one.path.complete:
                names = tuple(shown(frame, shared[seen.function]) for frame in one.path.frames)
                found.append(_part_of(seen, window, one.histogram, path=names))
        for part in seen.told_inside:
            for kind, histogram in kinds_of(part, part.timed, blocked=part.split):
                if kind.complete:
                    which = {"timed": names_of_callees(part.timed), "tells_blocked": part.split}
                    found.append(_part_of(seen, window, histogram, inside=named_edges_of(kind), **which))
    return found


def _part_of(seen: Observation, window: FunctionLifetime, histogram: Histogram, **which: Any) -> FunctionLifetime:
    """Return some calls of a window."""
    return replace(window, sample=sample_of_histogram(histogram, seen.bias_ns), histogram=histogram, **which)


def whole_windows_of_store(path: Where) -> list[FunctionLifetime]:
    """Return the windows with all their calls, oldest first."""
    return [window for seen, window in _windows(path) if seen.timed]


def on_cpu_of_store(path: Where) -> list[FunctionLifetime]:
    """Return the windows of which it is known, oldest first, with their calls' time on CPU."""
    return [
        replace(window, sample=sample_of_histogram(seen.split.on_cpu, seen.bias_ns), histogram=seen.split.on_cpu)
        for seen, window in _windows(path)
        if seen.split is not None and seen.timed
    ]


def _windows(path: Where) -> list[tuple[Observation, FunctionLifetime]]:
    """Return the newest windows of each function, oldest first."""
    with read_store(path) as store:
        contents, builds = store.load(newest=_WINDOWS), store.read(Build)
    labels = {each.build_id: each.label for each in builds}
    hosts = {each.boot_id: each.hostname for each in contents.hosts}
    offsets = {each.boot_id: each.utc_offset_ns for each in contents.hosts}
    lifetimes = {each.id: each for each in contents.lifetimes}
    functions = {each.key: each for each in contents.functions}
    found = []
    for seen in contents.observations:
        function, lifetime = functions.get(seen.function), lifetimes.get(seen.lifetime)
        if function is None:
            continue
        build = lifetime.build_id if lifetime is not None else function.build_id
        window = FunctionLifetime(
            function=function.name,
            module=function.module,
            build=build,
            label=labels.get(build),
            host=hosts.get(boot_of(seen.lifetime), ""),
            lifetime=seen.lifetime,
            start_ns=seen.start_ns,
            end_utc_ns=seen.end_ns + offsets[boot] if (boot := boot_of(seen.lifetime)) in offsets else 0,
            sample=sample_of_histogram(seen.histogram, seen.bias_ns),
            window=seen.start_ns,
            histogram=seen.histogram,
            bias_ns=seen.bias_ns,
            off_cpu_ns=(seen.split.waiting_ns.total, seen.split.blocked_ns.total) if seen.split is not None else None,
        )
        found.append((seen, window))
    return found


def _vector(contents: Contents, summary: LifetimeSummary) -> Mapping[str, Any] | None:
    boot_id = boot_of(summary.lifetime)
    return environment_at(contents.environments, boot_id, summary.end_utc_ns)


def _kept_apart(found: list[FunctionLifetime]) -> list[FunctionLifetime]:
    """Give two functions of one name in one module and lifetime names of their own."""
    seen: dict[tuple[str, str, str], int] = defaultdict(int)
    renamed = []
    for each in found:
        key = (*each.key, each.lifetime)
        seen[key] += 1
        renamed.append(each if seen[key] == 1 else replace(each, function=f"{each.function}~{seen[key]}"))
    return renamed
