"""The parts of a formula, the instances of quantifiers, and the substitution of names."""

from __future__ import annotations

from dataclasses import replace

from .mined import MinedAssertion, MinedLevel
from .syntax import And, Comparison, Condition, Formula, Implies, Linear, Not, Or, Quantified, Subject


def instances(formula: Quantified) -> tuple[Formula, ...]:
    """Return the body of a quantified formula for each name."""
    return tuple(substitute(formula.body, {formula.variable: item}) for item in formula.items)


def comparisons_in(formula: Formula) -> int:
    """Return how many tests a formula makes, quantifiers spelled out."""
    if isinstance(formula, Quantified):
        return len(formula.items) * comparisons_in(formula.body)
    return sum(map(comparisons_in, parts_of(formula))) or 1


def parts_of(formula: Formula) -> tuple[Formula, ...]:
    """Return the formulas that a formula is made of; none of those that test."""
    match formula:
        case Not():
            return (formula.part,)
        case And() | Or():
            return formula.parts
        case Implies():
            return formula.condition, formula.conclusion
        case Quantified():
            return instances(formula)
    return ()


def substitute(formula: Formula, names: dict[str, str]) -> Formula:
    """Return a formula in which names of functions, builds and hosts are replaced."""
    result: Formula
    match formula:
        case Comparison():
            result = replace(formula, left=_linear(formula.left, names), right=_linear(formula.right, names))
        case MinedAssertion() | MinedLevel():
            result = replace(formula, subject=_subject(formula.subject, names))
        case Not():
            result = Not(part=substitute(formula.part, names))
        case And() | Or():
            result = replace(formula, parts=tuple(substitute(each, names) for each in formula.parts))
        case Implies():
            result = Implies(
                condition=substitute(formula.condition, names), conclusion=substitute(formula.conclusion, names)
            )
        case Quantified():
            inner = {name: value for name, value in names.items() if name != formula.variable}
            items = tuple(names.get(item, item) for item in formula.items)
            result = replace(formula, items=items, body=substitute(formula.body, inner))
        case _:
            raise TypeError(f"no formula: {formula!r}")
    return result


def _linear(side: Linear, names: dict[str, str]) -> Linear:
    return replace(
        side, terms=tuple((factor, replace(each, subject=_subject(each.subject, names))) for factor, each in side.terms)
    )


def _subject(subject: Subject, names: dict[str, str]) -> Subject:
    condition = subject.condition
    if condition is not None and condition.on_path in names:
        condition = Condition(on_path=names[str(condition.on_path)])
    return Subject(
        function=names.get(subject.function, subject.function),
        build=_replaced(subject.build, names),
        host=_replaced(subject.host, names),
        condition=condition,
        cpu=subject.cpu,
    )


def _replaced(name: str | None, names: dict[str, str]) -> str | None:
    return None if name is None else names.get(name, name)
