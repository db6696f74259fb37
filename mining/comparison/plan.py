"""How many builds, lifetimes and calls a comparison needs, given how they vary and what each costs.

Kalibera, Performance in Software Development Cycle (2006), section 7.3, for any summary: all variances are of log
summaries, so that precision is relative.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from specmine.mining.regression.comparison import LifetimeSample
from specmine.mining.regression.ratio_estimate import FEWEST_HOSTS
from specmine.mining.regression.sample import FEWEST_CALLS, SUMMARIES, Sample, mean, quantile, variance
from specmine.mining.regression.sample_size import FEWEST, Counts, optimal_counts
from specmine.mining.regression.variance_components import Leaf, components
from specmine.mining.statistics.distributions import chi2_sf
from specmine.mining.statistics.student_t import t_quantile

QUANTILES = {"median": 0.5, "p90": 0.9, "p99": 0.99}
PLANNED = ("mean", *QUANTILES)
"""Summaries whose variance within a lifetime is known."""
MOST = 100_000
"""A plan of more lifetimes or builds is no plan."""
MOST_CALLS = 10_000_000
TRIED = 50
"""Lifetimes up to which every number is tried."""
_NARROW, _FARTHEST = 2.0, 0.2
"""The density at a quantile is taken over so many standard errors of its rank, at most a share of what lies beyond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variances:
    """How log summaries vary; shares of the summary, squared."""

    call: float
    """What one call contributes: divided by the calls of a lifetime it is the variance inside lifetimes."""
    lifetime: float
    """Between lifetimes of one build, beyond what their calls explain; unbiased, possibly negative."""
    build: float | None
    """Between builds of one version; None where builds are not repeated."""
    lifetimes: int
    builds: int
    observed: float = math.nan
    """Between lifetimes of one build, with what their calls explain."""
    freedom: int = 0
    """Degrees of freedom of ``observed``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What each thing costs, in seconds."""

    build: float
    restart: float
    warmup: float
    call: float
    """Of running time per call of the function."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to run on each side."""

    builds: int
    lifetimes: int
    """Of each build."""
    calls: int
    """Of each lifetime, after its warm-up."""
    half_width: float
    """Expected half-width of the interval of the ratio, as a share."""
    seconds: float
    """Cost of one side."""
    optimal: Counts
    """Counts of the narrowest interval for any cost; infinite where a level adds no variance."""


def variances_of(
    builds: Mapping[tuple[str, str], Sequence[LifetimeSample]], summary: str, *, rebuilds: bool
) -> Variances | None:
    """Estimate how a function varies.

    Parameters
    ----------
    builds : mapping
        Host and build to the lifetimes of one function.
    summary : str
        One of ``PLANNED``.
    rebuilds : bool
        Whether the builds were compiled from one version, so that what differs between them is random.

    Returns
    -------
    Variances or None
        None if no build has two lifetimes with the summary.
    """
    groups = []
    for (host, build), lifetimes in builds.items():
        rows = [
            (math.log(value), noise_of(each.sample, summary), each.sample.calls)
            for each in lifetimes
            if each.sample.calls >= max(FEWEST_CALLS[summary], 2) and (value := SUMMARIES[summary](each.sample)) > 0.0
        ]
        if rows:
            groups.append(((host, build), np.array(rows)))
    freedom = sum(len(rows) - 1 for _, rows in groups)
    if freedom < 1:
        return None
    every = np.concatenate([rows for _, rows in groups])
    leaves = [
        Leaf(labels=labels, calls=len(rows), mean=float(rows[:, 0].mean()),
             variance=float(rows[:, 0].var(ddof=1)) if len(rows) > 1 else 0.0)
        for labels, rows in groups
    ]  # fmt: skip
    _, between, within = components(leaves)
    return Variances(
        call=float(every[:, 1].mean()),
        lifetime=within.variance - float((every[:, 1] / every[:, 2]).mean()),
        build=max(0.0, between.variance) if rebuilds and math.isfinite(between.variance) else None,
        lifetimes=len(every),
        builds=len({build for (_, build), _ in groups}),
        observed=within.variance,
        freedom=freedom,
    )


def cautious(found: Variances, certainty: float) -> Variances:
    """Return variances of which the one between lifetimes is an upper limit.

    Parameters
    ----------
    found : Variances
        As estimated from a pilot of few lifetimes.
    certainty : float
        How surely the true variance is not larger, such as 0.8.

    Notes
    -----
    A plan from the estimate itself is too small in half of the cases. Browne (On the use of a pilot sample for sample
    size determination, 1995) plans with the upper limit of a chi-squared interval instead.
    """
    if found.freedom < 1 or not found.observed > 0.0:
        return found
    larger = found.freedom / _chi2_quantile(1.0 - certainty, found.freedom) - 1.0
    return replace(found, lifetime=found.lifetime + larger * found.observed)


def _chi2_quantile(probability: float, freedom: int) -> float:
    low, high = 0.0, float(freedom)
    while 1.0 - chi2_sf(high, freedom) < probability:
        high *= 2.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if 1.0 - chi2_sf(middle, freedom) < probability else (low, middle)
    return high


def noise_of(sample: Sample, summary: str) -> float:
    """Return the variance of the log summary of independent calls, times their number.

    Notes
    -----
    Of a quantile p (1 - p) / (f x)**2 with the density f at x, taken as the slope of the sample's own quantiles.
    """
    if summary == "mean":
        return variance(sample) / mean(sample) ** 2
    p = QUANTILES[summary]
    reach = min(_NARROW * math.sqrt(p * (1.0 - p) / sample.calls), (1.0 - _FARTHEST) * min(p, 1.0 - p))
    slope = (quantile(sample, p + reach) - quantile(sample, p - reach)) / (2.0 * reach)
    return p * (1.0 - p) * (slope / quantile(sample, p)) ** 2


