"""A function is equivalent only if each part is, worse if one is, and many parts give no more false alarms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from specmine.mining.comparison.function_comparison import FunctionComparison, compare_function, name_of
from specmine.mining.comparison.function_parts import class_bounds, parts_of
from specmine.mining.regression.comparison import Change, LifetimeSample, Rule, compare
from specmine.mining.regression.sample import sample_of_durations

RULE = Rule()


def side(
    rng: np.random.Generator,
    slow: float = 1.0,
    count: int = 8,
    calls: int = 300,
    spread: float = 0.01,
    share: float = 0.3,
) -> list[LifetimeSample]:
    """Return lifetimes with calls of 10 us and of 160 us, the latter times ``slow``."""
    found = []
    for number in range(count):
        long = rng.random(calls) < share
        durations = np.where(long, 160e3 * slow, 10e3) * rng.lognormal(0, 0.1, calls) * math.exp(rng.normal(0, spread))
        found.append(LifetimeSample(lifetime=str(number), host="", sample=sample_of_durations(durations)))
    return found  # fmt: skip


def judged(base: list[LifetimeSample], new: list[LifetimeSample], rule: Rule = RULE) -> FunctionComparison:
    """Compare by parts."""
    return compare_function(parts_of(base, new, rule), rule)


def test_a_slow_class_that_became_slower_is_found() -> None:
    """Three calls in ten take half as long again: the median of all is the same, the function is worse."""
    rng = np.random.default_rng(1)
    base, new = side(rng), side(rng, 1.5)
    assert compare(base, new, RULE).verdict is not Change.WORSE
    found = judged(base, new)
    assert found.verdict is Change.WORSE
    assert found.decisive.part.kind == "class"
    assert found.decisive.comparison.ratio == pytest.approx(1.5, abs=0.05)
    assert found.reason.startswith("calls over 4")


def test_equivalent_only_if_every_part_is() -> None:
    """The median alone would be the same within 10 %; the rare class is not known so well."""
    rng = np.random.default_rng(2)
    rule = Rule(tolerance=0.05)
    many = judged(side(rng, calls=4000, spread=0.003), side(rng, calls=4000, spread=0.003), rule)
    assert many.verdict is Change.EQUIVALENT
    few = judged(side(rng, calls=150, spread=0.003), side(rng, calls=150, spread=0.003), rule)
    assert few.whole.verdict is Change.EQUIVALENT
    assert few.verdict is Change.UNDECIDED
    assert few.needed is not None and few.needed > 8


def test_unchanged_functions_are_called_a_change_no_more_often_than_stated() -> None:
    """Two classes, four parts, 600 comparisons at 5 %: at most 6 % and its sampling error."""
    rng = np.random.default_rng(3)
    alarms = sum(
        judged(side(rng, count=5), side(rng, count=5)).verdict in (Change.WORSE, Change.BETTER) for _ in range(600)
    )
    assert alarms / 600 <= 0.06 + 2 * math.sqrt(0.06 * 0.94 / 600)


def test_a_tail_that_was_asked_for_stands_alone() -> None:
    """With p99 the mean is not compared as well: who asks for a tail of few calls learns that it is not known."""
    rng = np.random.default_rng(4)
    found = judged(side(rng, calls=60, share=0.0), side(rng, calls=60, share=0.0), Rule(summary="p99"))
    assert [each.part.summary for each in found.parts] == ["p99"]
    assert found.verdict is Change.UNDECIDED
    assert found.whole.ratio is not None
    assert [each.code for each in found.left_out] == ["too-few-calls"] * 16


@pytest.mark.parametrize("summary", ["trimmed", "p90", "p99"])
def test_classes_and_behaviours_are_compared_whatever_the_summary(summary: str) -> None:
    """By their medians; only the mean of all calls is left out."""
    rng = np.random.default_rng(7)
    base = side(rng)
    behaviours = {"a->f": (base, base), "not a->f": (base, base)}
    found = parts_of(base, base, Rule(summary=summary), behaviours)
    assert [(each.kind, each.summary) for each in found] == [
        ("all", summary), ("class", "median"), ("class", "median"), ("behaviour", "median"), ("behaviour", "median"),
    ]  # fmt: skip


def test_lifetimes_shifted_against_each_other_make_no_classes() -> None:
    """Two groups of lifetimes 60 % apart: all calls together have a valley that no lifetime has."""
    rng = np.random.default_rng(5)
    samples = [sample_of_durations((1.6 if at % 2 else 1.0) * 1e5 * rng.lognormal(0, 0.05, 500)) for at in range(10)]
    assert class_bounds(samples) == [(-1.0, math.inf)]
    factors = np.repeat((1.0, 1.6), 250)
    mixed = [sample_of_durations(factors * 1e5 * rng.lognormal(0, 0.05, 500)) for _ in range(10)]
    assert len(class_bounds(mixed)) == 2


def test_parts_have_names_for_people() -> None:
    """Each part of a function has words of its own."""
    rng = np.random.default_rng(6)
    base = side(rng)
    behaviours = {"a->f": (base, base), "not a->f": (base, base)}
    names = [name_of(each, RULE) for each in parts_of(base, base, RULE, behaviours)]
    assert names[:2] == ["", "their mean"]
    assert names[2].startswith("calls of at most ")
    assert names[3].startswith("calls over ")
    assert names[4:] == ["calls with a->f", "calls with not a->f"]


def test_needed_lifetimes_decide() -> None:
    """With as many lifetimes as were said to be needed, most comparisons of the same kind are decided."""
    rng = np.random.default_rng(7)
    found = judged(side(rng, count=4, spread=0.02, share=0.0), side(rng, count=4, spread=0.02, share=0.0))
    assert found.verdict is Change.UNDECIDED
    assert found.needed is not None
    sides = [side(rng, count=found.needed, spread=0.02, share=0.0) for _ in range(40)]
    decided = sum(judged(*pair).verdict is not Change.UNDECIDED for pair in zip(sides[::2], sides[1::2], strict=True))
    assert decided >= 12
