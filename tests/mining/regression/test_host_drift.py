"""A host that became slower meanwhile is not taken for a slower build where unchanged functions show it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from specmine.mining.regression.comparison import Change, LifetimeSample, Rule, compare
from specmine.mining.regression.host_drift import HostDrift, deviation_of, host_drift
from specmine.mining.regression.sample import sample_of_durations

RULE = Rule()


def runs(
    rng: np.random.Generator, functions: int, drift: float, reaction: float, changed: float = 1.0, count: int = 10
) -> tuple[list[tuple[dict[tuple[str, str], float], dict[tuple[str, str], float]]], HostDrift | None]:
    """Return summaries of functions by lifetime, the changed one first, and what all others show."""
    reactions = rng.normal(0.0, reaction, functions)
    sides = [rng.normal(0.0, 0.02, count) for _ in range(2)]
    found = []
    for at in range(functions):
        both = tuple(
            {
                ("h", str(number)): math.exp(
                    shared
                    + rng.normal(0, 0.02)
                    + side * (drift + reactions[at] + (math.log(changed) if at == 0 else 0))
                )
                for number, shared in enumerate(sides[side])
            }
            for side in (0, 1)
        )
        found.append((both[0], both[1]))
    return found, host_drift(found[1:], 0.95)


def verdict(sides: tuple[dict[tuple[str, str], float], ...], drift: HostDrift | None) -> Change:
    """Compare one function whose lifetimes have one call each."""
    base, new = (
        [LifetimeSample(lifetime=name, host=host, sample=sample_of_durations([1e6 * value])) for (host, name), value in
         side.items()]
        for side in sides
    )  # fmt: skip
    return compare(base, new, RULE, drift=drift).verdict


def share_of(wanted: Change, *, drift: float, reaction: float, changed: float, aware: bool = True) -> float:
    """Return how often a function gets a verdict in 300 draws."""
    rng = np.random.default_rng(5)
    found = 0
    for _ in range(300):
        sides, common = runs(rng, 9, rng.normal(0, drift), reaction, changed)
        found += verdict(sides[0], common if aware else None) is wanted
    return found / 300


def test_a_slower_host_is_no_slower_function() -> None:
    """Drift of 10 %: without the other functions nearly every comparison errs, with them hardly any."""
    assert share_of(Change.WORSE, drift=0.1, reaction=0.01, changed=1.0, aware=False) > 0.3
    assert share_of(Change.WORSE, drift=0.1, reaction=0.01, changed=1.0) <= 0.04


def test_a_changed_function_is_still_found_on_a_steady_host() -> None:
    """Ten per cent, eight unchanged functions beside it."""
    assert share_of(Change.WORSE, drift=0.0, reaction=0.0, changed=1.1) > 0.95


def test_a_change_that_the_host_hides_is_not_called_equivalent() -> None:
    """A host that became 10 % faster and a function that became 10 % slower: never the same, at worst undecided."""
    rng = np.random.default_rng(6)
    verdicts = []
    for _ in range(100):
        sides, common = runs(rng, 9, -math.log(1.1), 0.01, 1.1)
        verdicts.append(verdict(sides[0], common))
    assert set(verdicts) <= {Change.UNDECIDED, Change.WORSE}


def test_functions_that_vary_much_more_are_no_controls() -> None:
    """Of two steady functions and three that wait, a steady one is judged by the steady ones alone."""
    rng = np.random.default_rng(7)

    def one(deviation: float) -> tuple[dict[tuple[str, str], float], dict[tuple[str, str], float]]:
        base, new = ({("h", str(at)): math.exp(rng.normal(0, deviation)) for at in range(5)} for _ in range(2))
        return base, new

    controls = [one(0.003), one(0.004), one(0.8), one(0.9), one(0.7)]
    found = [host_drift(controls, 0.95, deviation) for deviation in (0.005, 0.8)]
    assert [each.controls for each in found if each is not None] == [2, 5]
    restless = host_drift(controls[2:], 0.95, 0.005)
    assert restless is not None and restless.controls == 3, "better than none"
    assert deviation_of(*controls[2]) == pytest.approx(
        float(np.sqrt(np.mean([np.var(np.log(list(side.values())), ddof=1) for side in controls[2]])))
    )


def test_the_drift_is_the_mean_of_the_controls() -> None:
    """Three functions at 1.1, 1.1 and 1.21 times: geometric mean, and the interval of a t with two degrees."""
    controls = [
        ({("h", "1"): 2.0, ("h", "2"): 2.0}, {("h", "1"): 2.0 * r, ("h", "2"): 2.0 * r}) for r in (1.1, 1.1, 1.21)
    ]
    found = host_drift(controls, 0.95)
    assert found is not None
    logs = np.log([1.1, 1.1, 1.21])
    assert found.ratio == pytest.approx(math.exp(logs.mean()))
    half = 4.302653 * logs.std(ddof=1) / math.sqrt(3)
    assert (found.low, found.high) == pytest.approx(
        (math.exp(logs.mean() - half), math.exp(logs.mean() + half)), rel=1e-6
    )
    assert host_drift(controls[:1], 0.95) is None
