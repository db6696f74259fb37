"""Does a formula hold: three values, and a tree that says why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from specmine.mining.assertions.verification import SHARE_MARGIN, share_verdict
from specmine.mining.regression.comparison import LifetimeSample
from specmine.mining.regression.sample import share_above
from specmine.mining.settings import MiningSettings
from specmine.mining.statistics.class_shares import agreement, dispersion
from specmine.model.verdict import Verdict

from .data import Data, Missing
from .level_check import level_answer, stated_answer
from .mined import MinedAssertion, MinedLevel
from .quantifiers import comparisons_in, parts_of
from .query import Answer, Question, Term, unknown
from .semantics import INTERPRETATIONS
from .summaries import fewest_calls, summary_of
from .syntax import And, Comparison, Formula, Implies, Linear, Measure, Not, Or, Quantified


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How formulas are read where they do not say it themselves."""

    level: float = 0.95
    """Of a whole formula: its tests share what may go wrong (Bonferroni)."""
    tolerance: float = 0.0
    equal_tolerance: float = 0.02
    """Of ``=``, which without any could never be shown."""
    summary: str = "median"
    interpretation: str = "specmine"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A formula's verdict with those of its parts."""

    text: str
    verdict: Verdict
    evidence: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple[Node, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "text": self.text,
            "verdict": self.verdict.value,
            **({"evidence": dict(self.evidence)} if self.evidence else {}),
            **({"parts": [part.as_json() for part in self.parts]} if self.parts else {}),
        }


def evaluate(formula: Formula, data: Data, rules: Rules) -> Node:
    """Evaluate a formula.

    Notes
    -----
    Kleene's strong three-valued logic: ``and`` is the least of its parts, ``or`` the greatest, with
    violated < unknown < holds; ``a implies b`` is ``not a or b``.
    """
    return _node(formula, data, rules, (1.0 - rules.level) / comparisons_in(formula))


def _node(formula: Formula, data: Data, rules: Rules, risk: float) -> Node:
    if isinstance(formula, Comparison):
        return _compared(formula, data, rules, risk)
    if isinstance(formula, MinedAssertion):
        return _checked(formula, data, risk)
    if isinstance(formula, MinedLevel):
        return _level(formula, data)
    parts = tuple(_node(part, data, rules, risk) for part in parts_of(formula))
    return Node(text=str(formula), verdict=_combined(formula, [part.verdict for part in parts]), parts=parts)


_RANK = {Verdict.VIOLATED: 0, Verdict.UNKNOWN: 1, Verdict.HOLDS: 2}
_CONTRARY = {
    Verdict.HOLDS: Verdict.VIOLATED,
    Verdict.VIOLATED: Verdict.HOLDS,
    Verdict.UNKNOWN: Verdict.UNKNOWN,
}


def worst_of(verdicts: Sequence[Verdict]) -> Verdict:
    """Return what holds of several formulas together: the least of their verdicts, unknown of none."""
    return min(verdicts, key=_RANK.__getitem__, default=Verdict.UNKNOWN)


def _combined(formula: Formula, verdicts: Sequence[Verdict]) -> Verdict:
    match formula:
        case Not():
            return _CONTRARY[verdicts[0]]
        case And() | Quantified(every=True):
            return worst_of(verdicts)
        case Or() | Quantified(every=False):
            return max(verdicts, key=_RANK.__getitem__)
        case Implies():
            return max(_CONTRARY[verdicts[0]], verdicts[1], key=_RANK.__getitem__)
    raise TypeError(f"no formula: {formula!r}")


def _compared(formula: Comparison, data: Data, rules: Rules, risk: float) -> Node:
    try:
        left, right = (_terms(each, data, rules) for each in (formula.left, formula.right))
    except Missing as error:
        return Node(text=str(formula), verdict=Verdict.UNKNOWN, evidence={"reason": str(error)})
    relation = "=" if formula.relation == "!=" else formula.relation
    tolerance = formula.tolerance
    if tolerance is None:
        tolerance = rules.equal_tolerance if relation == "=" else rules.tolerance
    question = Question(
        terms=(*left, *(replace(term, factor=-term.factor) for term in right)),
        constant=formula.left.constant - formula.right.constant,
        relation=relation,
        tolerance=tolerance,
        level=formula.level if formula.level is not None else 1.0 - risk,
        left_terms=len(left),
        right_constant=formula.right.constant,
    )
    try:
        answer = INTERPRETATIONS[rules.interpretation](question)
    except Missing as error:
        answer = Answer(verdict=Verdict.UNKNOWN, evidence={"reason": str(error)})
    verdict = _CONTRARY[answer.verdict] if formula.relation == "!=" else answer.verdict
    return Node(text=str(formula), verdict=verdict, evidence={**answer.evidence, "level": question.level})


