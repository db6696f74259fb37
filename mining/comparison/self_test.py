"""A/A on the user's own data: lifetimes of one side against each other, where every change found is false."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from specmine.mining.regression.comparison import Change, LifetimeSample, Rule

from .function_comparison import compare_function
from .function_parts import parts_of

FEWEST_LIFETIMES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfTest:
    """How often halves of one side were called different."""

    splits: int
    alarms: int
    """Splits called worse or better."""
    undecided: int
    equivalent: int

    @property
    def rate(self) -> float:
        """Share of false verdicts; NaN if there were no splits."""
        return self.alarms / self.splits if self.splits else float("nan")


def self_test(lifetimes: Sequence[LifetimeSample], rule: Rule, rng: np.random.Generator, splits: int = 100) -> SelfTest:
    """Split lifetimes at random into halves and compare them; none of fewer than four."""
    verdicts: list[Change] = []
    if len(lifetimes) >= FEWEST_LIFETIMES:
        for _ in range(splits):
            order = rng.permutation(len(lifetimes))
            half = len(order) // 2
            first, second = ([lifetimes[at] for at in part] for part in (order[:half], order[half:]))
            verdicts.append(compare_function(parts_of(first, second, rule), rule).verdict)
    return SelfTest(
        splits=len(verdicts),
        alarms=verdicts.count(Change.WORSE) + verdicts.count(Change.BETTER),
        undecided=verdicts.count(Change.UNDECIDED),
        equivalent=verdicts.count(Change.EQUIVALENT),
    )
