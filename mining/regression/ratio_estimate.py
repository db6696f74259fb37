"""By which factor a summary changed: estimate and interval from the summaries of lifetimes.

Ratios are compared on the log scale, where a factor is a difference and an interval cannot contain 0. Each
lifetime counts once, however many calls it had.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from specmine.mining.statistics.student_t import t_quantile, two_sided_p

Floats = NDArray[np.float64]

_TOWARDS_NARROWER = 0.3
"""Between the wider and the narrower interval of sides of unequal size; simulated in docs/measured/change.md."""
_FREEDOM_TO_TRUST = 2
FEWEST_HOSTS = 3
"""From so many hosts that ran both sides on, what differs between hosts is a variance of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RatioEstimate:
    """New over base with its interval; all logarithms are natural."""

    ratio: float
    low: float
    high: float
    error: float
    """Standard error of log(ratio)."""
    freedom: float
    """Degrees of freedom of the error (Satterthwaite)."""
    p_value: float
    """Two-sided, of a ratio this far from 1 although nothing changed."""
    deviations: tuple[float, float]
    """Standard deviations of log summaries between lifetimes of base and new, pooled over hosts."""
    lifetimes: tuple[int, int]
    method: str
    """lifetimes, within-hosts, across-hosts or nested-hosts: what was taken as the unit that repeats."""


def ratio_estimate(
    base: Mapping[str, ArrayLike], new: Mapping[str, ArrayLike], *, level: float, step: float = 0.0
) -> RatioEstimate | None:
    """Compare the summaries of two sides.

    Parameters
    ----------
    base, new : mapping from host to array_like
        One positive summary per lifetime of that side on that host, any unit.
    level : float
        Confidence level of the interval, e.g. 0.95.
    step : float
        Granularity of the summaries in their unit; a rounding error of step / sqrt(12) is never left out.

    Returns
    -------
    RatioEstimate or None
        None if lifetimes do not suffice: one side has none, or nothing repeats.

    Notes
    -----
    Hosts and builds cross, so hosts that ran both sides are compared each with itself:

    - one host: Welch's t on log summaries with Satterthwaite's degrees of freedom. With unequal numbers of
      lifetimes Welch's test rejects too often if one side has very few (2 against 20: 12 % at a nominal 5 %,
      17 % if they are uniform), so there the wider of Welch's interval and that of equal variances is taken; with
      three and more, where it would reject too seldom, less three tenths of its distance to the narrower.
    - two hosts: the mean of both differences, errors from lifetimes inside hosts.
    - three and more: the differences of hosts are draws, t with hosts - 1 degrees of freedom.

    Where no host ran both sides, hosts are nested in sides and are the units if each side has at least two.
    """
    sides = _logs(base), _logs(new)
    rounding = _rounding(base, new, step)
    shared = sorted(set(sides[0]) & set(sides[1]))
    if shared:
        pairs = [(sides[0][host], sides[1][host]) for host in shared]
        if len(pairs) >= FEWEST_HOSTS:
            return _across(pairs, level, rounding)
        return _within(pairs, level, rounding)
    if not sides[0] or not sides[1]:
        return None
    if min(len(sides[0]), len(sides[1])) >= 2:
        means = [np.array([values.mean() for _, values in sorted(side.items())]) for side in sides]
        return _within([(means[0], means[1])], level, rounding, method="nested-hosts", counts=_counts(sides))
    whole = [np.concatenate([values for _, values in sorted(side.items())]) for side in sides]
    return _within([(whole[0], whole[1])], level, rounding)


def welch_freedom(first: float, first_df: float, second: float, second_df: float) -> float:
    """Return the degrees of freedom of the sum of two independent mean squares (Satterthwaite 1946)."""
    total = first + second
    if total <= 0.0:
        return max(first_df + second_df, 1.0)
    return total * total / (first * first / first_df + second * second / second_df)


def _logs(side: Mapping[str, ArrayLike]) -> dict[str, Floats]:
    arrays = {host: np.asarray(values, dtype=np.float64) for host, values in side.items()}
    if any(bool((values <= 0).any()) for values in arrays.values()):
        raise ValueError("ratios need summaries above 0")
    return {host: np.log(values) for host, values in arrays.items() if len(values)}


def _rounding(base: Mapping[str, ArrayLike], new: Mapping[str, ArrayLike], step: float) -> float:
    """Return the variance of a log summary that comes from the granularity of durations."""
    if step <= 0.0:
        return 0.0
    values = [float(np.mean(np.asarray(each, dtype=np.float64))) for side in (base, new) for each in side.values()]
    return (step / min(values)) ** 2 / 12.0


