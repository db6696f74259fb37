"""The verdict: violated and holds are said only where the data bear it, at the stated rates."""

from __future__ import annotations

import numpy as np
import pytest

from specmine.mining.levels.estimate import level_of
from specmine.mining.levels.verdict import Factor, factor_of, level_verdict, shares_verdict, verdict_of
from specmine.mining.levels.window import Window
from specmine.mining.statistics.class_shares import Dispersion
from specmine.model.histogram import Histogram
from specmine.model.verdict import Verdict


def _windows(rng: np.random.Generator, count: int, calls: int, factor: float = 1.0, sd: float = 0.05) -> list[Window]:
    return [
        Window(
            histogram=Histogram.from_durations(factor * rng.lognormal(11 + rng.normal(0, sd), 0.5, calls)),
            start_ns=number * 10**10,
            end_ns=(number + 1) * 10**10,
            lifetime="a",
        )
        for number in range(count)
    ]


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.95, 1.1, Verdict.HOLDS),
        (0.5, 3.0, Verdict.UNKNOWN),
        (1.1, 1.3, Verdict.UNKNOWN),
        (1.3, 1.45, Verdict.UNKNOWN),
        (1.6, 2.2, Verdict.VIOLATED),
        (0.3, 0.5, Verdict.VIOLATED),
        (0.75, 0.9, Verdict.UNKNOWN),
    ],
)
def test_only_an_interval_that_excludes_the_other_decides(low: float, high: float, verdict: Verdict) -> None:
    """Inside what does not matter: holds; beyond the usual range 0.6 to 1.5: violated; anything else is unknown."""
    assert verdict_of(Factor(value=(low * high) ** 0.5, low=low, high=high), (0.6, 1.5)) is verdict


def test_without_a_range_nothing_is_violated() -> None:
    """A level of too few windows says nothing about what is usual."""
    assert verdict_of(Factor(value=3, low=2.5, high=3.5), None) is Verdict.UNKNOWN
    assert verdict_of(Factor(value=1, low=0.9, high=1.1), None) is Verdict.HOLDS


def test_an_unchanged_program_is_never_violated_and_a_slower_one_is() -> None:
    """Of 200 recordings of the same law none is violated and most hold; of those twice as slow all are violated."""
    rng = np.random.default_rng(1)
    same, slower = [], []
    for _ in range(200):
        level = level_of(_windows(rng, 10, 300))
        same.append(level_verdict(level, _windows(rng, 5, 300), "p50")[0])
        slower.append(level_verdict(level, _windows(rng, 5, 300, factor=2.0), "p50")[0])
    assert same.count(Verdict.VIOLATED) == 0
    assert same.count(Verdict.HOLDS) >= 170
    assert slower.count(Verdict.VIOLATED) >= 198


def test_the_interval_of_a_factor_holds_the_true_one() -> None:
    """In 92 to 99 of 100 draws: pooled with the prior it is at least as wide as stated."""
    rng = np.random.default_rng(2)
    level = level_of(_windows(rng, 400, 300))
    held = []
    for _ in range(300):
        factor = factor_of(level, _windows(rng, 6, 300, factor=1.5), "p50")
        assert factor is not None
        held.append(factor.low <= 1.5 <= factor.high)
    assert 0.92 <= np.mean(held) <= 1.0


def test_a_few_calls_are_unknown() -> None:
    """One window of 20 calls neither holds nor is violated at a factor of 1.2."""
    rng = np.random.default_rng(3)
    level = level_of(_windows(rng, 20, 300))
    verdict, factor = level_verdict(level, _windows(rng, 1, 20, factor=1.2), "p50")
    assert verdict is Verdict.UNKNOWN
    assert factor is not None
    assert factor.high / factor.low > 1.3
    assert level_verdict(level, [], "p50") == (Verdict.UNKNOWN, None)


@pytest.mark.parametrize(
    ("observed", "factor", "verdict"),
    [
        ((7_010, 2_990), 1.0, Verdict.HOLDS),
        ((5_000, 5_000), 1.0, Verdict.VIOLATED),
        ((6_600, 3_400), 50.0, Verdict.UNKNOWN),
        ((66, 34), 1.0, Verdict.UNKNOWN),
        ((0, 0), 1.0, Verdict.UNKNOWN),
    ],
)
def test_shares_are_judged_in_units_of_their_dispersion(
    observed: tuple[int, int], factor: float, verdict: Verdict
) -> None:
    """Shares moved under large dispersion are unknown, not holds."""
    noise = Dispersion(factor=factor, freedom=20)
    assert shares_verdict((70_000, 30_000), observed, noise, level=0.01, margin=0.05) is verdict
