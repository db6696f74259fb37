"""What one specification says of a function, as far as it can be compared and merged with another's.

A model is the grouping of a function's call paths (first paper, section 3.3): times differ between hosts and builds,
groups should not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from specmine.daemon.controller.phase import FINISHED
from specmine.mining.model_merge.alignment import Names
from specmine.mining.model_merge.consistency import Consistency, merge, shares_alike
from specmine.mining.settings import MiningSettings

Document = Mapping[str, Any]
Key = tuple[str, str]
"""Name and module of a function."""
Grouping = dict[Names, tuple[int, int]]
_ANY: Names = ("*",)
"""Stands for all call paths where none is known."""
_SUMMED = ("calls_counted", "watched_seconds", "observations", "inner", "censored")
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
    entries: tuple[Mapping[str, Any], ...] = ()
    """The function as each of them has it."""
    steps: tuple[Consistency, ...] = ()
    """How each further model agreed with those merged before."""
    dropped: frozenset[float] = frozenset()
    """Borders, in seconds, that one of them had and too few others."""
    scale: tuple[Any, ...] = ()
    """Host, build and the probes' cost: histograms of one scale can be added."""
    histogram: tuple[tuple[int, int], ...] = ()
    """Bucket and calls, of all that have the scale."""
    sums: Mapping[str, float] = field(default_factory=dict)
    """What adds up over specifications (``_SUMMED``)."""
    rows: Mapping[Names, tuple[float, ...]] = field(default_factory=dict)
    """Calls per class of each path, of the specifications that have as many classes as ``entry``."""
    independent_calls: Mapping[Names, float] = field(default_factory=dict)
    """How many independent calls those of a path are worth; its calls, where a specification does not say."""

    def evidence(self) -> dict[Names, tuple[float, ...]]:
        """Return independent calls per class of each path."""
        scale = {
            path: self.independent_calls.get(path, sum(row)) / max(sum(row), 1e-9) for path, row in self.rows.items()
        }
        return {path: tuple(each * scale[path] for each in row) for path, row in self.rows.items() if row}


def models_in(document: Document, source: int) -> dict[Key, Model]:
    """Return the models of the functions of which a specification asserts something; ``source`` is its number."""
    found: dict[Key, Model] = {}
    for entry in document["functions"]:
        if entry.get("state") not in _STATES:
            continue
        key = key_of(entry)
        if key in found:  # several builds in one specification: the one with more calls comes first
            continue
        groups: Grouping = {}
        rows: dict[Names, tuple[float, ...]] = {}
        independent_calls: dict[Names, float] = {}
        for path in entry.get("paths") or []:
            if path.get("complete", True) and path.get("behaviour") is not None and path.get("calls"):
                names = names_of(path["frames"])
                groups[names] = (int(path["behaviour"]), int(path["calls"]))
                rows[names] = tuple(share * path["calls"] for share in path.get("shares") or [])
                independent_calls[names] = float(path.get("independent_calls") or path["calls"])
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
            entries=(entry,),
            dropped=frozenset(entry.get("dropped_seconds") or ()),
            scale=((document.get("host") or {}).get("boot_id"), entry.get("build_id"), entry.get("bias_seconds")),
            histogram=tuple((int(bucket), int(number)) for bucket, number in entry.get("histogram") or ()),
            sums={name: entry[name] for name in _SUMMED if isinstance(entry.get(name), int | float)},
            rows=rows,
            independent_calls=independent_calls,
        )
    return found


def join_models(first: Model, second: Model) -> Model:
    """Return two models of one function as one, with how far they agree."""
    one, other = first.groups, second.groups
    if _ANY in one and has_paths(second):
        one = _spread(one, other)
    if _ANY in other and has_paths(first):
        other = _spread(other, one)
    settings = MiningSettings()
    groups, step = merge(one, other, (first.evidence(), second.evidence()), settings=settings)
    step = replace(step, shares=shares_alike(first.rows, second.rows, settings=settings))
    # an input with call paths holds more information, however many calls the other has
    first_is_larger = (has_paths(first), first.calls) >= (has_paths(second), second.calls)
    entry = first.entry if first_is_larger else second.entry
    larger = first if first_is_larger else second
    rows, independent_calls = dict(larger.rows), larger.independent_calls
    if len(first.entry.get("classes") or []) == len(second.entry.get("classes") or []):
        rows = _together(first.rows, second.rows)
        independent_calls = {
            path: first.independent_calls.get(path, 0.0) + second.independent_calls.get(path, 0.0)
            for path in {**first.independent_calls, **second.independent_calls}
        }
    return Model(
        entry=entry,
        groups=groups,
        calls=first.calls + second.calls,
        sources=(*first.sources, *second.sources),
        entries=(*first.entries, *second.entries),
        steps=(*first.steps, step) if step.shared_calls else first.steps,
        dropped=first.dropped | second.dropped,
        **_added(first, second, larger),
        rows=rows,
        independent_calls=independent_calls,
    )


def _added(first: Model, second: Model, larger: Model) -> dict[str, Any]:
    """Return what adds up over two models."""
    histogram = larger.histogram
    if first.scale == second.scale:
        histogram = tuple(sorted((Counter(dict(first.histogram)) + Counter(dict(second.histogram))).items()))
    sums = {name: first.sums.get(name, 0) + second.sums.get(name, 0) for name in {**first.sums, **second.sums}}
    return {"scale": larger.scale, "histogram": histogram, "sums": sums}


def has_paths(model: Model) -> bool:
    """Return whether call paths are known."""
    return bool(model.groups) and _ANY not in model.groups


def _spread(model: Grouping, over: Grouping) -> Grouping:
    """Return the model that says nothing of paths, as one group of the paths of another."""
    calls, total = model[_ANY][1], sum(number for _, number in over.values())
    return {path: (0, max(1, round(calls * number / total))) for path, (_, number) in over.items()}


def rename_paths(model: Model, names: Mapping[Names, Names]) -> Model:
    """Return a model under other names; of paths that become one the heavier says the group."""
    groups: Grouping = {}
    rows: dict[Names, tuple[float, ...]] = {}
    independent_calls: dict[Names, float] = {}
    for path, (group, calls) in sorted(model.groups.items(), key=lambda item: (-item[1][1], item[0])):
        name = names.get(path, path)
        first, before = groups.get(name, (group, 0))
        groups[name] = (first, before + calls)
        rows = _together(rows, {name: model.rows[path]} if path in model.rows else {})
        independent_calls[name] = independent_calls.get(name, 0.0) + model.independent_calls.get(path, 0.0)
    return replace(model, groups=groups, rows=rows, independent_calls=independent_calls)


def _together(
    first: Mapping[Names, tuple[float, ...]], second: Mapping[Names, tuple[float, ...]]
) -> dict[Names, tuple[float, ...]]:
    found = dict(first)
    for path, row in second.items():
        before = found.get(path)
        whole = before is not None and len(before) == len(row)
        found[path] = tuple(a + b for a, b in zip(before or (), row, strict=True)) if whole else before or row
    return found


def names_of(frames: Iterable[Any]) -> Names:
    """Return the frames of a path as a specification has them."""
    return tuple(str(frame) for frame in frames)


def key_of(entry: Mapping[str, Any]) -> Key:
    """Return what makes a function the same in several specifications."""
    return str(entry.get("function")), str(entry.get("module"))
