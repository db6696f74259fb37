"""The paper's interpretations keep its axioms; ours holds only what lifetimes show."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from specmine.mining.levels.window import Window
from specmine.mining.regression.comparison import LifetimeSample
from specmine.mining.regression.sample import mean, sample_of_durations
from specmine.mining.spl.data import ClassCalls, Missing
from specmine.mining.spl.evaluation import Node, Rules, evaluate
from specmine.mining.spl.query import Question, Term
from specmine.mining.spl.semantics import INTERPRETATIONS
from specmine.mining.spl.syntax import Subject
from specmine.model.histogram import Histogram
from specmine.model.verdict import Verdict
from tests.support.formulas import formula_of

Runs = Sequence[Sequence[float]] | Sequence[NDArray[np.float64]]
HOLDS, VIOLATED, UNKNOWN = Verdict.HOLDS, Verdict.VIOLATED, Verdict.UNKNOWN
PAPER = ("welch", "parametric", "bootstrap")


class Table:
    """Data from a table: function, or function@build, to runs in seconds."""

    def __init__(self, **functions: Runs) -> None:
        self._functions = {name.replace("__", "@"): runs for name, runs in functions.items()}

    def lifetimes(self, subject: Subject) -> Sequence[LifetimeSample]:
        """Return the runs."""
        if str(subject) not in self._functions:
            raise Missing(f"no {subject}")
        return [
            LifetimeSample(lifetime=str(number), host="", sample=sample_of_durations(1e9 * np.array(run)))
            for number, run in enumerate(self._functions[str(subject)])
        ]

    def class_calls(self, subject: Subject, borders_ns: Sequence[float]) -> ClassCalls:
        """Return the calls of classes."""
        values = [each.sample.lower for each in self.lifetimes(subject)]
        return ClassCalls(
            rows=tuple(
                tuple(np.bincount(np.searchsorted(borders_ns, v), minlength=len(borders_ns) + 1)) for v in values
            )
        )

    def windows(self, subject: Subject) -> Sequence[Window]:
        """Return one window of each run."""
        return [
            Window(histogram=Histogram.from_durations(each.sample.lower), start_ns=0, end_ns=1, lifetime=each.lifetime)
            for each in self.lifetimes(subject)
        ]

    def stated(self, subject: Subject) -> None:
        """Return nothing: the runs are here."""


def check(text: str, data: Table, **rules: Any) -> Node:
    """Evaluate a formula."""
    return evaluate(formula_of(text), data, Rules(**rules))


def question(left: Runs, right: Runs, relation: str, *, factors: tuple[float, float] = (1.0, 1.0),
             shifts: tuple[float, float] = (0.0, 0.0), level: float = 0.95) -> Question:  # fmt: skip
    """Ask whether factor * left + shift is in a relation to that of right, by means, in seconds."""
    sides = []
    for sign, factor, name, runs in ((1.0, factors[0], "l", left), (-1.0, factors[1], "r", right)):
        lifetimes = tuple(
            LifetimeSample(lifetime=str(k), host="", sample=sample_of_durations(1e9 * np.array(run)))
            for k, run in enumerate(runs)
        )
        sides.append(
            Term(factor=sign * factor, key=name, source=name, lifetimes=lifetimes,
                 values=tuple(1e-9 * mean(each.sample) for each in lifetimes), is_mean=True)
        )  # fmt: skip
    return Question(
        terms=tuple(sides),
        constant=shifts[0] - shifts[1],
        relation=relation,
        tolerance=0.0,
        level=level,
        left_terms=1,
        right_constant=shifts[1],
    )


runs = st.lists(st.lists(st.floats(0.1, 10.0), min_size=2, max_size=6), min_size=2, max_size=4)


@pytest.mark.parametrize("name", PAPER)
@settings(max_examples=30, deadline=None)
@given(
    left=runs,
    factor=st.floats(0.1, 3.0),
    shift=st.floats(-1.0, 1.0),
    more=st.floats(0.0, 1.0),
    further=st.floats(0.0, 1.0),
)
def test_generalised_reflexivity(
    name: str, left: Runs, factor: float, shift: float, more: float, further: float
) -> None:
    """Axiom 4: tl(P) <= tr(P) if tl(o) <= tr(o) for all o; here o >= 0."""
    asked = question(left, left, "<=", factors=(factor, factor + more), shifts=(shift, shift + further))
    assert INTERPRETATIONS[name](asked).verdict is HOLDS


@pytest.mark.parametrize("name", PAPER)
@settings(max_examples=30, deadline=None)
@given(left=runs, right=runs, factor=st.floats(0.5, 2.0))
def test_both_ways_is_equality(name: str, left: Runs, right: Runs, factor: float) -> None:
    """Axiom 5: P <= N and N <= P if and only if P = N (at the doubled level, as the paper has it)."""
    factors = (1.0, factor)
    one = INTERPRETATIONS[name](question(left, right, "<=", factors=factors)).verdict is HOLDS
    other = INTERPRETATIONS[name](question(left, right, ">=", factors=factors)).verdict is HOLDS
    both = INTERPRETATIONS[name](question(left, right, "=", factors=factors)).verdict is HOLDS
    assert both == (one and other)


@settings(max_examples=50, deadline=None)
@given(left=runs, right=runs, tolerance=st.sampled_from([0.0, 0.05, 0.5]))
def test_our_equality_is_both_ways_in_three_values(left: Runs, right: Runs, tolerance: float) -> None:
    """Ours: = is the least of <= and >= within the same tolerance."""
    data = Table(a=left, b__x=right)
    verdicts = [
        check(f"mean(a) {r} mean(b@x) within {100 * tolerance:g}% at 90%", data).verdict for r in ("<=", ">=", "=")
    ]
    rank = [VIOLATED, UNKNOWN, HOLDS].index
    assert verdicts[2] is min(verdicts[:2], key=rank)


@settings(max_examples=50, deadline=None)
@given(left=runs, right=runs)
def test_our_reflexivity_never_fails(left: Runs, right: Runs) -> None:
    """A function is never found slower than itself, or than more of itself."""
    data = Table(a=left, b=right)
    assert check("a <= a", data).verdict is HOLDS
    assert check("a <= 1.5 * a", data).verdict is HOLDS
    assert check("a <= a + 1 us", data).verdict is HOLDS


def test_order_is_not_transitive_in_the_papers_example() -> None:
    """{2, 4}, {-1, 1}, {-4, -2} at 5 %: X <= Y and Y <= Z, yet not X <= Z."""
    sets = {"x": [2.0, 4.0], "y": [-1.0, 1.0], "z": [-4.0, -2.0]}

    def at_most(first: str, second: str) -> bool:
        # durations are not negative: all are shifted by 10, which no difference sees
        left, right = ([[value + 10.0 for value in sets[name]]] for name in (first, second))
        return INTERPRETATIONS["welch"](question(left, right, "<=")).verdict is HOLDS

    assert at_most("x", "y")
    assert at_most("y", "z")
    assert not at_most("x", "z")


@pytest.mark.parametrize("seed", range(5))
def test_welch_is_scipys(seed: int) -> None:
    """Definition 4.5 rejects exactly where scipy's one-sided Welch test does."""
    rng = np.random.default_rng(seed)
    left, right = rng.normal(5.0, 1.0, 12), rng.normal(5.0 - 0.4 * seed, 2.0, 7)
    p_value = stats.ttest_ind(left, right, equal_var=False, alternative="greater").pvalue
    for level in (p_value * 0.9, p_value * 1.1):
        if 0.0 < level < 0.5:
            found = INTERPRETATIONS["welch"](question([left], [right], "<=", level=1.0 - level))
            assert (found.verdict is VIOLATED) == (p_value < level)


