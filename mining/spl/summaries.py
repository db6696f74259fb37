"""Summaries of the durations of a lifetime by name: those of comparisons, and any quantile."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from specmine.mining.regression.sample import FEWEST_CALLS, SUMMARIES, Sample, quantile

_QUANTILE = re.compile(r"p(\d{1,2}(?:\.\d{1,4})?)")


def probability_of(name: str) -> float | None:
    """Return the probability of a quantile such as p50 or p99.9; None for another name."""
    found = _QUANTILE.fullmatch(name)
    probability = float(found[1]) / 100.0 if found else 0.0
    return probability if 0.0 < probability < 1.0 else None


def is_summary(name: str) -> bool:
    """Return whether a summary has this name."""
    return name in SUMMARIES or probability_of(name) is not None


def summary_names() -> str:
    """Return the names in words, for messages."""
    return f"{', '.join(SUMMARIES)} (or another quantile, such as p75)"


def summary_of(name: str) -> Callable[[Sample], float]:
    """Return the summary of this name, a function of a sample that returns ns; KeyError for another name."""
    probability = probability_of(name)
    if name in SUMMARIES or probability is None:
        return SUMMARIES[name]
    return lambda sample: quantile(sample, probability)


def fewest_calls(name: str) -> int:
    """Return how many calls a lifetime needs for a summary: one beyond the quantile on each side."""
    probability = probability_of(name)
    if name in FEWEST_CALLS or probability is None:
        return FEWEST_CALLS.get(name, 1)
    return math.ceil(1.0 / min(probability, 1.0 - probability) - 1e-9)
