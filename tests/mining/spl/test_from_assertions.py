"""Mined assertions become formulas that say the same."""

from __future__ import annotations

from typing import Any

import pytest

from specmine.mining.assertions.expression import Literal
from specmine.mining.spl.from_assertions import statements_of
from specmine.mining.spl.mined import MinedAssertion, MinedLevel, NormalQuantile
from specmine.mining.spl.syntax import Condition, Subject
from tests.support.formulas import formula_of


def stated(p50: float, p90: float | None = None) -> dict[str, Any]:
    """Return quantiles as a specification has them, their ranges 10 % to either side; of p99 none is known."""
    named = {"p50": p50} | ({"p90": p90} if p90 is not None else {})
    known = {name: {"seconds": each, "low": 0.9 * each, "high": 1.1 * each} for name, each in named.items()}
    return known | {"p99": {"seconds": 1.0, "low": None, "high": None}}


def normal(name: str, seconds: float) -> NormalQuantile:
    """Return what ``stated`` becomes in a formula."""
    return NormalQuantile(name=name, seconds=seconds, low=0.9 * seconds, high=1.1 * seconds)


SINGLE: dict[str, Any] = {
    "function": "g",
    "module": "app",
    "borders_seconds": [],
    "classes": [{"upper_seconds": None, "share": 1.0, "quantiles": stated(4e-05)}],
    "behaviours": [{"formula": [[]], "calls": 900, "shares": [1.0], "quantiles": stated(4e-05, 6e-05), "windows": 9,
                    "lifetimes": 2}],
}  # fmt: skip
ENTRY: dict[str, Any] = {
    "function": "f(int)",
    "module": "libx.so",
    "borders_seconds": [6.1e-05],
    "behaviours": [
        {"formula": [[{"caller": "b", "callee": "c", "present": True}]], "calls": 2700, "shares": [1.0, 0.0]},
        {"formula": [[]], "calls": 5400, "shares": [0.6, 0.4]},
    ],
    "on_cpu": {
        "calls": 8100,
        "classes": [{"upper_seconds": 1e-06, "share": 0.25}, {"upper_seconds": None, "share": 0.75}],
    },
}


def test_each_behaviour_and_the_time_on_cpu_is_a_formula() -> None:
    """Borders, shares, calls and the condition of each are those of the specification."""
    name = "f(int) (libx.so)"
    condition = Condition(edges=((Literal("b", "c", True),),))
    assert [each.formula for each in statements_of([ENTRY])] == [
        MinedAssertion(subject=Subject(function=name, condition=condition), borders=(6.1e-05,), shares=(1.0, 0.0),
                       calls=2700),
        MinedAssertion(subject=Subject(function=name), borders=(6.1e-05,), shares=(0.6, 0.4), calls=5400),
        MinedAssertion(subject=Subject(function=name, cpu=True), borders=(1e-06,), shares=(0.25, 0.75), calls=8100),
    ]  # fmt: skip


def test_a_function_of_one_class_is_asserted_by_its_level() -> None:
    """It has no shares that could be violated; a quantile without a range says nothing."""
    assert [each.formula for each in statements_of([SINGLE])] == [
        MinedLevel(subject=Subject(function="g (app)"), quantiles=(normal("p50", 4e-05), normal("p90", 6e-05)),
                   calls=900, windows=9, lifetimes=2)
    ]  # fmt: skip


def test_each_class_has_a_level() -> None:
    """A slow class that gets slower moves no share: the median of its calls is asserted, between its borders."""
    classes = [
        {"upper_seconds": 6.1e-05, "share": 0.75, "quantiles": stated(3e-05, 5e-05)},
        {"upper_seconds": None, "share": 0.25, "quantiles": stated(9e-05)},
    ]
    entry = {**ENTRY, "classes": classes, "windows": 12, "lifetimes": 3, "on_cpu": None}
    found = [each.formula for each in statements_of([entry]) if isinstance(each.formula, MinedLevel)]
    subject = Subject(function="f(int) (libx.so)")
    basis = {"windows": 12, "lifetimes": 3}
    assert found == [
        MinedLevel(subject=subject, quantiles=(normal("p50", 3e-05),), calls=6075, upto=6.1e-05, **basis),
        MinedLevel(subject=subject, quantiles=(normal("p50", 9e-05),), calls=2025, above=6.1e-05, **basis),
    ]


def test_such_formulas_come_back_from_their_text() -> None:
    """What is written into a file of formulas reads as the same assertion."""
    for statement in statements_of([ENTRY, SINGLE]):
        assert formula_of(str(statement)) == statement.formula


@pytest.mark.parametrize(
    ("function", "module", "name"),
    [("g", "", "g"), ("g", "app", "g (app)"), ("app+0x10", "app", "app+0x10")],
)
def test_a_formula_names_the_module_once(function: str, module: str, name: str) -> None:
    """A function without a module, or with the module in its name, stands as it is."""
    (statement,) = statements_of([{**ENTRY, "function": function, "module": module, "behaviours": []}])
    assert isinstance(statement.formula, MinedAssertion)
    assert statement.formula.subject.function == name
