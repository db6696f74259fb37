"""What is stated of a function's durations: borders, classes, behaviours, call paths.

Nothing is claimed before the function is stable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.phase import FINISHED, State
from specmine.mining.assertions.explanation import Explanation
from specmine.mining.assertions.expression import shared_names, shown, to_records
from specmine.mining.borders.inference import Inference
from specmine.model.buckets import BUCKET_EDGES
from specmine.model.call_path import CallPath

from .data import Data
from .levels import Levels, Span, level_facts, quantiles
from .time_split import path_facts

Dates = Callable[[Span], dict[str, str] | None]
"""Writes times of the controller as dates."""


def statements(function: FunctionState, data: Data | None, levels: Levels, dates: Dates) -> dict[str, Any]:
    """Return borders, classes, behaviours and paths; empty lists without data."""
    if data is None:
        return {"borders_seconds": [], "borders": [], "classes": [], "behaviours": [], "paths": []}
    upper = _borders_seconds(function.inference.learned, data)
    shares = _shares(data.histogram.class_counts(data.edges))
    result = function.explanation.result if function.state in (State.EXPLAINED, State.UNEXPLAINED) else None
    behaviours: list[dict[str, Any]] = []
    paths: list[dict[str, Any]] = []
    if result is not None:
        behaviours, paths = behaviours_and_paths(result, path_facts(data.held, data.bias_ns), levels, dates)
    if not behaviours and function.state in FINISHED:
        calls = data.histogram.total
        behaviours = [
            {
                "expression": "true",
                "formula": [[]],
                "calls": calls,
                "paths": sum(each["complete"] for each in paths),
                "shares": shares,
                **level_facts(levels.whole),
            }
        ]
    return {
        "borders_seconds": upper,
        "borders": _borders(function.inference.learned, data),
        "classes": [
            {"upper_seconds": bound, "share": part, "quantiles": quantiles(level)}
            for bound, part, level in zip([*upper, None], shares, levels.classes or (levels.whole,), strict=True)
        ],
        "behaviours": behaviours,
        "paths": paths,
    }


def behaviours_and_paths(
    result: Explanation,
    times: Mapping[CallPath, Mapping[str, float]] | None = None,
    levels: Levels | None = None,
    dates: Dates = lambda _: None,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return both lists sorted by calls, the paths' references renumbered to match."""
    order = sorted(
        range(len(result.behaviours)),
        key=lambda at: (-result.behaviours[at].calls, result.behaviours[at].expression),
    )
    place = {old: new for new, old in enumerate(order)}
    behaviours = [
        {
            "expression": each.expression,
            "formula": to_records(each.formula),
            "calls": each.calls,
            "paths": each.paths,
            "shares": _shares(each.class_calls),
            **(_levels(levels, old, dates) if levels else {}),
        }
        for old, each in ((old, result.behaviours[old]) for old in order)
    ]
    shared = shared_names(each.path for each in result.paths)
    paths = [
        {
            "frames": [shown(frame, shared) for frame in each.path.frames],
            "complete": each.path.complete,
            "calls": each.calls,
            "independent_calls": each.independent_calls,
            "shares": _shares(each.class_calls),
            "behaviour": place[each.behaviour] if each.behaviour is not None else None,
            "certainty": each.certainty if each.behaviour is not None else None,
            **(times or {}).get(each.path, {}),
        }
        for each in sorted(result.paths, key=lambda one: (-one.calls, one.path))
    ]
    return behaviours, paths


def _levels(levels: Levels, behaviour: int, dates: Dates) -> dict[str, Any]:
    observed = levels.observed_behaviours
    return level_facts(levels.behaviours[behaviour]) | {
        "observed": quantiles(observed[behaviour]) if observed else None,
        "observed_span": dates(levels.observed_ns[1 + behaviour]) if observed else None,
    }


def _borders(learned: Inference | None, data: Data) -> list[dict[str, Any]]:
    known = learned.borders if learned and len(learned.borders) == len(data.edges) else ()
    edges = BUCKET_EDGES
    stated = []
    for place, (edge, seconds) in enumerate(zip(data.edges, _borders_seconds(learned, data), strict=True)):
        evidence: dict[str, Any] = {}
        if place < len(known):
            border = known[place]
            evidence = {
                "cdf": border.cdf,
                "found": border.found,
                "of": border.of,
                "depth": border.evidence.depth,
                "significance": border.evidence.significance,
                "lower_calls": border.evidence.lower_calls,
                "upper_calls": border.evidence.upper_calls,
            }
        stated.append(
            {
                "seconds": seconds,
                "evidence": evidence,
                # a border lies between two buckets: it is known no finer than the wider of the two
                "uncertainty_seconds": max(float(edges[edge + 1] - edges[edge]), data.uncertainty_ns) * 1e-9,
            }
        )
    return stated


def _borders_seconds(learned: Inference | None, data: Data) -> list[float]:
    """Return the durations of the borders: exact ones, as raw durations show them, or else those of their buckets."""
    known = learned.borders if learned is not None and learned.edges == tuple(data.edges) else ()
    durations = [border.duration_ns for border in known] or [float(BUCKET_EDGES[edge]) for edge in data.edges]
    return [max(0.0, duration - data.bias_ns) * 1e-9 for duration in durations]


def _shares(class_calls: Iterable[int]) -> list[float]:
    numbers = [int(number) for number in class_calls]
    return [number / max(sum(numbers), 1) for number in numbers]
