"""Lifetimes that a store remembers: their summaries, and their windows with call paths."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from specmine.daemon.store import Contents, LifetimeSummary, Store, vector_at
from specmine.mining.change.sample import sample_of_counts
from specmine.mining.environment import environment_from
from specmine.mining.expressions import shared_names, shown
from specmine.mining.observation import Function

from .lifetimes import Observed

_WINDOWS = 400
"""Newest windows of each function read for its call paths."""


def from_store(path: Path) -> list[Observed]:
    """Return all lifetimes that a store remembers."""
    with Store.open(path, read_only=True) as store:
        contents, summaries, builds = store.load(newest=0), store.summaries(), store.builds()
        singles = {(each.function, each.lifetime): each for each in store.singles()}
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
        single = singles.get((each.function, each.lifetime))
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
                prefix=np.array(single.first, dtype=np.float64) if single is not None else None,
                kept=np.array(single.kept, dtype=np.float64) if single is not None else None,
                environment=environment_from(vector) if (vector := _vector(contents, each)) else None,
            )
        )
    return _kept_apart(found)


def windows_of_store(path: Path) -> list[Observed]:
    """Return the windows with call paths, one entry per window and complete path, oldest first."""
    with Store.open(path, read_only=True) as store:
        contents, builds = store.load(newest=_WINDOWS), store.builds()
    labels = {each.build_id: each.label for each in builds}
    hosts = {each.boot_id: each.hostname for each in contents.hosts}
    lifetimes = {each.id: each for each in contents.lifetimes}
    functions = {each.key: each for each in contents.functions}
    shared: dict[str, frozenset[str]] = {}
    found = []
    for window in contents.observations:
        function = functions.get(window.function)
        if function is None or not window.paths:
            continue
        if window.function not in shared:
            shared[window.function] = shared_names(
                one.path for each in contents.observations if each.function == window.function for one in each.paths
            )
        lifetime = lifetimes.get(window.lifetime)
        build = lifetime.build_id if lifetime is not None else function.build_id
        found += [
            Observed(
                function=function.name,
                module=function.module,
                build=build,
                label=labels.get(build),
                host=hosts.get(window.lifetime.split(":", maxsplit=1)[0], ""),
                lifetime=window.lifetime,
                start_ns=window.start_ns,
                sample=sample_of_counts(one.counts, window.bias_ns),
                path=tuple(shown(frame, shared[window.function]) for frame in one.path.frames),
                window=window.start_ns,
            )
            for one in window.paths
            if one.path.complete
        ]
    return found


def _vector(contents: Contents, summary: LifetimeSummary) -> Mapping[str, Any] | None:
    boot_id = summary.lifetime.split(":", maxsplit=1)[0]
    return vector_at(contents.environments, boot_id, summary.end_utc_ns)


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