def test_parametric_is_the_papers_formula() -> None:
    """Definition 4.8 on runs {1,2,3}, {3,4,5}, {8,9,10}: the limit is z sqrt((3 x 13 + 1) / 9) for one side."""
    side = [[1.0, 2.0, 3.0], [3.0, 4.0, 5.0], [8.0, 9.0, 10.0]]
    found = INTERPRETATIONS["parametric"](question(side, side, "<="))
    limit = stats.norm.ppf(0.95) * np.sqrt(2 * (3 * 13 + 1) / 9)
    assert found.evidence["limits"][1] == pytest.approx(limit, rel=1e-9)


def test_pooling_sees_changes_where_there_are_none() -> None:
    """Equal functions, runs 10 % apart, 500 calls: Welch over calls rejects most of them, runs and ours hardly any."""
    rng = np.random.default_rng(7)
    rejected = dict.fromkeys((*PAPER, "specmine"), 0)
    for _, name in itertools.product(range(40), rejected):
        sides = [[np.exp(rng.normal(0, 0.1)) * rng.lognormal(0, 0.2, 500) for _ in range(6)] for _ in range(2)]
        asked = question(sides[0], sides[1], "<=")
        rejected[name] += INTERPRETATIONS[name](asked).verdict is VIOLATED
    assert rejected["welch"] >= 12
    assert rejected["specmine"] <= 4
    assert max(rejected["parametric"], rejected["bootstrap"]) <= 10


