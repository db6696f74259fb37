"""Plans are those of the thesis, and what they promise is what comparisons then give."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from specmine.mining.comparison.plan import (
    QUANTILES,
    Costs,
    Plan,
    Variances,
    cautious,
    noise_of,
    planned,
    variances_of,
)
from specmine.mining.regression.comparison import LifetimeSample, Rule, compare
from specmine.mining.regression.ratio_estimate import ratio_estimate
from specmine.mining.regression.sample import sample_of_durations


def variances(call: float, lifetime: float, build: float | None = None) -> Variances:
    """Return variances as if they were known from many lifetimes."""
    return Variances(call=call, lifetime=lifetime, build=build, lifetimes=100, builds=10)


def made(found: Variances, costs: Costs, precision: float, level: float = 0.95) -> Plan:
    """Return a plan that exists."""
    plan = planned(found, costs, precision, level)
    assert plan is not None
    return plan


def test_the_worked_example_of_the_thesis() -> None:
    """S_E^2 4, S_B^2 1, S_V^2 0.25, w 100, b 10000: 20 calls of 20 lifetimes; builds by Student's t for a ratio."""
    plan = made(variances(4.0, 1.0, 0.25), Costs(build=10_000, restart=60, warmup=40, call=1), 0.5, level=0.99)
    assert (plan.calls, plan.lifetimes) == (20, 20)
    each = 0.25 + 1.0 / 20 + 4.0 / 400

    def half(builds: int) -> float:
        return float(stats.t.ppf(0.995, 2 * builds - 2) * math.sqrt(2 * each / builds))

    assert half(plan.builds) <= math.log(1.5) < half(plan.builds - 1)
    assert plan.half_width == pytest.approx(math.expm1(half(plan.builds)))
    assert plan.seconds == plan.builds * (10_000 + 20 * (100 + 20))


@pytest.mark.parametrize(("call", "lifetime"), [(0.04, 1e-4), (0.04, 1e-6), (1.0, 0.01), (0.01, 0.0), (0.01, -1e-4)])
def test_no_other_plan_of_one_build_is_cheaper(call: float, lifetime: float) -> None:
    """Every number of lifetimes is tried with the calls that it needs: the plan costs at most 3 % more."""
    costs = Costs(build=0, restart=2, warmup=1, call=0.001)
    plan = made(variances(call, lifetime), costs, 0.02)
    cheapest = math.inf
    for number in range(2, 2000):
        allowed = (math.log(1.02) / stats.t.ppf(0.975, 2 * number - 2)) ** 2 / 2 * number - max(lifetime, 0)
        if allowed > 0:
            cheapest = min(cheapest, number * (3 + max(2, call / allowed) * 0.001))
    assert plan.seconds <= 1.03 * cheapest
    assert plan.half_width <= 0.02 * (1 + 1e-9)


