"""Expressions: text and formula are two forms of one thing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmine.mining.assertions.expression import (
    ExpressionError,
    Literal,
    asks_blocked,
    callees_in,
    evaluate,
    from_records,
    is_inside,
    named_edges,
    parse,
    render,
    shared_names,
    to_records,
)
from specmine.mining.inside.callers import BLOCKED_CALL
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


def test_callees_that_calls_reached_are_atoms_too() -> None:
    """Names stand as in edges; functions may be called like the words of the language."""
    formula = ((Literal("", "fdatasync"), Literal("", "f(int)", False)), (Literal("calls", "b"), Literal("", "calls")))
    text = "calls fdatasync and not calls `f(int)` or calls->b and calls calls"
    assert (render(formula), parse(text)) == (text, formula)
    assert to_records(formula)[0][0] == {"caller": "", "callee": "fdatasync", "present": True, "what": "calls"}
    assert to_records(formula)[1][0] == {"caller": "calls", "callee": "b", "present": True}
    assert from_records(to_records(formula)) == formula
    assert callees_in(formula) == {"fdatasync", "f(int)", "calls"}
    assert is_inside(formula) and not is_inside(parse("a->b"))
    for wrong in ("calls", "calls and a->b", "calls not", "calls a b"):
        with pytest.raises(ExpressionError):
            parse(wrong)


def test_that_calls_were_blocked_is_an_atom_too() -> None:
    """Anywhere, or in a callee; a function may be called ``blocked`` or ``under``."""
    this = BLOCKED_CALL.name
    formula = (
        (Literal(this, "fdatasync"), Literal(this, "", False)),
        (Literal("blocked", "b"), Literal("", "blocked"), Literal(this, "under"), Literal(this, "f(int)", False)),
    )
    text = (
        "blocked under fdatasync and not blocked or "
        "blocked->b and calls blocked and blocked under under and not blocked under `f(int)`"
    )
    assert (render(formula), parse(text)) == (text, formula)
    assert to_records(formula)[0] == [
        {"caller": "", "callee": "fdatasync", "present": True, "what": "blocked"},
        {"caller": "", "callee": "", "present": False, "what": "blocked"},
    ]
    assert from_records(to_records(formula)) == formula
    assert callees_in(formula) == {"fdatasync", "blocked", "under", "f(int)"}
    assert is_inside(formula) and asks_blocked(formula) and not asks_blocked(parse("calls b"))
    for wrong in ("blocked under", "blocked under and a->b", "blocked in f", "under f"):
        with pytest.raises(ExpressionError):
            parse(wrong)
