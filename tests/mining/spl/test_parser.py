"""Formulas come back from their text unchanged, and mistakes are shown at their place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmine.mining.assertions.expression import Literal
from specmine.mining.spl.grammar import SplError
from specmine.mining.spl.lexicon import RATE, SECONDS, SHARE
from specmine.mining.spl.mined import MinedAssertion, MinedLevel, NormalQuantile
from specmine.mining.spl.parser import parse_specification
from specmine.mining.spl.syntax import (
    And,
    Comparison,
    Condition,
    Formula,
    Implies,
    Linear,
    Measure,
    Not,
    Or,
    Quantified,
    Subject,
)
from tests.support.formulas import formula_of

_plain = st.from_regex(r"[a-z_][a-z0-9_]{0,6}(::[a-z]{1,4})?", fullmatch=True)
_strange = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=1, max_size=8)
names = (
    _plain | _strange | st.sampled_from(["and", "share", "forall", "operator[]", "a`b", "f(int) (lib.so)", "s", "of"])
)
durations = st.floats(1e-9, 1e4) | st.sampled_from([6.1e-05, 0.02, 1.0, 1e-9])
_edges = st.lists(
    st.lists(st.builds(Literal, _plain, names.map(str.strip).filter(bool), st.booleans()), min_size=1, max_size=2).map(
        tuple
    ),
    min_size=1,
    max_size=2,
).map(tuple)
conditions = st.none() | st.builds(Condition, edges=_edges) | st.builds(Condition, on_path=_plain)
subjects = st.builds(
    lambda function, build, host, condition, cpu: Subject(
        function=function, build=build, host=host if build is not None else None, condition=condition, cpu=cpu
    ),
    names,
    st.none() | names,
    st.none() | names,
    conditions,
    st.booleans(),
)
summaries = st.sampled_from([None, "median", "mean", "trimmed", "p90", "p99", "p5", "p99.9"])
timed = st.builds(Measure, subject=subjects, summary=summaries)
shared = st.builds(Measure, subject=subjects, summary=st.just("share"), above=st.booleans(), bound=durations)
rated = st.builds(Measure, subject=subjects.filter(lambda each: not each.cpu), summary=st.just("rate"))
factors = st.floats(0.01, 1e6).map(lambda value: float(f"{value:.5g}")) | st.just(1.0)


def _side(
    measure: st.SearchStrategy[Measure], constant: st.SearchStrategy[float], kind: str
) -> st.SearchStrategy[Linear]:
    terms = st.lists(st.tuples(factors | factors.map(lambda f: -f), measure), max_size=2).map(tuple)
    return st.builds(Linear, terms=terms, constant=constant, dimension=st.just(kind))


def _comparison(
    measure: st.SearchStrategy[Measure], constant: st.SearchStrategy[float], kind: str
) -> st.SearchStrategy[Formula]:
    side = _side(measure, constant, kind)
    shares = st.none() | st.sampled_from([0.01, 0.05, 0.125])
    return st.builds(
        Comparison,
        left=side.filter(lambda each: bool(each.terms)),
        relation=st.sampled_from(["<=", "<", ">=", ">", "=", "!="]),
        right=side,
        tolerance=shares,
        level=st.none() | st.sampled_from([0.9, 0.99]),
    )


def _mined(draw_shares: list[int]) -> tuple[float, ...]:
    return tuple(each / sum(draw_shares) for each in draw_shares)


mined = st.integers(0, 3).flatmap(
    lambda count: st.builds(
        MinedAssertion,
        subject=subjects,
        borders=st.lists(durations, min_size=count, max_size=count, unique=True).map(sorted).map(tuple),
        shares=st.lists(st.integers(1, 99), min_size=count + 1, max_size=count + 1).map(_mined),
        calls=st.integers(1, 10**9),
    )
)
normal = st.builds(
    lambda name, ends: NormalQuantile(name=name, low=ends[0], seconds=ends[1], high=ends[2]),
    st.sampled_from(["p50", "p90", "p99"]),
    st.lists(durations, min_size=3, max_size=3).map(sorted),
)
bounds = st.lists(durations, min_size=2, max_size=2, unique=True).map(sorted)
levels = st.builds(
    lambda bounds, low, high, **rest: MinedLevel(
        above=bounds[0] if low else None, upto=bounds[1] if high else None, **rest
    ),
    bounds,
    st.booleans(),
    st.booleans(),
    subject=subjects,
    quantiles=st.lists(normal, min_size=1, max_size=3).map(tuple),
    calls=st.integers(1, 10**9),
    windows=st.integers(1, 999),
    lifetimes=st.integers(1, 99),
)
atoms = (
    _comparison(timed, st.just(0.0) | durations, SECONDS)
    | _comparison(shared, st.just(0.0) | st.sampled_from([0.5, 0.25]), SHARE)
    | _comparison(rated, st.sampled_from([100.0, 2.5]), RATE)
    | mined
    | levels
)
formulas = st.recursive(
    atoms,
    lambda inner: (
        st.builds(Not, part=inner)
        | st.builds(And, parts=st.lists(inner, min_size=2, max_size=3).map(tuple))
        | st.builds(Or, parts=st.lists(inner, min_size=2, max_size=3).map(tuple))
        | st.builds(Implies, condition=inner, conclusion=inner)
        | st.builds(
            Quantified,
            every=st.booleans(),
            variable=st.just("x"),
            items=st.lists(names, min_size=1, max_size=3).map(tuple),
            body=inner,
        )
    ),
    max_leaves=5,
)


@given(formulas)
def test_a_formula_comes_back_from_its_text(formula: Formula) -> None:
    """What is written reads as the same formula, whatever the names and numbers."""
    assert formula_of(str(formula)) == formula


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("z@new <= 1.05 * z@base", "z@new <= z@base * 1.05"),
        ("share(semop, >70ms | lock) <= 0.5", "share(semop, > 70 ms|lock) <= 50%"),
        ("a <= b and b <= c or not c <= a implies a = c", "((a <= b and b <= c) or (not c <= a)) implies a == c"),
        (
            "forall f in {a, b}: f@new <= f@base and f < 1 ms",
            "list l = [a, b] forall f in l: (f@new <= f@base and f < 1 ms)",
        ),
        ("f <= 2 * g + 5 us # shifted", "median(f) <= 5000 ns + 2*g".replace("median(f)", "f")),
        ("x: p99(f) < 20 ms within 5% at 99%;", "x: p99(f) < 0.02 s at 99% within 5 %"),
        ("a <= b => b >= a", "a <= b implies b >= a"),
        ("cpu(f@new) <= 1.05 * cpu(f@base)", "summary(cpu(f@new)) <= cpu(f@base) * 105e-2"),
        ("cpu(f | a->f) < cpu", "summary(cpu(f) | a->f) < summary(cpu)"),
    ],
)
def test_two_ways_to_write_one_formula(text: str, same: str) -> None:
    """Spaces, comments, units, order and brackets that mean nothing mean nothing."""
    assert parse_specification(text).statements == parse_specification(same).statements


def test_a_file_has_names_settings_and_aliases() -> None:
    """What a file sets, and where its formulas stand."""
    found = parse_specification(
        "set level 99%\nset tolerance = 5%\nbuild old = `v1.2-3`\n\nslow: z@old\n  < z\nz < 1 s"
    )
    assert found.settings == {"level": 0.99, "tolerance": 0.05}
    assert found.builds == {"old": "v1.2-3"}
    assert [(each.name, each.line, each.source) for each in found.statements] == [
        ("slow", 5, "z@old\n  < z"),
        ("", 7, "z < 1 s"),
    ]


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        ("z@new <= ", 1, 10, "too early"),
        ("a <= b\n\nc <= 3 msx d", 3, 12, "not expected"),
        ("z < 20", 1, 1, "unit"),
        ("a < b and\nfoo(z) < 3 ms", 2, 1, "foo is none of"),
        ("p99(p90(z)) < 3 ms", 1, 5, "cpu(function)"),
        ("cpu(cpu(z)) < 3 ms", 1, 1, "no time of calls"),
        ("rate(cpu(z)) > 3/s", 1, 1, "a rate is of calls"),
        ("share(z, < 3 ms) < 0.5", 1, 10, "> or <="),
        ("forall f in hot: f < g", 1, 13, "no list hot"),
        ("z <= 2 * (a)", 1, 10, "not expected"),
        ("shares(z, 3 us) ~ [1] of 3", 1, 20, "2 classes"),
        ("shares(z, 3 us) ~ [0.5, 0.6] of 3", 1, 20, "add up"),
        ("shares(z, 3 us, 1 us) ~ [0, 0.5, 0.5] of 3", 1, 26, "ascend"),
        ("set colour 3%", 1, 5, "colour"),
        ("set level 30%", 1, 11, "percentage"),
        ("5 ms < 3 ms", 1, 1, "constants"),
        ("p99(z | a->) < 3 ms", 1, 8, "caller->callee"),
        ("z < 3 ms at 20%", 1, 13, "level"),
        ("rate(z) > 5 ms", 1, 1, "cannot be compared"),
        ("rate(z) > 5/ms", 1, 13, "per s"),
        ("§", 1, 1, "not expected"),
    ],
)
def test_a_mistake_is_shown_at_its_place(text: str, line: int, column: int, said: str) -> None:
    """Line, column, and a picture with a mark under the place."""
    with pytest.raises(SplError) as caught:
        parse_specification(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert said in str(caught.value)
    shown, mark = caught.value.picture.split("\n")
    assert shown == text.splitlines()[line - 1]
    assert mark == " " * (column - 1) + "^"


@given(st.text(max_size=40))
def test_any_text_is_formulas_or_a_mistake(text: str) -> None:
    """Nothing else ever comes out."""
    try:
        parse_specification(text)
    except SplError as error:
        assert error.line >= 1
