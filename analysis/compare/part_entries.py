"""The parts of a function in the JSON of a comparison: the same fields for all calls, each class and each behaviour."""

from __future__ import annotations

import math
from typing import Any

from specmine.mining.comparison.function_comparison import ComparedPart, name_of
from specmine.mining.regression.comparison import Comparison, Rule


def part_entry(one: ComparedPart, rule: Rule) -> dict[str, Any]:
    """Return the JSON values of a part."""
    part, found = one.part, one.comparison
    lower, upper = part.bounds_ns or (0.0, math.inf)
    return {
        "kind": part.kind,
        "name": name_of(part, rule),
        "expression": part.expression,
        "class": {
            "lower_seconds": max(0.0, lower) * 1e-9,
            "upper_seconds": upper * 1e-9 if math.isfinite(upper) else None,
        }
        if part.bounds_ns is not None
        else None,
        "shares": [finite(each) for each in part.shares],
        **comparison_fields(found, rule),
        "summary": part.summary,
        "lifetimes_left_out": [
            {
                "side": ("base", "new")[each.side],
                "lifetime": each.lifetime,
                "host": each.host,
                "calls": each.calls,
                "reason": {"code": each.code, "text": each.text},
            }
            for each in found.left_out
        ],
        "needed_lifetimes": found.needed,
        "p_value": finite(found.estimate.p_value) if found.estimate else None,
    }


def comparison_fields(found: Comparison, rule: Rule) -> dict[str, Any]:
    """Return the fields that a function shares with its parts."""
    estimate = found.estimate
    return {
        "verdict": found.verdict.value,
        "ratio": finite(found.ratio),
        "interval": [finite(estimate.low), finite(estimate.high)] if estimate else None,
        "level": rule.level,
        "summary": rule.summary,
        "seconds": [None if each is None else finite(each * 1e-9) for each in found.centres_ns],
        "lifetimes": list(found.lifetimes),
        "smallest_detectable_ratio": finite(found.smallest_detectable),
        "reason": found.reason,
    }


def finite(value: float | None) -> float | None:
    """Return a number to 6 significant digits, None if there is none."""
    return float(f"{value:.6g}") if value is not None and math.isfinite(value) else None
