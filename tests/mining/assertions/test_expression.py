"""Expressions: text and formula are two forms of one thing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmine.mining.assertions.expression import (
    ExpressionError,
    Literal,
    evaluate,
    from_records,
    named_edges,
    parse,
    render,
    shared_names,
    to_records,
)
from specmine.model.call_path import CallPath, Frame

names = st.one_of(
    st.sampled_from(["a", "b", "main", "std::x", "or", "not", "true", "f(int, char)", "a->b", "x`y", "", "a b"]),
    st.text(max_size=6),
)
literals = st.builds(Literal, names, names, st.booleans())
formulas = st.lists(st.lists(literals, min_size=1, max_size=3).map(tuple), min_size=1, max_size=3).map(tuple)


@given(formulas)
def test_parsing_inverts_rendering(formula: tuple[tuple[Literal, ...], ...]) -> None:
    """Whatever the names are made of."""
    assert parse(render(formula)) == formula
    assert from_records(to_records(formula)) == formula


def test_the_text_is_as_the_contract_says() -> None:
    """Plain names bare, others in backticks, one space around words."""
    formula = (
        (Literal("a", "b"), Literal("b", "operator new(unsigned long)", False)),
        (Literal("x`y", "not"),),
    )
    assert render(formula) == "a->b and not b->`operator new(unsigned long)` or `x``y`->`not`"
    assert render(((Literal("libapr-1.so.0+0x1234", "semop"),),)) == "`libapr-1.so.0+0x1234`->semop"
    assert render(((),)) == "true"
    assert render(()) == "false"
    assert parse("true") == ((),)
    assert parse("false") == ()


@pytest.mark.parametrize("text", ["", "a", "a->", "->b", "a->b c->d", "a->b and", "not", "a->b or or c->d", "a->`b"])
def test_what_is_no_expression_is_refused(text: str) -> None:
    """With a sentence, never with another exception."""
    with pytest.raises(ExpressionError):
        parse(text)


def path(*frames: str) -> CallPath:
    """Return the path of frames given as ``name@module`` (module ``app`` if none)."""
    split = [([*frame.split("@"), "app"])[:2] for frame in frames]
    return CallPath(tuple(Frame(name, module) for name, module in split))


def test_names_that_two_modules_share_carry_their_module() -> None:
    """And only those."""
    paths = [path("main", "read@app", "z"), path("main", "read@libc", "z")]
    shared = shared_names(paths)
    assert shared == {"read"}
    assert named_edges(paths[1], shared) == {("main", "read (libc)"), ("read (libc)", "z")}


def test_evaluation_is_or_of_ands() -> None:
    """A literal that asks for absence holds where the edge is not."""
    formula = parse("a->b and not b->c or x->y")
    assert evaluate(formula, {("a", "b")})
    assert not evaluate(formula, {("a", "b"), ("b", "c")})
    assert evaluate(formula, {("b", "c"), ("x", "y")})
    assert evaluate(((),), set())
    assert not evaluate((), {("a", "b")})