def test_three_values() -> None:
    """Shown, refuted, or neither; a single lifetime shows nothing, a function never seen neither."""
    rng = np.random.default_rng(1)

    def runs_at(level: float, spread: float = 0.01, count: int = 5) -> Runs:
        return [list(level * np.exp(rng.normal(0, spread)) * rng.lognormal(0, 0.1, 200)) for _ in range(count)]

    data = Table(a=runs_at(1.0), b=runs_at(1.3), one=runs_at(1.0, count=1), wild=runs_at(1.0, 0.5))
    assert check("a < b", data).verdict is HOLDS
    assert check("b <= 1.1 * a", data).verdict is VIOLATED
    assert check("b <= 1.1 * a within 30%", data).verdict is HOLDS
    assert check("wild <= 1.1 * a", data).verdict is UNKNOWN
    assert check("one <= 2 s", data).verdict is UNKNOWN
    assert check("c <= 2 s", data).verdict is UNKNOWN
    assert check("1.5 s >= b and p90(a) > 0.5 s", data).verdict is HOLDS
    assert check("share(a, > 10 s) <= 1%", data).verdict is HOLDS
    assert check("share(a, <= 10 s) >= 0.99", data).verdict is HOLDS
    assert check("a + b <= 2.5 s", data).verdict is HOLDS
    assert check("b - a >= 0.1 s", data).verdict is HOLDS
    assert check("b - a >= 0.5 s", data).verdict is VIOLATED
    assert check("b = a within 50%", data).verdict is HOLDS
    assert check("b = a", data).verdict is VIOLATED
    assert check("b != a", data).verdict is HOLDS
    assert check("rate(a) > 5/s", data).verdict is UNKNOWN


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("{v} and {u}", VIOLATED),
        ("{h} and {u}", UNKNOWN),
        ("{h} or {u}", HOLDS),
        ("{v} or {u}", UNKNOWN),
        ("not {u}", UNKNOWN),
        ("not {v}", HOLDS),
        ("{v} implies {u}", HOLDS),
        ("{u} implies {h}", HOLDS),
        ("{u} implies {v}", UNKNOWN),
        ("{h} implies {v}", VIOLATED),
        ("forall x in {{a, c}}: x < 1 s", UNKNOWN),
        ("forall x in {{b, c}}: x < 1 s", VIOLATED),
        ("exists x in {{a, c}}: x < 1 s", HOLDS),
        ("exists x in {{b, c}}: x < 1 s", UNKNOWN),
    ],
)
def test_connectives_are_kleenes(text: str, verdict: Verdict) -> None:
    """Unknown is neither yes nor no, and the tree says what each part said."""
    data = Table(a=[[0.1, 0.11], [0.1, 0.12]], b=[[5.0, 5.1], [5.1, 5.2]])
    found = check(text.format(h="a < 1 s", v="b < 1 s", u="c < 1 s"), data)
    assert found.verdict is verdict
    assert len(found.parts) == (1 if text.startswith("not") else 2)
    assert all(part.evidence for part in found.parts)


def test_what_lifetimes_share_cancels() -> None:
    """Two functions of one program twice as slow in some lifetimes: their ratio is known all the same."""
    rng = np.random.default_rng(3)
    speeds = np.exp(rng.normal(0, 0.5, 6))
    data = Table(
        f=[list(2.0 * s * rng.lognormal(0, 0.01, 100)) for s in speeds],
        g=[list(1.0 * s * rng.lognormal(0, 0.01, 100)) for s in speeds],
    )
    assert check("f <= 2.05 * g", data).verdict is HOLDS
    assert check("f <= 1.95 * g", data).verdict is VIOLATED
    assert check("f - 2.05 * g <= 0", data).verdict is not VIOLATED


def test_the_tests_of_a_formula_share_its_risk() -> None:
    """Ten comparisons at 95 % are made at 99.5 % each, unless one says its own level."""
    data = Table(a=[[0.1, 0.11], [0.1, 0.12]])
    found = check("forall x in {a,a,a,a,a,a,a,a,a,a}: x < 1 s", data)
    assert [part.evidence["level"] for part in found.parts] == [pytest.approx(0.995)] * 10
    assert check("a < 1 s at 90%", data).evidence["level"] == 0.9


def test_mined_assertions_are_checked_by_their_classes() -> None:
    """Shares like those learned hold, others do not, few calls say nothing."""
    rng = np.random.default_rng(5)

    def mix(slow: float, calls: int) -> Runs:
        return [list(np.where(rng.random(calls) < slow, 1.0, 0.001)) for _ in range(12)]

    data = Table(same=mix(0.3, 500), more=mix(0.5, 500), few=mix(0.3, 10), two=mix(0.5, 500)[:3])
    text = "shares({}, 10 ms) ~ [0.7, 0.3] of 5000"
    assert check(text.format("same"), data).verdict is HOLDS
    assert check(text.format("more"), data).verdict is VIOLATED
    assert check(text.format("few"), data).verdict is UNKNOWN
    assert check(text.format("two"), data).verdict is UNKNOWN
