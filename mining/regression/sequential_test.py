"""A comparison that may be checked after every lifetime, any number of times, with the stated error rate.

The evidence is an e-process: under "nothing changed" it exceeds 1 / a with a probability of at most a, over all
looks together (Ville's inequality). It uses only the order of lifetimes, so it is exact for any distribution;
the interval beside it assumes that the logarithms of summaries are normal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .comparison import Change

MOST_BASE = 64
"""So many of the latest base lifetimes are compared with: the cost of a lifetime does not grow with history."""
_POWERS = np.array([1.5, 2.0, 3.0, 5.0, 8.0, 16.0, 32.0, 64.0, 256.0])
"""Alternatives: new lifetimes lie among the base ones as the largest of so many would."""
PRIOR_VARIANCE = 4.0
"""Of the standardised shift, in the mixture behind the interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """Count, mean and sum of squares of log summaries (Welford)."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def with_value(self, value: float) -> Moments:
        """Return the moments with one more value."""
        count = self.count + 1
        away = value - self.mean
        mean = self.mean + away / count
        return Moments(count=count, mean=mean, squares=self.squares + away * (value - mean))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sequential:
    """The state of a comparison of one function; ``begin`` makes it, ``with_lifetime`` adds a lifetime."""

    base: NDArray[np.float64]
    """Sorted log summaries of the base's lifetimes."""
    base_moments: Moments
    new_moments: Moments
    gaps_up: tuple[int, ...]
    """New lifetimes between neighbours of the base, below the smallest first; ties count as below."""
    gaps_down: tuple[int, ...]
    """The same with ties counted as above."""
    log_up: tuple[float, ...]
    """Log e-values against "not longer", one per alternative."""
    log_down: tuple[float, ...]
    """Log e-values against "not shorter"."""

    @property
    def log_e_up(self) -> float:
        """Evidence that new lifetimes take longer."""
        return _mixed(self.log_up)

    @property
    def log_e_down(self) -> float:
        """Evidence that new lifetimes take less time."""
        return _mixed(self.log_down)

    @property
    def log_e(self) -> float:
        """Evidence of any change."""
        return float(np.logaddexp(self.log_e_up, self.log_e_down)) - math.log(2.0)

    @property
    def log_ratio(self) -> float:
        """Estimate of the logarithm of new over base."""
        return self.new_moments.mean - self.base_moments.mean

    @property
    def lifetimes(self) -> tuple[int, int]:
        """Lifetimes of base and new."""
        return self.base_moments.count, self.new_moments.count


def begin(base: Sequence[float]) -> Sequential:
    """Begin a comparison with the summaries (above 0, any unit) of the base's lifetimes, in the order of time.

    The base stays as it is from now on: it must be fixed before the first new lifetime is added.
    """
    latest = np.sort(np.log(np.asarray(base, dtype=np.float64)[-MOST_BASE:]))
    latest.flags.writeable = False
    moments = Moments(
        count=len(latest),
        mean=float(latest.mean()) if len(latest) else 0.0,
        squares=float(((latest - latest.mean()) ** 2).sum()) if len(latest) else 0.0,
    )
    zeros = (0.0,) * len(_POWERS)
    return Sequential(
        base=latest,
        base_moments=moments,
        new_moments=Moments(),
        gaps_up=(0,) * (len(latest) + 1),
        gaps_down=(0,) * (len(latest) + 1),
        log_up=zeros,
        log_down=zeros,
    )


def with_lifetime(state: Sequential, summary: float) -> Sequential:
    """Return the comparison after one more lifetime of the new side.

    Notes
    -----
    Under exchangeable lifetimes a new one falls between two neighbours of the base with probability (1 + c) /
    (m + 1 + k), c of the k new ones before it being there (Polya's urn). Each alternative bets on u ** a being
    uniform, u the place among the base; the product of its probabilities over those of the urn is a
    martingale, and so is the mean over alternatives. Ties count for the smaller change.
    """
    value = math.log(summary)
    places = len(state.base) + 1
    seen = state.new_moments.count
    above = int(np.searchsorted(state.base, value, side="left"))
    below = int(np.searchsorted(state.base, value, side="right"))
    null_up = math.log((1 + state.gaps_up[above]) / (places + seen))
    null_down = math.log((1 + state.gaps_down[below]) / (places + seen))
    up = np.log(_cell(above, places))
    down = np.log(_cell(places - 1 - below, places))
    return replace(
        state,
        new_moments=state.new_moments.with_value(value),
        gaps_up=_with_one_more(state.gaps_up, above),
        gaps_down=_with_one_more(state.gaps_down, below),
        log_up=tuple((np.array(state.log_up) + up - null_up).tolist()),
        log_down=tuple((np.array(state.log_down) + down - null_down).tolist()),
    )


def interval(state: Sequential, level: float) -> tuple[float, float] | None:
    """Return a confidence sequence for new over base: it holds at all looks together.

    Returns
    -------
    tuple of float or None
        None while it is unbounded.

    Notes
    -----
    Inverts the t-statistic's Bayes factor with a normal prior on the standardised shift and the right Haar
    prior on scale, which is a test martingale for normal data of equal variance (Lai 1976; Hendriksen, de
    Heide and Grunwald, Optional stopping with Bayes factors, 2021).
    """
    first, second = state.base_moments, state.new_moments
    if min(first.count, second.count) < 1 or first.count + second.count < 4:
        return None
    freedom = first.count + second.count - 2
    size = first.count * second.count / (first.count + second.count)
    growth = 1.0 + size * PRIOR_VARIANCE
    bound = math.exp(2.0 / (freedom + 1.0) * (0.5 * math.log(growth) - math.log(1.0 - level)))
    if bound >= growth:
        return None
    square = freedom * (bound - 1.0) / (1.0 - bound / growth)
    half = math.sqrt(square * (first.squares + second.squares) / freedom / size)
    return math.exp(state.log_ratio - half), math.exp(state.log_ratio + half)


def verdict(state: Sequential, level: float, tolerance: float) -> Change:
    """Return the verdict now; over all checks together a wrong one has at most the probability 1 - level.

    Worse and better need the evidence and a ratio beyond the tolerance; equivalent needs the interval within it.
    """
    limit = math.log1p(tolerance)
    needed = math.log(2.0 / (1.0 - level))  # each direction has half of the risk
    if state.log_e_up >= needed and state.log_ratio > limit:
        return Change.WORSE
    if state.log_e_down >= needed and state.log_ratio < -limit:
        return Change.BETTER
    found = interval(state, level)
    if found is not None and -limit <= math.log(found[0]) and math.log(found[1]) <= limit:
        return Change.EQUIVALENT
    return Change.UNDECIDED


def _cell(place: int, places: int) -> NDArray[np.float64]:
    """Return the probability of a gap under each alternative."""
    high = ((place + 1) / places) ** _POWERS
    return np.maximum(high - (place / places) ** _POWERS, 1e-300)


def _with_one_more(counts: tuple[int, ...], place: int) -> tuple[int, ...]:
    return (*counts[:place], counts[place] + 1, *counts[place + 1 :])


def _mixed(logs: Sequence[float]) -> float:
    return float(np.logaddexp.reduce(np.array(logs))) - math.log(len(logs))
