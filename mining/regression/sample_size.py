"""How many calls per lifetime, lifetimes per build and builds a comparison needs, and the smallest change it detects.

``optimal_counts``, ``builds_needed`` and ``calls_for_quantile`` are for planning a comparison before it is made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from specmine.mining.statistics.noncentral_t import detected_shift
from specmine.mining.statistics.student_t import normal_quantile, t_quantile

POWER = 0.8
"""A change is called detectable if it is found with this probability."""
MOST_LIFETIMES = 1_000_000

_EXPANDED = 60.0
FEWEST = 2
"""Counts are never planned below this: a variance needs two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Best counts of a planned comparison; infinite where a level adds no variance and nothing limits them."""

    calls: float
    """Calls per lifetime."""
    lifetimes: float
    """Lifetimes per build."""

    @property
    def rounded(self) -> tuple[float, float]:
        """Counts rounded up, at least 2."""
        calls, lifetimes = (each if math.isinf(each) else max(FEWEST, math.ceil(each)) for each in self._both)
        return calls, lifetimes

    @property
    def _both(self) -> tuple[float, float]:
        return self.calls, self.lifetimes


def optimal_counts(
    call: float, lifetime: float, build: float, *, warmup: float, build_cost: float, repeated: float = 1.0
) -> Counts:
    """Return the counts that give the narrowest interval for the same total cost, for planning a comparison.

    Parameters
    ----------
    call, lifetime, build : float
        Variances between calls, lifetimes and builds; at most 0 means that the level adds none.
    warmup, build_cost : float
        What a lifetime and a build cost before the first useful call, in calls.
    repeated : float
        Cost of one repetition in units of the measured call (q of the thesis).

    Notes
    -----
    Kalibera 2006, section 7.3: n0 = sqrt(w S_E^2 / S_B^2), m0 = sqrt(b S_B^2 / (q w S_V^2)). They do not
    depend on the total cost, and the cost is flat around them: twice or half of n0 costs 1.6 % in the
    worked example, of m0 7.8 %.
    """
    calls = math.sqrt(warmup * call / lifetime) if lifetime > 0 else math.inf
    lifetimes = math.inf
    if build > 0 and lifetime > 0:
        lifetimes = math.sqrt(build_cost * lifetime / (repeated * warmup * build))
    elif build > 0:
        lifetimes = 0.0
    return Counts(calls=calls, lifetimes=lifetimes)


def builds_needed(
    call: float, lifetime: float, build: float, *, counts: tuple[int, int], half: float, level: float
) -> int:
    """Return the builds for a half-width in the unit of the durations, for planning; ``counts``: calls, lifetimes."""
    calls, lifetimes = counts
    variance = build + lifetime / lifetimes + call / (lifetimes * calls)
    return math.ceil((normal_quantile(0.5 + 0.5 * level) / half) ** 2 * variance)


def calls_for_quantile(probability: float, error: float, level: float) -> int:
    """Return the independent calls, for planning, that give a quantile's share to +-error (Chen and Kelton)."""
    z = normal_quantile(0.5 + 0.5 * level)
    return math.ceil(z * z * probability * (1 - probability) / error**2 - 1e-9)


def calls_worth_timing(call: float, lifetime: float, *, fewest: int, most: int) -> int:
    """Return after how many calls of one lifetime more of them teach nothing about a build.

    Parameters
    ----------
    call, lifetime : float
        Variances between calls and between lifetimes.
    fewest, most : int
        The answer lies between them.

    Notes
    -----
    With n calls a lifetime's mean has the variance lifetime + call / n. The count returned is that at which
    the second part is a tenth of the first: more calls narrow the interval by less than 5 %.
    """
    if lifetime <= 0:
        return most
    return int(min(max(math.ceil(10.0 * call / lifetime), fewest), most))


def smallest_detectable(error: float, freedom: float, level: float, power: float = POWER) -> float:
    """Return the smallest factor above 1 that is found with a probability.

    Parameters
    ----------
    error : float
        Standard error of log(ratio).
    freedom : float
        Degrees of freedom of the error.
    level, power : float

    Notes
    -----
    The shift at which a noncentral t exceeds the quantile of the test.
    """
    if error <= 0.0:
        return 1.0
    return math.exp(min(error * detected_shift(round(freedom, 1), level, power), 700.0))


def needed_lifetimes(
    log_ratio: float, deviations: Sequence[float], level: float, tolerance: float, power: float = POWER
) -> int:
    """Return with how many lifetimes a side a comparison would be decided, if the estimates of now were the truth.

    Parameters
    ----------
    log_ratio : float
        Logarithm of the estimated ratio.
    deviations : sequence of float
        Standard deviations of log summaries of both sides.
    level, tolerance, power : float
        Decided: the interval excludes 1, or lies within the tolerance, with this probability.

    Returns
    -------
    int
        At least 2, at most ``MOST_LIFETIMES``.
    """
    return min(
        lifetimes_for_change(log_ratio, deviations, level, power),
        lifetimes_for_equivalence(log_ratio, deviations, level, tolerance, power),
    )


def lifetimes_for_change(log_ratio: float, deviations: Sequence[float], level: float, power: float = POWER) -> int:
    """Return with how many lifetimes a side the interval would exclude 1; as ``needed_lifetimes``."""

    def decided(number: int) -> bool:
        error, freedom = _error(deviations, number)
        return (_quantile(0.5 + 0.5 * level, freedom) + _quantile(power, freedom)) * error <= abs(log_ratio)

    return _smallest(decided)


def lifetimes_for_equivalence(
    log_ratio: float, deviations: Sequence[float], level: float, tolerance: float, power: float = POWER
) -> int:
    """Return with how many lifetimes a side the interval would lie within the tolerance; as ``needed_lifetimes``."""
    margin = math.log1p(tolerance) - abs(log_ratio)

    def decided(number: int) -> bool:
        error, freedom = _error(deviations, number)
        # both ends have to fit, each with its own part of the failures
        both = _quantile(0.5 + 0.5 * power, freedom)
        return (_quantile(0.5 + 0.5 * level, freedom) + both) * error <= margin

    return _smallest(decided) if margin > 0.0 else MOST_LIFETIMES


def _error(deviations: Sequence[float], number: int) -> tuple[float, float]:
    """Return the standard error of a log ratio with so many lifetimes a side, and its degrees of freedom."""
    return math.sqrt(sum(d * d for d in deviations) / number), 2.0 * (number - 1)


def _quantile(probability: float, freedom: float) -> float:
    """Return a quantile of t; of many degrees of freedom by an expansion, since a search asks for hundreds of them.

    Notes
    -----
    Fisher and Cornish 1960: the error is below 1e-6 from 60 degrees of freedom on.
    """
    if freedom < _EXPANDED:
        return t_quantile(probability, freedom)
    z = normal_quantile(probability)
    first = (z**3 + z) / 4.0
    second = (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / 96.0
    third = (3.0 * z**7 + 19.0 * z**5 + 17.0 * z**3 - 15.0 * z) / 384.0
    return z + first / freedom + second / freedom**2 + third / freedom**3


def _smallest(decided: Callable[[int], bool]) -> int:
    high = FEWEST
    while not decided(high):
        if high >= MOST_LIFETIMES:
            return MOST_LIFETIMES
        high = min(2 * high, MOST_LIFETIMES)
    low = max(FEWEST, high // 2)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if decided(middle) else (middle + 1, high)
    return high
