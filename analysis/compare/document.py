"""A comparison as JSON: ``specmine.comparison/1``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from specmine.analysis.lifetimes.lifetime import FunctionLifetime
from specmine.mining.regression.attribution import ChangeAttribution, attribute
from specmine.mining.regression.attribution_evidence import weigh
from specmine.mining.regression.comparison import Change, Rule
from specmine.mining.regression.impact_factor import expected_impact
from specmine.mining.regression.sample import mean, variance
from specmine.mining.regression.sample_size import calls_worth_timing
from specmine.mining.regression.variance_components import Leaf, components

from .call_tree import LocatedChanges
from .comparing import ComparedFunctions
from .host_effect import environments_document, host_cause, host_of
from .left_out import left_out_of
from .order import order_document
from .part_entries import comparison_fields, finite, part_entry
from .sides import ByFunction, Key, Sides, calls_of, samples
from .time_parts import time_document

SCHEMA = "specmine.comparison/1"


def document_of(sides: Sides, compared: ComparedFunctions, rule: Rule, *, fdr: bool) -> dict[str, Any]:
    """Return a comparison as JSON values, functions by calls."""
    places = LocatedChanges(sides, compared.functions, compared.code, rule)
    entries = [function_entry(sides, key, compared, rule, places) for key in compared.functions]
    entries.sort(key=lambda each: (-each["calls"], each["function"], each["module"]))
    return {
        "schema": SCHEMA,
        "base": _side_facts(sides, 0),
        "new": _side_facts(sides, 1),
        "rule": {"summary": rule.summary, "level": rule.level, "tolerance": rule.tolerance, "fdr": fdr},
        "skipped_lines": sides.skipped_lines,
        "environment": environments_document(sides.base, sides.new),
        "order": order_document(compared.order, compared.drift),
        "only_base": sorted(name for name, _ in sides.base if (name, _) not in sides.new),
        "only_new": sorted(name for name, _ in sides.new if (name, _) not in sides.base),
        "functions": entries,
        "machine_code": compared.code.document(),
    }


def function_entry(
    sides: Sides, key: Key, compared: ComparedFunctions, rule: Rule, places: LocatedChanges
) -> dict[str, Any]:
    """Return the JSON values of one function."""
    base, new = sides.base.get(key, []), sides.new.get(key, [])
    found = compared.functions[key]
    estimate = found.estimate
    explained = None
    if found.verdict in (Change.WORSE, Change.BETTER):
        explained = attribute(samples(base), samples(new), rule)
        ratio = found.decisive.comparison.ratio
        if ratio is not None:
            explained = weigh(explained, ratio, places.evidence(key))
    by_host = host_of(base, new) if estimate and not estimate.low <= 1.0 <= estimate.high else None
    change = {**_change(explained), **host_cause(explained, by_host)} if explained else None
    moved = found.verdict in (Change.WORSE, Change.BETTER)
    unchanged = compared.code.unchanged(key)
    reason = found.reason
    if found.verdict is Change.WORSE and unchanged:
        reason += ", though neither its machine code nor that of what it calls changed"
    return {
        "function": key[0],
        "module": key[1],
        **comparison_fields(found.whole, rule),
        "verdict": found.verdict.value,
        "verdict_of_summary": found.whole.verdict.value,
        "decided_by": found.parts.index(found.decisive) - 1 if found.decisive is not found.parts[0] else None,
        "needed_lifetimes": found.needed,
        "reason": reason,
        "behaviours": [part_entry(each, rule) for each in found.parts[1:]],
        "lifetimes_left_out": left_out_of(sides, key, found.left_out),
        "calls": calls_of(sides, key),
        "p_value": finite(found.p_value),
        "q_value": finite(found.q_value),
        "freedom": finite(estimate.freedom) if estimate else None,
        "unit": estimate.method if estimate else None,
        "lifetime_deviations": [finite(each) for each in estimate.deviations] if estimate else None,
        "warmup_calls": [sum(each.warmup for each in base), sum(each.warmup for each in new)],
        "impact": _impact(base, new),
        "change": change,
        "host": by_host.document() if by_host else None,
        "time": time_document(*(side.get(key, ()) for side in sides.by_window())) if moved else None,
        "machine_code": compared.code.of(key),
        "code_unchanged": unchanged,
        **places.fields(key),
    }


def fails(entry: Mapping[str, Any], *, strict: bool) -> bool:
    """Return whether a function of a comparison makes it fail: worse, and not for sure without any change of code."""
    return entry["verdict"] == Change.WORSE.value and (strict or not entry["code_unchanged"])


def _side_facts(sides: Sides, at: int) -> dict[str, Any]:
    observed: ByFunction = (sides.base, sides.new)[at]
    everything = [each for group in observed.values() for each in group]
    return {
        "name": sides.names[at],
        "builds": sorted({each.build for each in everything}),
        "hosts": sorted({each.host for each in everything if each.host}),
        "lifetimes": len({(each.build, each.host, each.lifetime) for each in everything}),
        "lifetimes_seen": len(sides.seen[at]),
    }


def _impact(base: Sequence[FunctionLifetime], new: Sequence[FunctionLifetime]) -> dict[str, Any] | None:
    """Return how much of the variance lies between lifetimes: what more calls in one cannot teach."""
    leaves = [
        Leaf(labels=(side_name, each.host, each.lifetime), calls=each.sample.calls, mean=mean(each.sample),
             variance=variance(each.sample))
        for side_name, group in (("base", base), ("new", new))
        for each in group
        if each.sample.calls > 1
    ]  # fmt: skip
    if len(leaves) < 3:
        return None
    _, _, lifetime, call = components(leaves)
    if not (call.variance > 0.0 and math.isfinite(lifetime.variance)):
        return None
    return {
        "factor": expected_impact(lifetime.at_least_zero, call.variance),
        "call_variance_ns2": call.variance,
        "lifetime_variance_ns2": lifetime.variance,
        "calls_worth_timing": calls_worth_timing(call.variance, lifetime.variance, fewest=30, most=1_000_000),
    }


def _change(explained: ChangeAttribution) -> dict[str, Any]:
    return {
        "kinds": list(explained.kinds),
        "cause": explained.cause,
        "reason": explained.reason,
        "rate_ratio": explained.rate_ratio,
        "classes": [
            {
                "upper_seconds": each.upper_ns * 1e-9 if math.isfinite(each.upper_ns) else None,
                "shares": list(each.shares),
                "share_changed": each.share_changed,
                "ratio": each.ratio,
                "interval": list(each.interval) if each.interval else None,
                "moved": each.moved,
            }
            for each in explained.classes
        ],
    }
