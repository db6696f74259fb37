"""Mined assertions become formulas that say the same."""

from __future__ import annotations

from typing import Any

import pytest

from specmine.mining.assertions.expression import Literal
from specmine.mining.spl.from_assertions import statements_of
from specmine.mining.spl.syntax import Condition, MinedAssertion, Subject
from tests.support.formulas import formula_of

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


def test_such_formulas_come_back_from_their_text() -> None:
    """What is written into a file of formulas reads as the same assertion."""
    for statement in statements_of([ENTRY]):
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
