"""Levels of formulas are checked against windows: slowness violates them, chance does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from specmine.mining.levels.estimate import level_of
from specmine.mining.levels.window import Window
from specmine.mining.spl.data import StatedQuantile
from specmine.mining.spl.level_check import between, level_answer, stated_answer
from specmine.mining.spl.mined import MinedLevel, NormalQuantile
from specmine.mining.spl.syntax import Subject
from specmine.model.histogram import Histogram
from specmine.model.level import PROBABILITIES
from specmine.model.verdict import Verdict

MEDIAN_NS, SPREAD = 40_000.0, 0.3


def windows(
    rng: np.random.Generator,
    factor: float = 1.0,
    *,
    lifetimes: int = 5,
    calls: int = 2_000,
    effect: float = 0.02,
    parts: int = 4,
) -> Sequence[Window]:
    """Draw some windows of each lifetime; lifetimes differ by ``effect``, in log units."""
    found = []
    for lifetime in range(lifetimes):
        middle = factor * MEDIAN_NS * np.exp(rng.normal(0, 0.02))
        for number, part in enumerate(np.array_split(middle * rng.lognormal(0, SPREAD, calls), parts)):
            histogram = Histogram.from_durations(part)
            found.append(Window(histogram=histogram, start_ns=number, end_ns=number + 1, lifetime=str(lifetime)))
    return found


def stated(learned: Sequence[Window], **more: Any) -> MinedLevel:
    """Return the formula of what was learned."""
    level = level_of(learned)
    quantiles = []
    for name in PROBABILITIES:
        each = level.quantile(name)
        if each is not None and each.low_ns is not None and each.high_ns is not None:
            quantiles.append(
                NormalQuantile(name=name, seconds=1e-9 * each.ns, low=1e-9 * each.low_ns, high=1e-9 * each.high_ns)
            )
    return MinedLevel(subject=Subject(function="f"), quantiles=tuple(quantiles), calls=level.calls,
                      windows=level.windows, lifetimes=level.lifetimes, **more)  # fmt: skip


def verdicts(factor: float, draws: int = 60, **how: Any) -> list[Verdict]:
    """Learn from five lifetimes and check others, ``draws`` times."""
    rng = np.random.default_rng(7)
    return [level_answer(stated(windows(rng)), windows(rng, factor, **how)).verdict for _ in range(draws)]


def test_the_same_law_is_never_violated() -> None:
    """Fresh lifetimes of the same program: mostly holds, otherwise unknown."""
    found = verdicts(1.0)
    assert Verdict.VIOLATED not in found
    assert found.count(Verdict.HOLDS) >= 0.9 * len(found)


@pytest.mark.parametrize("factor", [1.5, 2.0, 10.0, 0.5])
def test_a_change_that_matters_is_violated(factor: float) -> None:
    """Slower or faster by half: 10,000 calls in five lifetimes show it."""
    assert verdicts(factor).count(Verdict.VIOLATED) >= 59


def test_a_change_that_does_not_matter_is_no_violation() -> None:
    """By a twentieth: less than the margin."""
    assert Verdict.VIOLATED not in verdicts(1.05)


def test_few_calls_say_nothing() -> None:
    """A quantile of fewer calls than it takes to state one is not checked."""
    rng = np.random.default_rng(1)
    formula = stated(windows(rng))
    answer = level_answer(formula, windows(rng, lifetimes=1, calls=60))
    assert answer.verdict is Verdict.UNKNOWN
    assert all("ratio" not in part for part in answer.evidence["quantiles"])
    assert [part["reason"] for part in answer.evidence["quantiles"]] == [
        f"60 calls, {needed} are needed" for needed in (100, 100, 300)
    ]
    some = level_answer(formula, windows(rng, lifetimes=1, calls=200))
    assert ["ratio" in part for part in some.evidence["quantiles"]] == [True, True, False]
    assert some.verdict is Verdict.UNKNOWN


def test_a_single_lifetime_that_is_ten_times_as_slow_is_violated() -> None:
    """How lifetimes differ need not be known for that."""
    rng = np.random.default_rng(2)
    formula = stated(windows(rng, lifetimes=1, calls=12_000, parts=10))
    assert formula.lifetimes == 1
    assert level_answer(formula, windows(rng, 10.0, lifetimes=1)).verdict is Verdict.VIOLATED


def test_bounds_choose_the_calls() -> None:
    """A call of exactly the bound belongs to the calls of at most it."""
    durations = [100.0] * 3 + [1_000.0] * 5 + [9_000.0] * 7
    window = Window(histogram=Histogram.from_durations(durations), start_ns=0, end_ns=1)
    counts = {
        bounds: between(window, *bounds).histogram.total
        for bounds in [(None, None), (5e-07, None), (None, 5e-07), (5e-07, 5e-06)]
    }
    assert counts == {(None, None): 15, (5e-07, None): 12, (None, 5e-07): 3, (5e-07, 5e-06): 5}


def test_bounds_are_of_durations_without_the_probes_cost() -> None:
    """Windows hold durations as measured: what the probes add is subtracted before the bound is applied."""
    window = Window(histogram=Histogram.from_durations([900.0, 2_000.0]), start_ns=0, end_ns=1, bias_ns=600.0)
    assert between(window, 5e-07, None).histogram.total == 1


def test_the_reason_is_the_real_one() -> None:
    """A range that begins at 0 and one that is not stated are no lack of calls."""
    level = NormalQuantile(name="p50", seconds=1e-6, low=5e-7, high=2e-6)
    formula = MinedLevel(subject=Subject(function="f"), quantiles=(level,), calls=900, windows=9, lifetimes=1)
    from_zero = StatedQuantile(seconds=1e-6, low=0.0, high=2e-6, windows=5, calls=274_199)
    answer = stated_answer(formula, {"p50": from_zero})
    assert answer.verdict is Verdict.UNKNOWN
    assert answer.evidence["reason"].startswith("its normal range begins at 0")
    assert stated_answer(formula, {}).evidence["reason"] == "the data state no normal range for it"
