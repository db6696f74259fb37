"""Several specifications of one program as one: from runs, hosts and builds, with how far they agree.

Functions are the same if name and module are. A model is the grouping of a function's call paths (first paper,
section 3.3): times differ between hosts and builds, groups should not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from specmine.mining.alignment import Names, common_forms
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
    """Group and calls of each call path; only ``*`` where all calls are one class and no path is known; empty where
    there are classes and no path is known: it agrees and disagrees with nothing.
    """
    calls: int
    sources: tuple[int, ...]
    """Which of the specifications have it."""
    steps: tuple[Consistency, ...] = ()
    """How each further model agreed with those merged before."""
    dropped: frozenset[float] = frozenset()
    """Borders, in seconds, that one of them had and too few others."""
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
    for own in _in_common_forms([_models(each, at) for at, each in enumerate(documents)], documents):
        for key, model in own.items():
            models[key] = _joined(models[key], model) if key in models else model
    return Merged(models=models, document=_document(documents, models))


def _in_common_forms(models: Sequence[Mapping[Key, Model]], documents: Sequence[Document]) -> list[Mapping[Key, Model]]:
    """Return models whose call paths have the same names in all builds, as far as inlining hides none."""
    builds: dict[Any, dict[Key, set[Names]]] = {}
    of = []
    for number, document in enumerate(documents):
        build = (document.get("program") or {}).get("build_id")
        of.append(number if build is None else str(build))
        for entry in document["functions"]:
            paths = builds.setdefault(of[-1], {}).setdefault(_key(entry), set())
            paths |= {_names(path["frames"]) for path in entry.get("paths") or [] if path.get("complete", True)}
    if len(builds) < 2:
        return list(models)
    forms = dict(zip(builds, common_forms(list(builds.values())), strict=True))
    return [
        {key: _renamed(model, forms[build][key]) for key, model in own.items()}
        for build, own in zip(of, models, strict=True)
    ]


def _models(document: Document, source: int) -> dict[Key, Model]:
    found: dict[Key, Model] = {}
    for entry in document["functions"]:
        if entry.get("state") not in _STATES:
            continue
        key = _key(entry)
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
        if len(entry.get("behaviours") or []) < 2:
            groups = {path: (0, own) for path, (_, own) in groups.items()}
        if not groups and len(entry.get("classes") or []) < 2:
            groups = {_ANY: (0, max(calls, 1))}
        found[key] = Model(
            entry=entry,
            groups=groups,
            calls=calls,
            sources=(source,),
            dropped=frozenset(entry.get("dropped_seconds") or ()),
            rows=rows,
        )
    return found


def _joined(first: Model, second: Model) -> Model:
    one, other = first.groups, second.groups
    if _ANY in one and _has_paths(second):
        one = _spread(one, other)
    if _ANY in other and _has_paths(first):
        other = _spread(other, one)
    groups, step = merge(one, other)
    # an input that knows paths tells more, however many calls the other has
    first_is_larger = (_has_paths(first), first.calls) >= (_has_paths(second), second.calls)
    entry = first.entry if first_is_larger else second.entry
    rows = dict(first.rows if first_is_larger else second.rows)
    if len(first.entry.get("classes") or []) == len(second.entry.get("classes") or []):
        rows = _together(first.rows, second.rows)
    return Model(
        entry=entry,
        groups=groups,
        calls=first.calls + second.calls,
        sources=(*first.sources, *second.sources),
        steps=(*first.steps, step) if step.shared_calls else first.steps,
        dropped=first.dropped | second.dropped,
        rows=rows,
    )


def _has_paths(model: Model) -> bool:
    return bool(model.groups) and _ANY not in model.groups


def _spread(model: Grouping, over: Grouping) -> Grouping:
    """Return the model that says nothing of paths, as one group of the paths of another."""
    calls, total = model[_ANY][1], sum(number for _, number in over.values())
    return {path: (0, max(1, round(calls * number / total))) for path, (_, number) in over.items()}


def _renamed(model: Model, names: Mapping[Names, Names]) -> Model:
    """Return a model under other names; of paths that become one the heavier says the group."""
    groups: Grouping = {}
    rows: dict[Names, tuple[float, ...]] = {}
    for path, (group, calls) in sorted(model.groups.items(), key=lambda item: (-item[1][1], item[0])):
        name = names.get(path, path)
        first, before = groups.get(name, (group, 0))
        groups[name] = (first, before + calls)
        rows = _together(rows, {name: model.rows[path]} if path in model.rows else {})
    return replace(model, groups=groups, rows=rows)


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


def _key(entry: Mapping[str, Any]) -> Key:
    return str(entry.get("function")), str(entry.get("module"))


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
    if "dropped_seconds" in entry:
        entry["dropped_seconds"] = sorted(model.dropped)
    entry["merge"] = {
        "models": len(model.sources),
        "sources": list(model.sources),
        "steps": [record(step) for step in model.steps],
    }
    if len(model.sources) < 2 or not _has_paths(model):
        return entry
    paths = sorted(model.groups, key=lambda path: (-model.groups[path][1], path))
    labels = _without_gaps([model.groups[path][0] for path in paths])
    made = [CallPath(tuple(Frame(name, "") for name in path)) for path in paths]
    statement = state_groups(made, labels)
    if statement is None:  # no call edges tell the groups apart
        labels = [0] * len(paths)
        statement = state_groups(made, labels)
    formulas = statement.formulas if statement is not None else ()
    rows = [model.rows.get(path, ()) for path in paths]
    classes = entry.get("classes") or []
    if all(len(row) == len(classes) for row in rows):
        shares = _shares(rows)
        entry["classes"] = [{**each, "share": share} for each, share in zip(classes, shares, strict=True)]
    behaviours: list[dict[str, Any]] = []
    for group, formula in enumerate(formulas):
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
    several = "explained" if len(behaviours) > 1 else "unexplained"
    state = several if len(classes) > 1 else "single"
    if state != entry.get("state"):
        entry |= {"state": state, "reason": None}
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
        "pairs_ratio": step.pairs,
    }


def _without_gaps(labels: Sequence[int]) -> list[int]:
    number = {label: at for at, label in enumerate(sorted(set(labels)))}
    return [number[label] for label in labels]


def _shares(rows: Sequence[Sequence[float]]) -> list[float]:
    sums = [sum(column) for column in zip(*rows, strict=True)] if rows else []
    return [each / max(sum(sums), 1e-9) for each in sums]
