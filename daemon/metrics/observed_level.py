"""How long the calls of the last minutes took: quantiles without ranges, cheap enough for every scrape. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_

import numpy as np

from specmine.daemon.controller.function import FunctionState
from specmine.mining.assertions.expression import Formula, evaluate, named_edges, shared_names
from specmine.mining.levels.estimate import LEAST_CALLS
from specmine.mining.levels.window import FLOOR_NS, Window, quantiles_of, windows_of, windows_of_paths
from specmine.model.call_path import CallPath
from specmine.model.histogram import Histogram
from specmine.model.level import PROBABILITIES, Level, Quantile
from specmine.model.observation import Observation

RECENT_NS = 300_000_000_000
"""Windows that ended within so long count; if there is none, the newest one."""


AGED_NS = 30_000_000_000
"""Levels are computed anew after so long without a new window, since older ones cease to count."""
_MOST_KNOWN = 4096
_known: dict[str, tuple[tuple[object, object], int, dict[str, Level]]] = {}
"""Levels by the key of the function, with what they follow from and when: a scrape comes every few seconds."""


def observed_levels(function: FunctionState, now_ns: int) -> dict[str, Level]:
    """Return the level of all calls, and of each behaviour whose call paths were observed, by expression."""
    basis = function.history, function.explanation.result
    known = _known.get(function.key)
    if known is not None and all(map(is_, known[0], basis)) and 0 <= now_ns - known[1] < AGED_NS:
        return known[2]
    if len(_known) >= _MOST_KNOWN:
        _known.clear()
    levels = _computed(function, now_ns)
    _known[function.key] = basis, now_ns, levels
    return levels


def _computed(function: FunctionState, now_ns: int) -> dict[str, Level]:
    result = function.explanation.result
    levels = {"true": _level(windows_of(_recent((*function.history.timing, *function.history.paths), now_ns)))}
    paths = _recent(function.history.paths, now_ns) if result is not None else ()
    if result is None or not paths:
        return levels
    shared = shared_names(each.path for each in result.paths)

    def belongs(formula: Formula, path: CallPath) -> bool:
        return evaluate(formula, named_edges(path, shared))

    for behaviour in result.behaviours:
        formula = behaviour.formula
        levels[behaviour.expression] = _level(
            windows_of_paths(paths, lambda path, formula=formula: belongs(formula, path))  # type: ignore[misc]
        )
    return levels


def _recent(observations: Sequence[Observation], now_ns: int) -> Sequence[Observation]:
    newest = sorted(observations, key=lambda one: one.end_ns)
    return [one for one in newest if now_ns - one.end_ns <= RECENT_NS] or newest[-1:]


def _level(windows: Sequence[Window]) -> Level:
    calls = sum(one.histogram.total for one in windows)
    if not calls:
        return Level()
    pooled = Histogram.sum(one.histogram for one in windows)
    bias_ns = sum(one.bias_ns * one.histogram.total for one in windows) / calls
    values = quantiles_of(pooled, np.array(list(PROBABILITIES.values()))) - bias_ns
    known = {
        name: Quantile(ns=max(FLOOR_NS, float(value)))
        for name, value in zip(PROBABILITIES, values, strict=True)
        if calls >= LEAST_CALLS[name]
    }
    return Level(p50=known.get("p50"), p90=known.get("p90"), p99=known.get("p99"), calls=calls, windows=len(windows))
