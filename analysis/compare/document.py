"""A comparison as JSON: ``specmine.comparison/1``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from specmine.analysis.lifetimes.lifetime import FunctionLifetime
from specmine.mining.regression.attribution import ChangeAttribution, attribute
from specmine.mining.regression.attribution_evidence import weigh
from specmine.mining.regression.comparison import Change, Comparison, Rule
from specmine.mining.regression.impact_factor import expected_impact
from specmine.mining.regression.sample import mean, variance
from specmine.mining.regression.sample_size import calls_worth_timing
from specmine.mining.regression.variance_components import Leaf, components

from .call_tree import LocatedChanges
from .code_diff import MachineCode
from .host_effect import environments_document, host_cause, host_of
from .sides import Key, Sides, calls_of, samples

SCHEMA = "specmine.comparison/1"


def document_of(
    sides: Sides, found: Mapping[Key, Comparison], rule: Rule, *, fdr: bool, code: MachineCode
) -> dict[str, Any]:
    places = LocatedChanges(sides, found, code, rule)
    entries = [
        {**_entry(sides, key, comparison, rule, places), "machine_code": code.of(key)}
        for key, comparison in found.items()
    ]
    entries.sort(key=lambda each: (-each["calls"], each["function"], each["module"]))
    return {
        "schema": SCHEMA,
        "base": _side_facts(sides.names[0], sides.base),
        "new": _side_facts(sides.names[1], sides.new),
        "rule": {"summary": rule.summary, "level": rule.level, "tolerance": rule.tolerance, "fdr": fdr},
        "skipped_lines": sides.skipped_lines,
        "environment": environments_document(sides.base, sides.new),
        "only_base": sorted(name for name, _ in sides.base if (name, _) not in sides.new),
        "only_new": sorted(name for name, _ in sides.new if (name, _) not in sides.base),
        "functions": entries,
        "machine_code": code.document(),
    }


def _side_facts(name: str, observed: Mapping[Key, Sequence[FunctionLifetime]]) -> dict[str, Any]:
    everything = [each for group in observed.values() for each in group]
    return {
        "name": name,
        "builds": sorted({each.build for each in everything}),
        "hosts": sorted({each.host for each in everything if each.host}),
        "lifetimes": len({(each.build, each.host, each.lifetime) for each in everything}),
    }


def _entry(sides: Sides, key: Key, comparison: Comparison, rule: Rule, places: LocatedChanges) -> dict[str, Any]:
    base, new = sides.base.get(key, []), sides.new.get(key, [])
    estimate = comparison.estimate
    explained = None
    if comparison.verdict in (Change.WORSE, Change.BETTER):
        explained = attribute(samples(base), samples(new), rule)
        if estimate is not None:
            explained = weigh(explained, estimate.ratio, places.evidence(key))
    by_host = host_of(base, new) if estimate and not estimate.low <= 1.0 <= estimate.high else None
    change = {**_change(explained), **host_cause(explained, by_host)} if explained else None
    return {
        "function": key[0],
        "module": key[1],
        "verdict": comparison.verdict.value,
        "ratio": _finite(estimate.ratio) if estimate else None,
        "interval": [_finite(estimate.low), _finite(estimate.high)] if estimate else None,
        "level": rule.level,
        "summary": rule.summary,
        "lifetimes": list(comparison.lifetimes),
        "smallest_detectable_ratio": _finite(comparison.smallest_detectable),
        "needed_lifetimes": comparison.needed,
        "reason": comparison.reason,
        "calls": calls_of(sides, key),
        "p_value": _finite(estimate.p_value) if estimate else None,
        "q_value": _finite(comparison.q_value),
        "freedom": _finite(estimate.freedom) if estimate else None,
        "unit": estimate.method if estimate else None,
        "lifetime_deviations": [_finite(each) for each in estimate.deviations] if estimate else None,
        "left_out_lifetimes": comparison.left_out,
        "warmup_calls": [sum(each.warmup for each in base), sum(each.warmup for each in new)],
        "impact": _impact(base, new),
        "change": change,
        "host": by_host.document() if by_host else None,
        **places.fields(key),
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


def _finite(value: float | None) -> float | None:
    return float(f"{value:.6g}") if value is not None and math.isfinite(value) else None
