"""Levels as JSON: quantiles of a function, its behaviours and its classes, each with its normal range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from specmine.daemon.controller.function import FunctionState
from specmine.mining.assertions.expression import Formula, evaluate, named_edges, shared_names
from specmine.mining.levels.estimate import level_of
from specmine.mining.levels.window import windows_of, windows_of_class, windows_of_paths
from specmine.mining.off_cpu.on_cpu import as_time_on_cpu
from specmine.model.call_path import CallPath
from specmine.model.level import PROBABILITIES, Level
from specmine.model.observation import Observation

from .data import Data


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """The levels of one function."""

    whole: Level
    behaviours: tuple[Level, ...] = ()
    """In the order of the explanation."""
    classes: tuple[Level, ...] = ()
    """The fastest class first; none where there is only one."""
    on_cpu: Level | None = None
    """Of the time on CPU; None where it is not known."""


_MOST_KNOWN = 4096
_known: dict[str, tuple[tuple[object, ...], Levels]] = {}
"""Levels by the key of the function, with what they follow from: a document is made every few seconds."""


def levels_of(function: FunctionState, data: Data | None) -> Levels:
    """Return the levels of the windows that are retained of a function; computed once for each state of it."""
    basis = function.history, function.inference.learned, function.explanation.result
    known = _known.get(function.key)
    if known is not None and all(one is other for one, other in zip(known[0], basis, strict=True)):
        return known[1]
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    levels = _computed(function, data)
    _known[function.key] = basis, levels
    return levels


def _computed(function: FunctionState, data: Data | None) -> Levels:
    held: Sequence[Observation] = data.held if data is not None else function.history.longest
    on_cpu = [one for each in held if (one := as_time_on_cpu(each)) is not None]
    result = function.explanation.result
    shared = shared_names(each.path for each in result.paths) if result else frozenset()
    return Levels(
        whole=level_of(windows_of(held)),
        behaviours=tuple(
            level_of(windows_of_paths(held, partial(_fulfils, each.formula, shared)))
            for each in (result.behaviours if result else ())
        ),
        classes=tuple(
            level_of(windows_of_class(held, data.edges, number, data.bias_ns)) for number in range(len(data.edges) + 1)
        )
        if data is not None and data.edges
        else (),
        on_cpu=level_of(windows_of(on_cpu)) if on_cpu else None,
    )


def level_facts(level: Level) -> dict[str, Any]:
    """Return the quantiles of a level and what they rest on."""
    return {"quantiles": quantiles(level), "lifetimes": level.lifetimes, "windows": level.windows}


def quantiles(level: Level) -> dict[str, Any]:
    """Return the quantiles of a level in s by name; those are left out for which there are too few calls."""
    known = {name: level.quantile(name) for name in PROBABILITIES}
    return {
        name: {"seconds": each.ns * 1e-9, "low": _seconds(each.low_ns), "high": _seconds(each.high_ns)}
        for name, each in known.items()
        if each is not None
    }


def _fulfils(formula: Formula, shared: frozenset[str], path: CallPath) -> bool:
    return evaluate(formula, named_edges(path, shared))


def _seconds(ns: float | None) -> float | None:
    return None if ns is None else ns * 1e-9
