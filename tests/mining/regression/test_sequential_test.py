"""Looking after every lifetime keeps the stated error rate, costs the same each time, and finds changes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from specmine.mining.regression.comparison import Change
from specmine.mining.regression.sequential_test import Sequential, begin, interval, verdict, with_lifetime

Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]
EFFECTS: dict[str, Draw] = {
    "normal": lambda rng, n: np.exp(rng.normal(0, 0.05, n)),
    "skewed": lambda rng, n: 1 + rng.exponential(0.1, n),
    "two modes": lambda rng, n: np.where(rng.random(n) < 0.15, 1.3, 1.0) * np.exp(rng.normal(0, 0.01, n)),
    "coarse": lambda rng, n: np.round(rng.normal(10, 1, n)).clip(7, 13),
}


def history(rng: np.random.Generator, draw: Draw, base: int, new: int, factor: float = 1.0) -> list[Sequential]:
    """Return the comparison after each new lifetime."""
    states = [begin(draw(rng, base).tolist())]
    for value in factor * draw(rng, new):
        states.append(with_lifetime(states[-1], float(value)))
    return states[1:]


@pytest.mark.parametrize("effect", EFFECTS)
@pytest.mark.parametrize("base", [3, 20])
def test_thirty_looks_at_one_percent(effect: str, base: int) -> None:
    """Of 500 unchanged histories at most 1 % (and chance) is ever called a change, whatever the distribution."""
    rng = np.random.default_rng(base)
    wrong = 0
    for _ in range(500):
        states = history(rng, EFFECTS[effect], base, 30)
        wrong += any(verdict(each, 0.99, 0.0) in (Change.WORSE, Change.BETTER) for each in states)
    assert wrong <= 10  # 1 % of 500 is 5; more than 10 has a probability of 1 %


def test_a_change_is_found_and_its_direction_known() -> None:
    """Two deviations against 20 base lifetimes: found within 15 in nine of ten histories."""
    rng = np.random.default_rng(2)
    for factor, expected in ((1.1, Change.WORSE), (1 / 1.1, Change.BETTER)):
        found = [{verdict(each, 0.95, 0.02) for each in history(rng, EFFECTS["normal"], 20, 15, factor)}
                 for _ in range(100)]  # fmt: skip
        assert sum(expected in each for each in found) >= 85
        assert sum(bool(each - {expected, Change.UNDECIDED}) for each in found) <= 5


def test_the_interval_holds_at_all_looks_together() -> None:
    """The true ratio leaves the 95 % interval at any of 30 looks in at most 5 % of histories; it narrows."""
    rng = np.random.default_rng(3)
    missed, widths = 0, []
    for _ in range(300):
        found = [interval(each, 0.95) for each in history(rng, EFFECTS["normal"], 15, 30, 1.05)]
        bounded = [each for each in found if each is not None]
        missed += any(not low <= 1.05 <= high for low, high in bounded)
        widths.append([high - low for low, high in (bounded[3], bounded[-1])])
    assert missed <= 20
    assert np.mean(widths, axis=0)[1] < 0.8 * np.mean(widths, axis=0)[0]


def test_equivalence_is_shown_in_the_end() -> None:
    """Unchanged and steady: equivalent within 5 % after thirty lifetimes."""
    rng = np.random.default_rng(4)
    steady: Draw = lambda r, n: np.exp(r.normal(0, 0.02, n))  # noqa: E731
    said = [verdict(history(rng, steady, 30, 30)[-1], 0.95, 0.05) for _ in range(50)]
    assert said.count(Change.EQUIVALENT) >= 45


def test_ties_are_no_evidence() -> None:
    """Durations that are all equal say nothing."""
    state = begin([5.0] * 10)
    for _ in range(50):
        state = with_lifetime(state, 5.0)
    assert state.log_e <= 0.0
    assert interval(begin([]), 0.95) is None


def test_a_lifetime_costs_the_same_after_any_history() -> None:
    """From 50 to 5,000 lifetimes the time for one more grows by less than half."""
    rng = np.random.default_rng(5)

    def cost(lifetimes: int) -> float:
        state = begin(rng.lognormal(0, 0.1, lifetimes).tolist())
        for value in rng.lognormal(0, 0.1, lifetimes):
            state = with_lifetime(state, float(value))
        best = math.inf
        for _ in range(15):
            started = time.perf_counter()
            for _ in range(40):
                with_lifetime(state, 1.01)
            best = min(best, time.perf_counter() - started)
        return best

    cost(50)  # warm
    for _ in range(3):  # another process may have had the CPU
        ratio = cost(5000) / cost(50)
        if ratio <= 1.5:
            break
    assert ratio <= 1.5
