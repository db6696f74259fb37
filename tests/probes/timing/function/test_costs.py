"""What hits cost the program, and what for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from specmine.model.batch import Prices, Watch
from specmine.model.observation import Kind
from specmine.model.probe_kind import PROBE_KINDS
from specmine.probes.timing.function.costs import LEAST_HITS, burst_hits, costs_ns
from specmine.probes.timing.function.return_sites import Caller, ReturnSites
from specmine.probes.timing.function.slot import Hits
from specmine.probes.timing.function.timed_function import TimedFunction

PRICES = Prices(count_ns=700.0, time_ns=1300.0, path_ns=2300.0, stepped_ns=9000.0, sample_ns=5000.0, bias_ns=400.0)


def timed(
    kind: Kind = Kind.TIME,
    *,
    by_site: bool = True,
    stepped: bool = False,
    cost_ns: float = 0.0,
    returns: ReturnSites | None = None,
) -> TimedFunction:
    """Return what the costs read of a timed function, in warm caches."""
    return cast(
        "TimedFunction",
        SimpleNamespace(
            probe=PROBE_KINDS[kind],
            handlers=SimpleNamespace(coldness=1.0),
            sampled=False,
            stepped=stepped,
            by_site=by_site,
            watch=Watch(function="f", kind=kind, burst_hits=4000, cost_ns=cost_ns),
            returns=returns or ReturnSites(),
        ),
    )


def test_each_hit_is_charged_once() -> None:
    """Ten timed calls make twenty hits; three more calls return to unknown places, two are inner, five hits pass by."""
    hits = Hits(hits=30, calls=13, timed=10, inner=2, unlearnt=3)
    costs = costs_ns(timed(), hits, PRICES)
    assert costs == pytest.approx({"timed": 13_000.0, "unlearnt": 2100.0, "untimed": 1400.0, "passing": 3500.0})
    assert sum(costs.values()) == pytest.approx(10 * PRICES.time_ns + (30 - 2 * 10) * PRICES.count_ns)


def test_replaced_return_addresses_are_passed_by_no_other_call() -> None:
    """What is left over there are calls whose return was not wanted."""
    costs = costs_ns(timed(by_site=False), Hits(hits=30, calls=18, timed=10), PRICES)
    assert costs["passing"] == 0.0
    assert costs["untimed"] == pytest.approx(10 * PRICES.count_ns)


def test_steps_and_counts_have_their_price() -> None:
    """A single-stepped entry costs more each time, and a count is for counting."""
    assert costs_ns(timed(Kind.COUNT, stepped=True), Hits(hits=4, calls=4), PRICES) == {"counting": 4 * 9700.0}
    stepped = costs_ns(timed(stepped=True), Hits(hits=4, calls=2, timed=2), PRICES)
    assert stepped["timed"] == pytest.approx(2 * (1300.0 + 9000.0))


def test_only_the_returns_that_are_single_stepped_pay_for_a_step() -> None:
    """Four of ten calls return to such a site; where more hits step than calls end, others pass there."""
    costs = costs_ns(timed(), Hits(hits=20, calls=10, timed=10, stepped=4), PRICES)
    assert costs["timed"] == pytest.approx(10 * 1300.0 + 4 * 9000.0)
    costs = costs_ns(timed(stepped=True), Hits(hits=25, calls=10, timed=10, stepped=13), PRICES)
    assert costs["timed"] == pytest.approx(10 * (1300.0 + 2 * 9000.0))
    assert costs["passing"] == pytest.approx(5 * 700.0 + 3 * 9000.0)  # not the step of the entry


def test_counters_read_apart_give_no_negative_cost() -> None:
    """A call may have ended whose entry was reported before."""
    costs = costs_ns(timed(), Hits(hits=3, calls=1, timed=2), PRICES)
    assert min(costs.values()) == 0.0
    assert sum(costs.values()) == pytest.approx(2 * PRICES.time_ns)


def test_a_first_look_takes_no_more_hits_than_its_cost_allows() -> None:
    """Its planner took them for ordinary ones; an on-phase without a cost takes all hits that it was given."""
    planned = 2000 * PRICES.time_ns
    assert burst_hits(timed(cost_ns=planned), PRICES) == 4000
    assert burst_hits(timed(stepped=True), PRICES) == 4000
    allowed = burst_hits(timed(stepped=True, cost_ns=planned), PRICES)
    assert allowed == pytest.approx(4000 * 1300 / (1300 + 9000), abs=1)
    assert burst_hits(timed(stepped=True, cost_ns=planned / 10), PRICES) == LEAST_HITS


def test_return_sites_that_are_single_stepped_count_by_their_share() -> None:
    """One of two sites steps, so half of the returns do; where return addresses are replaced none does."""
    returns = ReturnSites()
    for offset, stepped in ((16, True), (32, False)):
        returns.learn(cast("Caller", (None, offset)), offset, stepped=stepped)
    planned = 2000 * PRICES.time_ns
    allowed = burst_hits(timed(cost_ns=planned, returns=returns), PRICES)
    assert allowed == pytest.approx(4000 * 1300 / (1300 + 4500), abs=1)
    assert burst_hits(timed(cost_ns=planned, returns=returns, by_site=False), PRICES) == 4000
