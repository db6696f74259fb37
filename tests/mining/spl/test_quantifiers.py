"""Quantified formulas stand for their instances."""

from __future__ import annotations

from specmine.mining.spl.quantifiers import comparisons_in, instances, parts_of
from specmine.mining.spl.syntax import (
    Quantified,
)
from tests.support.formulas import formula_of


def test_quantifiers_stand_for_their_instances() -> None:
    """A variable is replaced as function, build, host and on paths; an inner one of its name hides it."""
    formula = formula_of(
        "forall x in {a, b}: x@x <= share(q, > 1 s | x) * 1 or 1 > 0".replace("x@x <= ", "").split(" or ")[0]
        + " <= 0.5"
    )
    assert isinstance(formula, Quantified)
    assert [str(each) for each in instances(formula)] == ["share(q, > 1 s | a) <= 0.5", "share(q, > 1 s | b) <= 0.5"]
    nested = formula_of("forall x in {a}: (x < x@x and (exists x in {c, x}: x < 1 s))")
    assert [str(each) for each in parts_of(nested)] == ["a < a@a and (exists x in {c, a}: x < 1 s)"]
    assert comparisons_in(nested) == 3
