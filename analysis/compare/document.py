"""A comparison as JSON and as text: ``specmine.comparison/1``."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from specmine.analysis.documents import title
from specmine.analysis.lifetimes.lifetime import Observed
from specmine.mining.regression.attribution import Blame, blame
from specmine.mining.regression.attribution_evidence import weighed
from specmine.mining.regression.comparison import Change, Comparison, Rule
from specmine.mining.regression.impact_factor import expected_impact
from specmine.mining.regression.sample import mean, variance
from specmine.mining.regression.sample_size import calls_worth_timing
from specmine.mining.regression.variance_components import Leaf, components
from specmine.model.text import cells, count, escaped, listed, plural

from .call_tree import Attribution, place_of
from .code_diff import MachineCode, sentences
from .host_effect import environments_document, host_cause, host_of, hosts_text
from .sides import Key, Sides, calls_of, samples

SCHEMA = "specmine.comparison/1"
_HEADS = (("VERDICT", 10), ("RATIO", 7), ("INTERVAL", 16), ("LIFETIMES", 9), ("DETECTABLE", 10))
_GAP = 2
_RANK = {Change.WORSE: 0, Change.BETTER: 1, Change.UNDECIDED: 2, Change.EQUIVALENT: 3}


def document_of(
    sides: Sides, found: Mapping[Key, Comparison], rule: Rule, *, fdr: bool, code: MachineCode
) -> dict[str, Any]:
    places = Attribution(sides, found, code, rule)
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


def _side_facts(name: str, observed: Mapping[Key, Sequence[Observed]]) -> dict[str, Any]:
    everything = [each for group in observed.values() for each in group]
    return {
        "name": name,
        "builds": sorted({each.build for each in everything}),
        "hosts": sorted({each.host for each in everything if each.host}),
        "lifetimes": len({(each.build, each.host, each.lifetime) for each in everything}),
    }


def _entry(sides: Sides, key: Key, comparison: Comparison, rule: Rule, places: Attribution) -> dict[str, Any]:
    base, new = sides.base.get(key, []), sides.new.get(key, [])
    estimate = comparison.estimate
    explained = None
    if comparison.verdict in (Change.WORSE, Change.BETTER):
        explained = blame(samples(base), samples(new), rule)
        if estimate is not None:
            explained = weighed(explained, estimate.ratio, places.evidence(key))
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


def _impact(base: Sequence[Observed], new: Sequence[Observed]) -> dict[str, Any] | None:
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


def _change(explained: Blame) -> dict[str, Any]:
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


def text(document: Mapping[str, Any], columns: int) -> str:
    """Return the table for people: what changed first, and below each row what it means."""
    entries = sorted(
        document["functions"],
        key=lambda each: (_RANK[Change(each["verdict"])], bool(each["explained_by"]), -each["calls"], each["function"]),
    )
    base, new, rule = document["base"], document["new"], document["rule"]
    lines = textwrap.wrap(
        f"{escaped(new['name'])} against {escaped(base['name'])}: {rule['summary']} of"
        f" {new['lifetimes']} and {base['lifetimes']} lifetimes, {100 * rule['level']:.4g} % intervals,"
        f" tolerance {100 * rule['tolerance']:.3g} %.",
        columns,
    )
    if document["skipped_lines"]:
        lines.append(f"{plural(document['skipped_lines'], 'bad line')} skipped.")
    for sentence in hosts_text(document["environment"]):
        lines += textwrap.wrap(sentence, columns, subsequent_indent="    ")
    if not entries:
        return "\n".join([*lines, "No function was seen on both sides."]) + "\n"
    names = [escaped(title(each)) for each in entries]
    room = columns - sum(size + _GAP for _, size in _HEADS)
    name_width = max(8, min(room, max(cells(name) for name in names)))
    lines += ["", _row("FUNCTION", [head for head, _ in _HEADS], name_width)]
    for name, each in zip(names, entries, strict=True):
        facts = _facts(each)
        if cells(name) <= name_width:
            lines.append(_row(name, facts, name_width))
        else:
            lines += [*textwrap.wrap(name, columns, subsequent_indent="  ", break_on_hyphens=False)]
            lines.append(_row("", facts, name_width))
        for sentence in _sentences(each):
            lines += textwrap.wrap(sentence, columns, initial_indent="    ", subsequent_indent="    ")
    verdicts = [each["verdict"] for each in entries]
    counted = [f"{verdicts.count(each.value)} {each.value}" for each in _RANK if each.value in verdicts]
    causes = sum(each["cause"] for each in entries)
    if 0 < causes < verdicts.count(Change.WORSE.value):
        counted[0] += f" ({plural(causes, 'cause')})"
    lines += ["", f"{plural(len(entries), 'function')}: {', '.join(counted)}."]
    for sentence in sentences(document["machine_code"]):
        lines += textwrap.wrap(sentence, columns, subsequent_indent="    ")
    return "\n".join(lines) + "\n"


def _facts(each: Mapping[str, Any]) -> list[str]:
    interval, detectable = each["interval"], each["smallest_detectable_ratio"]
    return [
        each["verdict"],
        "-" if each["ratio"] is None else f"{each['ratio']:.4f}"[:7],
        "-" if interval is None else f"{interval[0]:.4f}..{interval[1]:.4f}"[:16],
        f"{each['lifetimes'][0]}, {each['lifetimes'][1]}",
        "-" if detectable is None else f"{100 * (detectable - 1):.3g} %",
    ]


def _sentences(each: Mapping[str, Any]) -> list[str]:
    said = [f"{each['reason'][:1].upper()}{each['reason'][1:]}."] if each["verdict"] != "equivalent" else []
    if each["needed_lifetimes"] is not None:
        said.append(f"Needed: {count(each['needed_lifetimes'])} lifetimes a side.")
    if each["explained_by"]:
        said.append(f"Explained by {escaped(listed(each['explained_by']))}.")
    elif each["explains"]:
        said.append(f"Explains {escaped(listed(each['explains']))}.")
    place = place_of(each)
    if place:
        said.append(escaped(place))
    if each["change"] is not None:
        kinds = ", ".join(each["change"]["kinds"]) or "no class alone"
        said.append(f"{kinds}; speaks for: {each['change']['cause']} ({each['change']['reason']}).")
    elif each["host"] and each["host"]["explained"]:
        said.append(f"The host explains it: {each['host']['reason']}.")
    return said


def _row(name: str, facts: Sequence[str], name_width: int) -> str:
    line = name + " " * (name_width - cells(name))
    for at, (fact, (_, size)) in enumerate(zip(facts, _HEADS, strict=True)):
        line += " " * _GAP + (fact.ljust(size) if at == 0 else fact.rjust(size))
    return line.rstrip()