def planned(
    found: Variances,
    costs: Costs,
    precision: float,
    level: float,
    fewest: tuple[int, int] = (FEWEST, FEWEST),
    *,
    hosts: int = 1,
    fixed_calls: int | None = None,
) -> Plan | None:
    """Return the cheapest plan by the optimal counts that reaches a precision.

    Parameters
    ----------
    found : Variances
    costs : Costs
    precision : float
        Half-width of the interval of new over base, as a share such as 0.01. Both sides are run alike.
    level : float
        Confidence of the interval.
    fewest : pair of int
        Calls and lifetimes that are never undercut, so that the comparison itself can estimate variances.
    hosts : int
        Hosts that run equal parts of both sides. From ``FEWEST_HOSTS`` on they are what repeats.
    fixed_calls : int, optional
        Calls of a lifetime, where the program decides on them.

    Returns
    -------
    Plan or None
        None if even ``MOST`` lifetimes or builds would not reach it.

    Notes
    -----
    Calls and lifetimes are the optimal ones, which do not depend on the precision; the coarsest level that repeats is
    raised until the interval is narrow enough. Its quantile is Student's t, not the normal one of the thesis: with few
    lifetimes, one more of them is worth more than it says. So up to ``TRIED`` lifetimes of one build, every number is
    tried with the calls that it needs, and the cheapest is taken.
    """
    lifetime, build = max(found.lifetime, 0.0), found.build or 0.0
    start = max(costs.restart + costs.warmup, costs.call)
    optimal = optimal_counts(found.call, found.lifetime, build, warmup=start / costs.call,
                             build_cost=costs.build / costs.call)  # fmt: skip
    wanted = _Wanted(precision=precision, level=level, hosts=hosts)
    calls, lifetimes = optimal.rounded
    if fixed_calls is not None:
        calls = fixed_calls
    if build > 0.0:
        calls_each = fixed_calls or max(fewest[0], int(min(calls, MOST_CALLS)))
        each = max(fewest[1], int(min(lifetimes, MOST)))
        variance_of_build = build + lifetime / each + found.call / (each * calls_each)
        builds = _fewest(variance_of_build, wanted)
        return _plan(builds, each, calls_each, found, costs, wanted, optimal) if builds else None
    plans = []
    calls = calls if fixed_calls is not None else max(calls, fewest[0])
    least = wanted.whole(max(fewest[1], FEWEST * hosts))
    if math.isfinite(calls) and (number := _fewest(lifetime + found.call / calls, wanted)):
        plans.append(_plan(1, max(number, least), int(calls), found, costs, wanted, optimal))
    for number in range(least, TRIED * hosts + 1, hosts) if fixed_calls is None else ():
        left = number * wanted.variance_allowed(number) - lifetime
        if left > 0.0 and found.call / left <= MOST_CALLS:
            needed = max(fewest[0], math.ceil(found.call / left))
            plans.append(_plan(1, number, needed, found, costs, wanted, optimal))
    return min(plans, key=lambda each: (each.seconds, each.lifetimes), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """How narrow the interval must be, and over how many hosts its units are spread."""

    precision: float
    level: float
    hosts: int

    def whole(self, number: int) -> int:
        """Return a number that hosts can share, not below this one."""
        return -(-number // self.hosts) * self.hosts

    def quantile(self, number: int) -> float:
        """Return the quantile of t with so many units a side, as ``ratio_estimate`` counts degrees of freedom."""
        freedom = self.hosts - 1.0 if self.hosts >= FEWEST_HOSTS else 2.0 * (number - self.hosts)
        return t_quantile(0.5 + 0.5 * self.level, freedom)

    def variance_allowed(self, number: int) -> float:
        """Return the variance of one side's centre that gives an interval of this half-width."""
        return (math.log1p(self.precision) / self.quantile(number)) ** 2 / 2.0


def _fewest(variance_each: float, wanted: _Wanted) -> int:
    """Return how many units of this variance a side needs, 0 if too many."""
    least = number = FEWEST * wanted.hosts
    while variance_each / number > wanted.variance_allowed(number):
        jump = math.ceil(variance_each / wanted.variance_allowed(number))
        number = wanted.whole(max(number + 1, min(2 * number, jump)))
        if number > MOST:
            return 0
    while number > least and variance_each / (number - wanted.hosts) <= wanted.variance_allowed(number - wanted.hosts):
        number -= wanted.hosts
    return number


def _plan(
    builds: int, lifetimes: int, calls: int, found: Variances, costs: Costs, wanted: _Wanted, optimal: Counts
) -> Plan:
    repeated = builds if (found.build or 0.0) > 0.0 else lifetimes
    spread = (found.build or 0.0) / builds + max(found.lifetime, 0.0) / (builds * lifetimes)
    spread += found.call / (builds * lifetimes * calls)
    half = wanted.quantile(repeated) * math.sqrt(2.0 * spread)
    return Plan(
        builds=builds,
        lifetimes=lifetimes,
        calls=calls,
        half_width=math.expm1(half),
        seconds=builds * (costs.build + lifetimes * (costs.restart + costs.warmup + calls * costs.call)),
        optimal=optimal,
    )
