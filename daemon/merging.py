"""Several specifications of one program as one: from runs, hosts and builds, with how far they agree.

Functions are the same if name and module are. A model is the grouping of a function's call paths (first paper,
section 3.3): times differ between hosts and builds, groups should not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from specmine.mining.alignment import Edges, Names, aligned, edges_of
from specmine.mining.assertions import state_groups
from specmine.mining.comparison import Consistency, merge
from specmine.mining.expressions import render, to_records
from specmine.mining.observation import CallPath, Frame

from .knowledge import FINISHED

Document = Mapping[str, Any]
Key = tuple[str, str]
"""Name and module of a function."""
Grouping = dict[Names, tuple[int, int]]
_ANY: Names = ("*",)
"""Stands for all call paths where none is known."""
_STATES = frozenset(state.value for state in FINISHED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What one specification, or several merged, says of a function."""

    entry: Mapping[str, Any]
    """The function as the specification with most calls of it has it."""
    groups: Grouping
    """Group and calls of each call path; only ``*`` where all calls are one group and no path is known."""
    calls: int
    sources: tuple[int, ...]
    """Which of the specifications have it."""
    steps: tuple[Consistency, ...] = ()
    """How each further model agreed with those merged before."""
    rows: Mapping[Names, tuple[float, ...]] = field(default_factory=dict)
    """Calls per class of each path, of the specifications that have as many classes as ``entry``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """The result of merging."""

    models: Mapping[Key, Model]
    document: dict[str, Any]
    """``specmine.specification/1``; each function has ``merge`` with the agreement."""


def merged(documents: Sequence[Document]) -> Merged:
    """Merge specifications in the order given.

    Parameters
    ----------
    documents : sequence
        At least one ``specmine.specification/1``. Only functions of which something is asserted count.
    """
    models: dict[Key, Model] = {}
    edges: Edges = frozenset()
    builds: set[Any] = set()
    for number, document in enumerate(documents):
        own = _edges(document)
        build = (document.get("program") or {}).get("build_id")
        same_build = build is not None and builds == {build}
        for key, model in _models(document, number).items():
            before = models.get(key)
            models[key] = model if before is None else _joined(before, model, edges, own, inlined=not same_build)
        edges |= own
        builds.add(build)
    return Merged(models=models, document=_document(documents, models))


def _models(document: Document, source: int) -> dict[Key, Model]:
    found: dict[Key, Model] = {}
    for entry in document["functions"]:
        if entry.get("state") not in _STATES:
            continue
        key = (str(entry.get("function")), str(entry.get("module")))
        if key in found:  # several builds in one specification: the one with more calls comes first
            continue
        groups: Grouping = {}
        rows: dict[Names, tuple[float, ...]] = {}
        for path in entry.get("paths") or []:
            if path.get("complete", True) and path.get("behaviour") is not None and path.get("calls"):
                names = _names(path["frames"])
                groups[names] = (int(path["behaviour"]), int(path["calls"]))
                rows[names] = tuple(share * path["calls"] for share in path.get("shares") or [])
        calls = int(entry.get("timed") or entry.get("calls") or 0)
        if not groups or len(entry.get("behaviours") or []) < 2:
            groups = {path: (0, own) for path, (_, own) in groups.items()} or {_ANY: (0, max(calls, 1))}
        found[key] = Model(entry=entry, groups=groups, calls=calls, sources=(source,), rows=rows)
    return found


def _joined(first: Model, second: Model, first_edges: Edges, second_edges: Edges, *, inlined: bool) -> Model:
    one, other = first.groups, second.groups
    one_rows, other_rows = first.rows, second.rows
    if inlined and _ANY not in one and _ANY not in other:
        left, right = aligned(one, other, first_edges, second_edges)
        one, other = _renamed(one, left), _renamed(other, right)
        one_rows, other_rows = _summed(one_rows, left), _summed(other_rows, right)
    if _ANY in one and _ANY not in other:
        one = _spread(one, other)
    if _ANY in other and _ANY not in one:
        other = _spread(other, one)
    groups, step = merge(one, other)
    first_is_larger = first.calls >= second.calls
    entry = first.entry if first_is_larger else second.entry
    rows = dict(one_rows if first_is_larger else other_rows)
    if len(first.entry.get("classes") or []) == len(second.entry.get("classes") or []):
        rows = _together(one_rows, other_rows)
    return Model(
        entry=entry,
        groups=groups,
        calls=first.calls + second.calls,
        sources=(*first.sources, *second.sources),
        steps=(*first.steps, step),
        rows=rows,
    )


def _spread(model: Grouping, over: Grouping) -> Grouping:
    """Return the model that says nothing of paths, as one group of the paths of another."""
    calls, total = model[_ANY][1], sum(number for _, number in over.values())
    return {path: (0, max(1, round(calls * number / total))) for path, (_, number) in over.items()}


def _renamed(groups: Grouping, names: Mapping[Names, Names]) -> Grouping:
    """Return a grouping under other names; of paths that become one the heavier says the group."""
    found: Grouping = {}
    for path, (group, calls) in sorted(groups.items(), key=lambda item: (-item[1][1], item[0])):
        first, before = found.get(names[path], (group, 0))
        found[names[path]] = (first, before + calls)
    return found


def _summed(rows: Mapping[Names, tuple[float, ...]], names: Mapping[Names, Names]) -> dict[Names, tuple[float, ...]]:
    found: dict[Names, tuple[float, ...]] = {}
    for path, row in rows.items():
        found = _together(found, {names.get(path, path): row})
    return found


def _together(
    first: Mapping[Names, tuple[float, ...]], second: Mapping[Names, tuple[float, ...]]
) -> dict[Names, tuple[float, ...]]:
    found = dict(first)
    for path, row in second.items():
        before = found.get(path)
        whole = before is not None and len(before) == len(row)
        found[path] = tuple(a + b for a, b in zip(before or (), row, strict=True)) if whole else before or row
    return found


def _names(frames: Iterable[Any]) -> Names:
    return tuple(str(frame) for frame in frames)


def _edges(document: Document) -> Edges:
    paths = (path.get("frames") or [] for entry in document["functions"] for path in entry.get("paths") or [])
    return edges_of(map(_names, paths))


def _document(documents: Sequence[Document], models: Mapping[Key, Model]) -> dict[str, Any]:
    first = documents[0]
    functions = [_entry(model) for model in models.values()]
    functions.sort(key=lambda entry: (-entry["calls"], entry["function"], entry["module"]))
    builds = {str((each.get("program") or {}).get("build_id")) for each in documents}
    program = {**(first.get("program") or {}), "exit_status": None}
    if len(builds) > 1:
        program["build_id"] = None
    seconds = [(each.get("collection") or {}).get("seconds") or 0.0 for each in documents]
    return {
        "schema": "specmine.specification/1",
        "program": program,
        "host": first.get("host") or {},
        "collection": {"seconds": float(sum(seconds)), "merged": len(documents)},
        "functions": functions,
    }


def _entry(model: Model) -> dict[str, Any]:
    """Return a function of the merged specification: groups of all, classes as the one with most calls has them."""
    entry = dict(model.entry)
    entry["calls"] = model.calls
    entry["timed"] = model.calls
    entry["merge"] = {
        "models": len(model.sources),
        "sources": list(model.sources),
        "steps": [record(step) for step in model.steps],
    }
    if len(model.sources) < 2 or _ANY in model.groups:
        return entry
    paths = sorted(model.groups, key=lambda path: (-model.groups[path][1], path))
    labels = _without_gaps([model.groups[path][0] for path in paths])
    made = [CallPath(tuple(Frame(name, "") for name in path)) for path in paths]
    statement = state_groups(made, labels) if len(set(labels)) > 1 else None
    if statement is None:
        return entry | {"state": "unexplained" if len(entry.get("classes") or []) > 1 else "single"}
    rows = [model.rows.get(path, ()) for path in paths]
    behaviours: list[dict[str, Any]] = []
    for group, formula in enumerate(statement.formulas):
        members = [at for at, label in enumerate(labels) if label == group]
        behaviours.append(
            {
                "expression": render(formula),
                "formula": to_records(formula),
                "calls": sum(model.groups[paths[at]][1] for at in members),
                "paths": len(members),
                "shares": _shares([rows[at] for at in members if rows[at]]),
                "group": group,
            }
        )
    behaviours.sort(key=lambda each: (-each["calls"], each["expression"]))
    place = {each.pop("group"): at for at, each in enumerate(behaviours)}
    entry["behaviours"] = behaviours
    entry["state"] = "explained"
    entry["reason"] = None
    entry["paths"] = [
        {
            "frames": list(path),
            "complete": True,
            "calls": model.groups[path][1],
            "shares": _shares([row]) if row else behaviours[place[label]]["shares"],
            "behaviour": place[label],
        }
        for path, label, row in zip(paths, labels, rows, strict=True)
    ]
    return entry


def record(step: Consistency) -> dict[str, Any]:
    """Return an agreement as JSON values."""
    return {
        "shared_paths": step.shared_paths,
        "consistent_paths": step.consistent_paths,
        "shared_calls": step.shared_calls,
        "consistent_calls": step.consistent_calls,
        "paths_ratio": step.paths,
        "calls_ratio": step.calls,
    }


def _without_gaps(labels: Sequence[int]) -> list[int]:
    number = {label: at for at, label in enumerate(sorted(set(labels)))}
    return [number[label] for label in labels]


def _shares(rows: Sequence[Sequence[float]]) -> list[float]:
    sums = [sum(column) for column in zip(*rows, strict=True)] if rows else []
    return [each / max(sum(sums), 1e-9) for each in sums]
