"""The verdict on a function: its parts compared, and what follows for the whole.

Equivalent only if every part is, worse if one is. The parts share a risk, so that more parts give no more false alarms.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from specmine.mining.regression.comparison import Change, Comparison, LeftOut, Rule, compare
from specmine.mining.regression.false_discovery_rate import q_values
from specmine.mining.regression.host_drift import HostDrift
from specmine.mining.regression.ratio_estimate import RatioEstimate
from specmine.model.text import duration

from .function_parts import Part

Key = TypeVar("Key")

OTHERS_RISK = 0.2
"""Of the risk of the rule's own summary, so much again is shared by all other parts."""
FURTHER = 0.05
"""A part whose log ratio is so much further from 0 than that of all calls is named in its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedPart:
    """A part with its verdict."""

    part: Part
    comparison: Comparison
    weight: float
    """Share of the function's risk that worse and better of this part may use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionComparison:
    """The verdict on a function."""

    verdict: Change
    parts: tuple[ComparedPart, ...]
    """All calls by the rule's own summary first."""
    reason: str
    needed: int | None = None
    """Lifetimes a side with which it would be decided; only if undecided."""
    q_value: float | None = None

    @property
    def whole(self) -> Comparison:
        """All calls by the rule's own summary."""
        return self.parts[0].comparison

    @property
    def estimate(self) -> RatioEstimate | None:
        """The ratio of all calls by the rule's own summary, with its interval."""
        return self.whole.estimate

    @property
    def decisive(self) -> ComparedPart:
        """Of the parts with the verdict the one that changed most; all calls if they changed nearly as much."""
        alike = [each for each in self.parts if each.comparison.verdict is self.verdict and each.comparison.changed]
        most = max(alike, key=_distance, default=self.parts[0])
        whole = self.parts[0]
        return whole if whole in alike and _distance(most) < _distance(whole) + FURTHER else most

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """Lifetimes that the comparison of the whole could not use."""
        return self.whole.left_out

    @property
    def p_value(self) -> float | None:
        """Of a change this large in any part although nothing changed (weighted Bonferroni)."""
        known = [
            each.comparison.estimate.p_value / each.weight
            for each in self.parts
            if each.comparison.estimate is not None
        ]
        return min(1.0, *known) if known else None


def _distance(one: ComparedPart) -> float:
    return abs(math.log(one.comparison.ratio or 1.0))


def compare_function(parts: Sequence[Part], rule: Rule, drift: HostDrift | None = None) -> FunctionComparison:
    """Compare a function part by part.

    Parameters
    ----------
    parts : sequence of Part
        All calls by the rule's own summary first (``parts_of``).
    rule : Rule
        Worse and better of the first part are decided at its level. All others share ``OTHERS_RISK`` of that risk
        equally (Bonferroni). Equivalence needs every part, so each is decided at the level itself (Berger 1982).
    drift : HostDrift, optional
        How functions of unchanged code changed.
    """
    others = max(len(parts) - 1, 1)
    risk = 1.0 - rule.level
    compared = []
    for at, one in enumerate(parts):
        own = risk if at == 0 else OTHERS_RISK * risk / others
        found = compare(one.base, one.new, replace(rule, summary=one.summary), change_level=1.0 - own, drift=drift)
        weight = (1.0 if at == 0 else OTHERS_RISK / others) / (1.0 + (OTHERS_RISK if len(parts) > 1 else 0.0))
        compared.append(ComparedPart(part=one, comparison=found, weight=weight))
    return _judged(tuple(compared), rule)


def with_discoveries(compared: Mapping[Key, FunctionComparison], rule: Rule) -> dict[Key, FunctionComparison]:
    """Return the comparisons with q-values; worse and better need q <= 1 - level as well.

    Notes
    -----
    Benjamini and Hochberg 1995 over all functions that have a p-value.
    """
    tested = {key: p_value for key, each in compared.items() if (p_value := each.p_value) is not None}
    found = dict(zip(tested, q_values(list(tested.values())), strict=True))
    return {key: _discovered(each, found.get(key), rule) for key, each in compared.items()}


def _discovered(each: FunctionComparison, q_value: float | None, rule: Rule) -> FunctionComparison:
    if q_value is None:
        return each
    if each.verdict in (Change.WORSE, Change.BETTER) and q_value > 1.0 - rule.level + 1e-12:
        return replace(
            each,
            verdict=Change.UNDECIDED,
            q_value=q_value,
            needed=_needed(each.parts),
            reason=f"{each.verdict.value} on its own, but so many functions give as much at random (q {q_value:.2g})",
        )
    return replace(each, q_value=q_value)


def _judged(parts: tuple[ComparedPart, ...], rule: Rule) -> FunctionComparison:
    verdicts = [each.comparison.verdict for each in parts]
    if Change.WORSE in verdicts:
        verdict = Change.WORSE
    elif Change.BETTER in verdicts:
        verdict = Change.BETTER
    elif all(each is Change.EQUIVALENT for each in verdicts):
        verdict = Change.EQUIVALENT
    else:
        verdict = Change.UNDECIDED
    judged = FunctionComparison(verdict=verdict, parts=parts, reason="")
    return replace(
        judged,
        reason=_reason(judged, rule),
        needed=_needed(parts) if verdict is Change.UNDECIDED else None,
    )


def _needed(parts: Sequence[ComparedPart]) -> int | None:
    """Return when the function would be decided: one part has changed for sure, or every part is equivalent."""
    changes = [each.comparison.needed_change for each in parts if each.comparison.needed_change is not None]
    open_parts = [each.comparison for each in parts if each.comparison.verdict is not Change.EQUIVALENT]
    equivalences = [each.needed_equivalence for each in open_parts if each.needed_equivalence is not None]
    ways = changes + ([max(equivalences)] if open_parts and len(equivalences) == len(open_parts) else [])
    return min(ways, default=None)


def _reason(judged: FunctionComparison, rule: Rule) -> str:
    """Return the reason of the part that decided, or that is the first open one."""
    if judged.verdict is Change.EQUIVALENT:
        return judged.whole.reason
    first = (
        next((each for each in judged.parts if each.comparison.verdict is Change.UNDECIDED), judged.parts[0])
        if judged.verdict is Change.UNDECIDED
        else judged.decisive
    )
    name = name_of(first.part, rule)
    return f"{name}: {first.comparison.reason}" if name else first.comparison.reason


def name_of(part: Part, rule: Rule) -> str:
    """Return what a part is called in a sentence, '' for all calls by the rule's own summary."""
    if part.expression is not None:
        return f"calls with {part.expression}"
    if part.bounds_ns is not None:
        return f"calls {_range(*part.bounds_ns)}"
    return "" if part.summary == rule.summary else f"their {part.summary}"


def _range(above_ns: float, up_to_ns: float) -> str:
    low, high = duration(above_ns * 1e-9), duration(up_to_ns * 1e-9) if math.isfinite(up_to_ns) else ""
    if above_ns <= 0.0:
        return f"of at most {high}"
    return f"over {low} up to {high}" if high else f"over {low}"