def _terms(side: Linear, data: Data, rules: Rules) -> list[Term]:
    return [_term(factor, measure, data, rules) for factor, measure in side.terms]


def _term(factor: float, measure: Measure, data: Data, rules: Rules) -> Term:
    found = data.lifetimes(measure.subject)
    # the paper's interpretations are of means, whatever the default summary
    default = rules.summary if rules.interpretation == "specmine" else "mean"
    name = measure.summary or default
    kept = [each for each in found if _is_enough(each, name)]
    if not kept:
        why = "no lifetime of it was seen" if not found else f"no lifetime has {fewest_calls(name)} calls"
        raise Missing(f"{measure}: {why if name != 'rate' else 'its rate was not recorded'}")
    return Term(
        factor=factor,
        key=str(measure),
        source=f"{measure.subject.build}@{measure.subject.host}",
        lifetimes=tuple(kept),
        values=tuple(_value(each, measure, name) for each in kept),
        is_mean=name == "mean",
    )


def _is_enough(each: LifetimeSample, name: str) -> bool:
    return each.rate is not None if name == "rate" else each.sample.calls >= fewest_calls(name)


def _value(each: LifetimeSample, measure: Measure, name: str) -> float:
    if name == "rate":
        return float(each.rate or 0.0)
    if name == "share":
        above = share_above(each.sample, measure.bound * 1e9)
        return above if measure.above else 1.0 - above
    return summary_of(name)(each.sample) * 1e-9


def _level(formula: MinedLevel, data: Data) -> Node:
    """Check a mined level: quantiles of windows against those that were learned."""
    try:
        stated = data.stated(formula.subject) if formula.above is None and formula.upto is None else None
        answer = (
            level_answer(formula, data.windows(formula.subject)) if stated is None else stated_answer(formula, stated)
        )
    except Missing as error:
        answer = unknown(str(error))
    return Node(text=str(formula), verdict=answer.verdict, evidence=answer.evidence)


def _checked(formula: MinedAssertion, data: Data, risk: float) -> Node:
    """Check a mined assertion: class shares against those it was learned from."""
    settings = MiningSettings()
    try:
        found = data.class_calls(formula.subject, [1e9 * each for each in formula.borders])
    except Missing as error:
        return Node(text=str(formula), verdict=Verdict.UNKNOWN, evidence={"reason": str(error)})
    seen = [int(sum(column)) for column in zip(*found.rows, strict=True)] or [0] * len(formula.shares)
    learned = [round(share * formula.calls) for share in formula.shares]
    noise = dispersion(found.rows)
    shares = [calls / max(sum(seen), 1) for calls in seen]
    evidence: dict[str, Any] = {
        "shares": shares,
        "calls": sum(seen),
        "p_value": agreement(learned, seen, noise),
        "difference": max(abs(a - b) for a, b in zip(shares, formula.shares, strict=True)),
        "dispersion": noise.factor,
    }
    if min(sum(seen), formula.calls) < settings.minimum_calls:
        few = min(sum(seen), formula.calls)
        evidence["reason"] = f"{few} calls, {settings.minimum_calls} are needed"
        return Node(text=str(formula), verdict=Verdict.UNKNOWN, evidence=evidence)
    verdict = share_verdict(learned, seen, noise, min(risk, settings.level), settings)
    if verdict is Verdict.UNKNOWN:
        evidence["reason"] = (
            f"shares vary too much among themselves to exclude a difference of {100 * SHARE_MARGIN:g} %"
            if evidence["difference"] < settings.minimum_difference
            else "the shares differ, but by no more than windows and lifetimes do among themselves"
        )
    return Node(text=str(formula), verdict=verdict, evidence=evidence)