def _counts(sides: Sequence[Mapping[str, Floats]]) -> tuple[int, int]:
    first, second = (sum(len(values) for values in side.values()) for side in sides)
    return first, second


def _within(
    pairs: Sequence[tuple[Floats, Floats]],
    level: float,
    rounding: float,
    *,
    method: str = "",
    counts: tuple[int, int] | None = None,
) -> RatioEstimate | None:
    """Average the differences of hosts; the errors come from lifetimes inside hosts."""
    freedoms = [sum(len(pair[side]) - 1 for pair in pairs) for side in (0, 1)]
    if sum(freedoms) < 2 or min(freedoms) < 1:
        return None
    variances = [
        max(sum(float(((p[side] - p[side].mean()) ** 2).sum()) for p in pairs) / freedoms[side], rounding)
        for side in (0, 1)
    ]
    hosts = len(pairs)
    weights = [sum(1.0 / len(pair[side]) for pair in pairs) / hosts**2 for side in (0, 1)]
    parts = [weights[side] * variances[side] for side in (0, 1)]
    difference = float(np.mean([pair[1].mean() - pair[0].mean() for pair in pairs]))
    welch = parts[0] + parts[1], welch_freedom(parts[0], freedoms[0], parts[1], freedoms[1])
    both = float(sum(freedoms))
    pooled = sum(v * df for v, df in zip(variances, freedoms, strict=True)) / both * sum(weights), both
    probability = 0.5 + 0.5 * level
    halves = [(t_quantile(probability, df) * math.sqrt(square), df) for square, df in (welch, pooled)]
    (narrow, _), (wide, freedom) = sorted(halves)
    careful = freedoms[0] == freedoms[1] or min(freedoms) < _FREEDOM_TO_TRUST
    half = wide if careful else wide - _TOWARDS_NARROWER * (wide - narrow)
    error = half / t_quantile(probability, freedom)
    found = counts or (sum(len(p[0]) for p in pairs), sum(len(p[1]) for p in pairs))
    return _estimate(
        difference,
        error,
        freedom,
        level,
        p_value=_p(difference, error * error, freedom),
        deviations=(math.sqrt(variances[0]), math.sqrt(variances[1])),
        lifetimes=found,
        method=method or ("lifetimes" if hosts == 1 else "within-hosts"),
    )


def _across(pairs: Sequence[tuple[Floats, Floats]], level: float, rounding: float) -> RatioEstimate:
    """Take the differences of hosts as draws: hosts may react to a build each in its own way."""
    differences = np.array([pair[1].mean() - pair[0].mean() for pair in pairs])
    hosts = len(pairs)
    square = max(float(differences.var(ddof=1)), 2.0 * rounding) / hosts
    difference = float(differences.mean())
    deviations = [_deviation([pair[side] for pair in pairs]) for side in (0, 1)]
    return _estimate(
        difference,
        math.sqrt(square),
        hosts - 1.0,
        level,
        p_value=_p(difference, square, hosts - 1.0),
        deviations=(deviations[0], deviations[1]),
        lifetimes=(sum(len(p[0]) for p in pairs), sum(len(p[1]) for p in pairs)),
        method="across-hosts",
    )


def _deviation(groups: Sequence[Floats]) -> float:
    freedom = sum(len(group) - 1 for group in groups)
    squares = sum(float(((group - group.mean()) ** 2).sum()) for group in groups)
    return math.sqrt(squares / freedom) if freedom else float("nan")


def _p(difference: float, square: float, freedom: float) -> float:
    if square <= 0.0:
        return 1.0 if difference == 0.0 else 0.0
    return two_sided_p(difference / math.sqrt(square), freedom)


def _estimate(
    difference: float,
    error: float,
    freedom: float,
    level: float,
    *,
    p_value: float,
    deviations: tuple[float, float],
    lifetimes: tuple[int, int],
    method: str,
) -> RatioEstimate:
    half = t_quantile(0.5 + 0.5 * level, freedom) * error
    return RatioEstimate(
        ratio=math.exp(difference),
        low=math.exp(difference - half),
        high=math.exp(difference + half),
        error=error,
        freedom=freedom,
        p_value=p_value,
        deviations=deviations,
        lifetimes=lifetimes,
        method=method,
    )