@pytest.mark.parametrize("hosts", [2, 3, 5])
def test_a_plan_over_hosts_is_as_precise_as_planned(hosts: int) -> None:
    """Hosts share the lifetimes equally; the intervals of simulated ratios have the planned width."""
    rng = np.random.default_rng(hosts)
    plan = planned(variances(0.0, 0.0004), Costs(build=0, restart=1, warmup=0, call=1), 0.02, 0.95, hosts=hosts)
    assert plan is not None and plan.lifetimes % hosts == 0
    widths = []
    for _ in range(300):
        sides = [
            {str(host): np.exp(rng.normal(0, 0.02, plan.lifetimes // hosts)) for host in range(hosts)} for _ in range(2)
        ]
        found = ratio_estimate(sides[0], sides[1], level=0.95)
        assert found is not None
        widths.append(math.log(found.high / found.low) / 2)
    assert float(np.sqrt(np.mean(np.square(widths)))) == pytest.approx(math.log1p(plan.half_width), rel=0.1)
    assert plan.half_width <= 0.02 * (1 + 1e-9)


def test_calls_that_a_program_decides_on_stay() -> None:
    """Only lifetimes are then planned."""
    costs = Costs(build=0, restart=1, warmup=0, call=0.001)
    plan = planned(variances(0.04, 1e-4), costs, 0.02, 0.95, fixed_calls=7)
    assert plan is not None and plan.calls == 7
    each = 1e-4 + 0.04 / 7
    assert stats.t.ppf(0.975, 2 * plan.lifetimes - 2) * math.sqrt(2 * each / plan.lifetimes) <= math.log(1.02)
    fewer = plan.lifetimes - 1
    assert stats.t.ppf(0.975, 2 * fewer - 2) * math.sqrt(2 * each / fewer) > math.log(1.02)


@pytest.mark.parametrize("freedom", [1, 4, 10, 60])
def test_cautious_variances_are_upper_limits_of_chi_squared(freedom: int) -> None:
    """Of lifetimes and calls together, as scipy has them."""
    found = Variances(call=0.01, lifetime=3e-4, build=None, lifetimes=99, builds=1, observed=4e-4, freedom=freedom)
    limit = 4e-4 * freedom / stats.chi2.ppf(0.2, freedom)
    assert cautious(found, 0.8).lifetime == pytest.approx(limit - 1e-4, rel=1e-9)
    assert cautious(variances(0.01, 3e-4), 0.8) == variances(0.01, 3e-4)


def test_a_precision_out_of_reach_is_no_plan() -> None:
    """Lifetimes that differ tenfold give no 0.01 %."""
    assert planned(variances(1.0, 5.0), Costs(build=0, restart=1, warmup=0, call=1), 1e-4, 0.95) is None


@pytest.mark.parametrize("summary", ["mean", "median", "p90"])
def test_the_noise_of_calls_is_that_of_simulated_summaries(summary: str) -> None:
    """Log summaries of 2,000 skewed calls vary by the noise of a sample of them, divided by 2,000."""
    rng = np.random.default_rng(1)
    calls = rng.lognormal(10, 0.3, (3000, 2000))
    values = calls.mean(axis=1) if summary == "mean" else np.quantile(calls, QUANTILES[summary], axis=1)
    simulated = 2000 * float(np.log(values).var())
    estimated = float(np.mean([noise_of(sample_of_durations(each), summary) for each in calls[:100]]))
    assert estimated == pytest.approx(simulated, rel=0.12)


def test_variances_of_builds_and_lifetimes_are_found() -> None:
    """Three levels with known variances: the mean of many estimates is near them, though builds are unbalanced."""
    rng = np.random.default_rng(2)
    found = []
    for _ in range(150):
        builds = {}
        for build in range(6):
            shift = rng.normal(0, 0.05)
            builds["h", str(build)] = [
                LifetimeSample(lifetime=str(at), host="h", sample=sample_of_durations(
                    np.exp(10 + shift + rng.normal(0, 0.03)) * rng.lognormal(0, 0.2, 300)))
                for at in range(3 + build % 3)
            ]  # fmt: skip
        one = variances_of(builds, "median", rebuilds=True)
        assert one is not None and one.build is not None
        found.append((one.call, one.lifetime, one.build))
    call, lifetime, build = np.mean(found, axis=0)
    assert call == pytest.approx(0.04 * math.pi / 2, rel=0.1)  # p (1 - p) / f**2 at the median of a normal
    assert lifetime == pytest.approx(0.0009, rel=0.1)
    assert build == pytest.approx(0.0025, rel=0.2)
    assert variances_of({("h", "a"): builds["h", "0"][:1]}, "median", rebuilds=True) is None


def test_a_planned_comparison_is_as_precise_as_planned() -> None:
    """Lifetimes and calls of the plan, simulated: intervals have the width that was asked for."""
    rng = np.random.default_rng(3)
    plan = made(variances(0.04 * math.pi / 2, 0.0004), Costs(build=0, restart=1, warmup=0, call=0.001), 0.02)
    widths = []
    for _ in range(40):
        sides = [
            [LifetimeSample(lifetime=str(at), host="", sample=sample_of_durations(
                np.exp(10 + rng.normal(0, 0.02)) * rng.lognormal(0, 0.2, plan.calls))) for at in range(plan.lifetimes)]
            for _ in range(2)
        ]  # fmt: skip
        estimate = compare(sides[0], sides[1], Rule()).estimate
        assert estimate is not None
        widths.append(math.log(estimate.high / estimate.low) / 2)
    assert np.sqrt(np.mean(np.square(widths))) == pytest.approx(math.log(1.02), rel=0.1)
