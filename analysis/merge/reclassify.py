"""The calls of several executions counted by the same classes, and their call paths grouped anew.

Where one execution has a border that another lacks, both cut the calls of a function into different classes, and the
groups of its call paths differ although the function behaves alike. Stores keep the observations: there the borders
that recur are taken for all (``mining/borders/recurrence.py``), and each execution's paths
are grouped by them, each from its own calls only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

import numpy as np

from specmine.daemon.controller.phase import FINISHED
from specmine.daemon.controller.reasons import unexplained
from specmine.daemon.documents.levels import Levels, levels_in, quantiles
from specmine.daemon.documents.statements import behaviours_and_paths
from specmine.daemon.worker.jobs import Job, run_job
from specmine.mining.assertions.explanation import Explanation
from specmine.mining.borders.recurrence import Execution, Recurring, recurring
from specmine.mining.settings import MiningSettings
from specmine.model.buckets import BUCKET_EDGES
from specmine.model.function import Reason
from specmine.model.histogram import Histogram
from specmine.model.observation import Observation

from .model import Key, key_of

Recording = Mapping[str, Sequence[Observation]]
"""The observations of one store by the key of their function, oldest first."""
_STATES = frozenset(state.value for state in FINISHED)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """One function in one input."""

    number: int
    """Of the input."""
    entry: Mapping[str, Any]
    program: str
    """Base name of its file."""
    paths: tuple[Observation, ...]
    """Windows with call paths."""
    windows: tuple[Observation, ...]
    """Windows without: borders are found in these."""
    execution: Execution
    """All of them together."""


def by_function(observations: Iterable[Observation]) -> Recording:
    """Return observations by function."""
    found: dict[str, list[Observation]] = {}
    for each in observations:
        found.setdefault(each.function, []).append(each)
    return found


def reclassify(
    documents: Sequence[Mapping[str, Any]], recordings: Sequence[Recording], *, mining: MiningSettings
) -> list[dict[str, Any]]:
    """Return specifications in which functions that several have are cut into the same classes.

    Parameters
    ----------
    documents : sequence of mapping
        ``specmine.specification/1`` of each store.
    recordings : sequence of mapping
        The observations of each; empty for an input that has none: its functions, wherever they are, stay as they are.
    mining : MiningSettings

    Returns
    -------
    list of dict
        In the order of ``documents``. Functions of which something is asserted in at least two of them have the borders
        that most of these have; ``dropped_seconds`` are those of their own that do not recur.
    """
    entries = [
        {key_of(each): each for each in reversed(document["functions"]) if each.get("state") in _STATES}
        for document in documents
    ]
    asserted = Counter(key for own in entries for key in own)
    made: list[dict[Key, dict[str, Any]]] = [{} for _ in documents]
    for key, number in sorted(asserted.items()):
        having = [at for at, own in enumerate(entries) if key in own]
        seen = {at: recordings[at].get(str(entries[at][key].get("key")), ()) for at in having}
        if number < 2 or not all(seen.values()):
            continue
        parts = [_part(at, documents[at], entries[at][key], seen[at]) for at in having]
        borders = recurring([each.execution for each in parts], settings=mining)
        if any(each.execution.edges for each in parts):
            for place, each in enumerate(parts):
                made[each.number][key] = _cut(each, place, borders, mining)
    return [
        {**document, "functions": [own.get(key_of(each), each) for each in document["functions"]]}
        for document, own in zip(documents, made, strict=True)
    ]


def _part(
    number: int, document: Mapping[str, Any], entry: Mapping[str, Any], observations: Sequence[Observation]
) -> _Part:
    paths = tuple(each for each in observations if each.paths)
    windows = tuple(each for each in observations if not each.paths) or paths
    execution = Execution(
        histogram=Histogram.sum(each.histogram for each in windows),
        edges=(),
        scale=((document.get("host") or {}).get("boot_id"), entry.get("build_id")),
        bias_ns=windows[-1].bias_ns,
    )
    own = {execution.edge_at(1e9 * float(each)) for each in entry.get("borders_seconds") or []}
    return _Part(
        number=number,
        entry=entry,
        program=PurePath(str((document.get("program") or {}).get("path"))).name,
        paths=paths,
        windows=windows,
        execution=replace(execution, edges=tuple(sorted(own))),
    )


def _cut(part: _Part, place: int, borders: Sequence[Recurring], mining: MiningSettings) -> dict[str, Any]:
    """Return the entry of a function under other borders."""
    execution = part.execution
    edges = sorted({border.edges[place] for border in borders})
    upper = [1e-9 * execution.duration_at(edge) for edge in edges]
    if part.paths:  # the probes cost more there
        bias_ns = part.paths[-1].bias_ns
        there = tuple(replace(execution, bias_ns=bias_ns).edge_at(1e9 * each) for each in upper)
        classes = Histogram.sum(each.histogram for each in part.paths).class_counts(there)
    else:
        there, bias_ns, classes = (), execution.bias_ns, execution.histogram.class_counts(edges)
    job = Job(
        function=str(part.entry.get("key")),
        observations=part.paths,
        borders=there,
        program_modules=(part.program,),
        mining=mining,
    )
    result = run_job(job) if there else None
    levels = levels_in(part.paths if there else part.windows, there or edges, bias_ns, result)
    shares = [float(each) for each in classes / max(int(classes.sum()), 1)]
    entry = dict(part.entry) | {
        "borders_seconds": upper,
        "borders": [
            {
                "seconds": seconds,
                "evidence": {"executions": border.has, "of_executions": len(border.edges)},
                "uncertainty_seconds": 1e-9 * float(np.diff(BUCKET_EDGES[edge : edge + 2])[0]),
            }
            for seconds, edge in zip(upper, edges, strict=True)
            for border in [next(each for each in borders if each.edges[place] == edge)]
        ],
        "dropped_seconds": [1e-9 * execution.duration_at(edge) for edge in execution.edges if edge not in edges],
        "classes": [
            {"upper_seconds": bound, "share": share, "inside": [], "quantiles": quantiles(level)}
            for bound, share, level in zip([*upper, None], shares, levels.classes or (levels.whole,), strict=True)
        ],
    }
    return entry | (_grouped(result, levels) if result else _single(entry, int(classes.sum()), shares))


def _single(entry: Mapping[str, Any], calls: int, shares: Sequence[float]) -> dict[str, Any]:
    """Return the fields of a function that has no classes, or whose call paths were not observed.

    Its only behaviour has the levels of all calls.
    """
    levels = {name: entry[name] for name in ("quantiles", "lifetimes", "windows") if name in entry}
    whole = {"expression": "true", "formula": [[]], "calls": calls, "paths": 0, "shares": list(shares)} | levels
    state, reason = ("single", None) if len(shares) < 2 else ("unexplained", unexplained("unseen-paths"))
    return {"state": state, "reason": _reason(reason), "behaviours": [whole], "paths": []}


def _grouped(result: Explanation, levels: Levels) -> dict[str, Any]:
    behaviours, paths = behaviours_and_paths(result, levels=levels)
    reason = unexplained(result.why) if result.why else None
    return {
        "state": "unexplained" if reason else "explained",
        "reason": _reason(reason),
        "behaviours": behaviours,
        "paths": paths,
    }


def _reason(reason: Reason | None) -> dict[str, str] | None:
    return {"code": reason.code, "text": reason.text, "remedy": reason.remedy} if reason else None
