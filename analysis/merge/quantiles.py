"""Levels of several specifications as one: a range that holds the windows of each of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from specmine.model.level import PROBABILITIES

Part = Mapping[str, Any]
"""A function or behaviour with ``quantiles``, ``lifetimes`` and ``windows``."""


def merged_levels(parts: Sequence[Part]) -> dict[str, Any]:
    """Return ``quantiles``, ``lifetimes`` and ``windows`` of several parts together; nothing if none has quantiles.

    Each quantile is the geometric mean, weighted by lifetimes. Its range reaches over all ranges; it is known if one
    of them is.
    """
    known = [part for part in parts if part.get("quantiles")]
    if not known:
        return {}
    quantiles = {}
    for name in PROBABILITIES:
        stated = [(part["quantiles"][name], _lifetimes(part)) for part in known if part["quantiles"].get(name)]
        if stated:
            quantiles[name] = _merged(stated)
    return {
        "quantiles": quantiles,
        "lifetimes": sum(map(_lifetimes, known)),
        "windows": sum(int(part.get("windows") or 1) for part in known),
    }


def with_levels(entry: Mapping[str, Any], sources: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a merged function with the levels of its sources.

    Behaviours are the same if their expressions are. The behaviour ``true`` is all calls: where a source has none, the
    levels of the function are those of the behaviour. Classes are the same if there are as many.
    """
    behaviours = []
    for each in entry.get("behaviours") or []:
        expression = each.get("expression")
        alike = [other for source in sources for other in _stated(source, expression)]
        kept = {name: value for name, value in each.items() if name not in ("quantiles", "observed", "observed_span")}
        behaviours.append(kept | merged_levels(alike))
    nothing = dict.fromkeys(("observed", "observed_span", "windows_span"))
    levels = {**merged_levels(sources), **nothing, "behaviours": behaviours}
    classes = entry.get("classes") or []
    alike = [source for source in sources if len(source.get("classes") or []) == len(classes)]
    if any("quantiles" in each for each in classes):
        levels["classes"] = [{**each, "quantiles": _of_class(alike, number)} for number, each in enumerate(classes)]
    return {**entry, **levels}


def _of_class(sources: Sequence[Mapping[str, Any]], number: int) -> dict[str, Any]:
    parts = [
        {"quantiles": source["classes"][number].get("quantiles"), "lifetimes": source.get("lifetimes")}
        for source in sources
    ]
    found: dict[str, Any] = merged_levels(parts).get("quantiles", {})
    return found


def _stated(source: Mapping[str, Any], expression: Any) -> list[Part]:
    """Return the parts of a source whose calls are those of an expression."""
    found = [each for each in source.get("behaviours") or [] if each.get("expression") == expression]
    return [source] if expression == "true" and not any(each.get("quantiles") for each in found) else found


def _merged(stated: Sequence[tuple[Mapping[str, Any], int]]) -> dict[str, float | None]:
    weight = sum(lifetimes for _, lifetimes in stated)
    logs = [(math.log(max(float(each["seconds"]), 1e-10)), lifetimes) for each, lifetimes in stated]
    lows = [float(each["low"]) for each, _ in stated if each.get("low") is not None]
    highs = [float(each["high"]) for each, _ in stated if each.get("high") is not None]
    return {
        # as many digits as documents have, so that what is read again is equal
        "seconds": float(f"{math.exp(sum(value * lifetimes for value, lifetimes in logs) / weight):.6g}"),
        "low": min(lows, default=None),
        "high": max(highs, default=None),
    }


def _lifetimes(part: Part) -> int:
    return max(1, int(part.get("lifetimes") or 1))
