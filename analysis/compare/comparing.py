"""Functions compared part by part, with all that a source knows of both sides."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from specmine.analysis.lifetimes.lifetime import FunctionLifetime
from specmine.analysis.lifetimes.seen import SeenLifetime
from specmine.mining.comparison.function_comparison import FunctionComparison, compare_function, with_discoveries
from specmine.mining.comparison.function_parts import parts_of
from specmine.mining.comparison.interleaving import Interleaving, interleaving
from specmine.mining.regression.comparison import Rule
from specmine.mining.regression.host_drift import STEADY, HostDrift, Run, deviation_of, host_drift
from specmine.mining.regression.sample import FEWEST_CALLS, SUMMARIES

from .behaviours import BehaviourCalls
from .code_diff import MachineCode
from .reached_code import ReachedCode
from .sides import Key, Sides, samples

FEWEST_LIFETIMES = 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ComparedFunctions:
    """The verdicts on functions, and what they have in common."""

    functions: Mapping[Key, FunctionComparison]
    code: MachineCode
    order: Interleaving
    drift: HostDrift | None
    """What functions of unchanged code did; None where the sides were interleaved, or too few of them are known."""


def compare_functions(
    sides: Sides, keys: Sequence[Key], rule: Rule, *, fdr: bool = False, reached: ReachedCode | None = None
) -> ComparedFunctions:
    """Compare functions; ``reached`` has their code if it was read already.

    Notes
    -----
    Sides that were not interleaved in time may differ by what the host did meanwhile. Functions of unchanged code show
    that, so each function is also compared with the others of them.
    """
    code, behaviours = MachineCode.of_sides(sides, reached), BehaviourCalls(sides)
    order = interleaving(_starts(sides.seen[0]), _starts(sides.seen[1]))
    both = [key for key in sides.base if key in sides.new] if order.interleaved is False else []
    controls = {key for key in both if code.unchanged(key)}
    summaries = {key: (_summaries(sides.base[key], rule), _summaries(sides.new[key], rule)) for key in controls}
    found = {}
    for key in keys:
        base, new = samples(sides.base.get(key, ())), samples(sides.new.get(key, ()))
        parts = parts_of(base, new, rule, behaviours.of(key))
        drift = _drift(summaries, controls - {key}, rule, _deviation(sides, key, rule)) if controls else None
        found[key] = compare_function(parts, rule, drift)
    if fdr:
        found = with_discoveries(found, rule)
    return ComparedFunctions(
        functions=found,
        code=code.suspected_for(found),
        order=order,
        drift=_drift(summaries, controls, rule),
    )


def _starts(seen: Sequence[SeenLifetime]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for each in seen:
        found.setdefault(each.host, []).append(each.start_ns)
    return found


def _summaries(observed: Sequence[FunctionLifetime], rule: Rule) -> dict[Run, float]:
    values = {
        (each.host, each.lifetime): SUMMARIES[rule.summary](each.sample)
        for each in observed
        if each.sample.calls >= FEWEST_CALLS[rule.summary]
    }
    return {run: value for run, value in values.items() if value > 0.0}


def _drift(
    summaries: Mapping[Key, tuple[Mapping[Run, float], Mapping[Run, float]]],
    chosen: Collection[Key],
    rule: Rule,
    deviation: float = STEADY,
) -> HostDrift | None:
    known = [summaries[key] for key in sorted(chosen) if min(map(len, summaries[key])) >= FEWEST_LIFETIMES]
    return host_drift(known, rule.level, deviation)


def _deviation(sides: Sides, key: Key, rule: Rule) -> float:
    return deviation_of(_summaries(sides.base.get(key, ()), rule), _summaries(sides.new.get(key, ()), rule))
