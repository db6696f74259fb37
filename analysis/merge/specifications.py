"""Several specifications of one program as one: from runs, hosts and builds, with how far they agree.

Functions are the same if name and module are; ``model`` merges each function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from specmine.mining.assertions.assertion import state_groups
from specmine.mining.assertions.expression import render, to_records
from specmine.mining.model_merge.alignment import Names, common_forms
from specmine.mining.model_merge.consistency import Consistency
from specmine.model.call_path import CallPath, Frame
from specmine.model.host.environment import common, environment_from

from .calls import merged_calls
from .model import Document, Key, Model, has_paths, join_models, key_of, models_in, names_of, rename_paths
from .quantiles import with_levels


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedSpecification:
    """The result of merging."""

    models: Mapping[Key, Model]
    document: dict[str, Any]
    """``specmine.specification/1``; each function has ``merge`` with the agreement."""


def merge_specifications(documents: Sequence[Document]) -> MergedSpecification:
    """Merge specifications in the order given.

    Parameters
    ----------
    documents : sequence
        At least one ``specmine.specification/1``. Only functions of which something is asserted count.
    """
    models: dict[Key, Model] = {}
    for own in _in_common_forms([models_in(each, at) for at, each in enumerate(documents)], documents):
        for key, model in own.items():
            models[key] = join_models(models[key], model) if key in models else model
    return MergedSpecification(models=models, document=_document(documents, models))


def _in_common_forms(models: Sequence[Mapping[Key, Model]], documents: Sequence[Document]) -> list[Mapping[Key, Model]]:
    """Return models whose call paths have the same names in all builds, as far as inlining hides none."""
    builds: dict[Any, dict[Key, set[Names]]] = {}
    of = []
    for number, document in enumerate(documents):
        build = (document.get("program") or {}).get("build_id")
        of.append(number if build is None else str(build))
        for entry in document["functions"]:
            paths = builds.setdefault(of[-1], {}).setdefault(key_of(entry), set())
            paths |= {names_of(path["frames"]) for path in entry.get("paths") or [] if path.get("complete", True)}
    if len(builds) < 2:
        return list(models)
    forms = dict(zip(builds, common_forms(list(builds.values())), strict=True))
    return [
        {key: rename_paths(model, forms[build][key]) for key, model in own.items()}
        for build, own in zip(of, models, strict=True)
    ]


def _document(documents: Sequence[Document], models: Mapping[Key, Model]) -> dict[str, Any]:
    first = documents[0]
    functions = [with_levels(_entry(model), model.entries) for model in models.values()]
    functions.sort(key=lambda entry: (-entry["calls"], entry["function"], entry["module"]))
    builds = {str((each.get("program") or {}).get("build_id")) for each in documents}
    program = {**(first.get("program") or {}), "exit_status": None}
    if len(builds) > 1:
        program["build_id"] = None
    hosts = [environment_from(each["environment"]) for each in documents if each.get("environment")]
    shared = common(hosts)
    seconds = [(each.get("collection") or {}).get("seconds") or 0.0 for each in documents]
    return {
        "schema": "specmine.specification/1",
        "program": program,
        "host": first.get("host") or {},
        "environment": shared.document() if shared else {},
        "collection": {"seconds": float(sum(seconds)), "merged": len(documents)},
        "functions": functions,
    }


def _entry(model: Model) -> dict[str, Any]:
    """Return a function of the merged specification: groups of all, borders as the one with most calls has them."""
    entry = dict(model.entry)
    entry |= merged_calls(model.entries)
    entry["timed"] = model.calls
    entry |= model.sums
    if model.histogram:
        entry["histogram"] = [list(each) for each in model.histogram]
    if "dropped_seconds" in entry:
        entry["dropped_seconds"] = sorted(model.dropped)
    entry["merge"] = {
        "models": len(model.sources),
        "sources": list(model.sources),
        "steps": [record(step) for step in model.steps],
    }
    if len(model.sources) < 2 or not has_paths(model):
        return entry
    paths = sorted(model.groups, key=lambda path: (-model.groups[path][1], path))
    labels = _without_gaps([model.groups[path][0] for path in paths])
    made = [CallPath(tuple(Frame(name, "") for name in path)) for path in paths]
    statement = state_groups(made, labels)
    if statement is None:  # no call edges distinguish the groups
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
            "independent_calls": model.independent_calls.get(path),
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
        "undecided_paths": step.undecided_paths,
        "undecided_calls": step.undecided_calls,
        "undecided_ratio": step.undecided,
        "paths_ratio": step.paths,
        "calls_ratio": step.calls,
        "pairs_ratio": step.pairs,
        "shares_ratio": step.shares,
    }


def _without_gaps(labels: Sequence[int]) -> list[int]:
    number = {label: at for at, label in enumerate(sorted(set(labels)))}
    return [number[label] for label in labels]


def _shares(rows: Sequence[Sequence[float]]) -> list[float]:
    sums = [sum(column) for column in zip(*rows, strict=True)] if rows else []
    return [each / max(sum(sums), 1e-9) for each in sums]
