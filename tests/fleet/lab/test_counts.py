"""Counts come from what a pilot showed, and the comparisons that follow are as precise as they promise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from specmine.fleet.lab.benchmark import Benchmark
from specmine.fleet.lab.counts import Pilot, PilotRun, with_counts
from specmine.fleet.lab.results import FunctionResult
from specmine.model.errors import NoData
from tests.support.labs import benchmark

_COSTS = {"restart": 0.05}


def _run(build: str, rng: np.random.Generator, *, making: int = 0, shift: float = 0.0, calls: int = 400) -> PilotRun:
    durations = 1e5 * math.exp(shift + rng.normal(0, 0.004)) * rng.lognormal(0, 0.1, calls)
    found = FunctionResult(function="f", module="", warmup=0, rate=None, durations_ns=durations, cells=None)
    return PilotRun(build=build, making=making, seconds=0.06 + durations.sum() * 1e-9, found=[found])


def _wanted(**given: Any) -> Benchmark:
    return benchmark(**{"calls": None, "lifetimes": None, "rebuilds": None, "warm_up": None} | given)


def _pilot(number: int = 30, **more: Any) -> Pilot:
    rng = np.random.default_rng(1)
    return Pilot(runs=[_run(label, rng) for _ in range(number) for label in ("v1", "v2")], **more)


def test_calls_are_the_optimal_ones() -> None:
    """Near sqrt(w S_E^2 / S_B^2) by hand; twice as costly starts, longer runs; a higher precision, more runs."""
    chosen, plan = with_counts(_wanted(**_COSTS), _pilot(), 1)
    noise = (0.1**2) * math.pi / 2.0
    by_hand = math.sqrt(0.05 / 1e-4 * noise / 0.004**2)
    assert chosen.calls is not None and by_hand / 2 <= chosen.calls <= by_hand * 2, "there the cost is flat"
    assert chosen.warm_up == 0 and chosen.rebuilds == 1
    assert plan["pilot_runs"] == 60 and plan["decided_by"]["function"] == "f"
    longer, _ = with_counts(_wanted(restart=1.0), _pilot(), 1)
    assert longer.calls is not None and longer.calls > 2.5 * chosen.calls
    finer, _ = with_counts(_wanted(precision=0.0025, **_COSTS), _pilot(), 1)
    assert finer.lifetimes is not None and chosen.lifetimes is not None and finer.lifetimes > 4 * chosen.lifetimes


def test_what_is_given_stays() -> None:
    """Counts, costs; without a pilot the plan says that the precision is not known."""
    chosen, plan = with_counts(_wanted(lifetimes=7, calls=90), None, 2)
    assert (chosen.lifetimes, chosen.calls, chosen.rebuilds) == (7, 90, 1)
    assert "not known" in plan["notes"][0]
    fixed, _ = with_counts(_wanted(calls=90, **_COSTS), _pilot(), 1)
    assert fixed.calls == 90
    untold, plan = with_counts(_wanted(builds={"v1": "a", "v2": "b"}, **_COSTS), _pilot(), 1)
    assert untold.calls == 400 and "{calls}" in plan["notes"][0]


def test_a_pilot_of_few_runs_makes_a_larger_plan() -> None:
    """How runs differ is hardly known from three of each: the plan allows for that."""
    sizes = {number: [] for number in (3, 30)}  # type: dict[int, list[int]]
    for seed in range(12):
        rng = np.random.default_rng(seed)
        for number, found in sizes.items():
            pilot = Pilot(runs=[_run(label, rng) for _ in range(number) for label in ("v1", "v2")])
            found.append(with_counts(_wanted(calls=400), pilot, 1)[0].lifetimes or 0)
    assert float(np.median(sizes[3])) > float(np.median(sizes[30]))


def test_hosts_share_the_runs() -> None:
    """Their number is a multiple of the hosts."""
    chosen, plan = with_counts(_wanted(**_COSTS), _pilot(), 2)
    assert chosen.lifetimes is not None and chosen.lifetimes % 2 == 0
    assert "hosts are what repeats" in " ".join(with_counts(_wanted(**_COSTS), _pilot(), 3)[1]["notes"])
    assert plan["hosts"] == 2


def test_makings_that_differ_are_planned_too() -> None:
    """Each recipe gave programs 1 % apart: builds repeat. Where it gave the same program, one is enough."""
    rng = np.random.default_rng(2)
    recipes = {"v1": {"recipe": "x", "command": "a {calls}"}, "v2": {"recipe": "y", "command": "a {calls}"}}
    wanted = _wanted(builds=recipes, build_cost=10.0, precision=0.02, **_COSTS)
    shifts = {(label, making): rng.normal(0, 0.01) for label in ("v1", "v2") for making in range(3)}
    runs = [_run(*key[:1], rng, making=key[1], shift=shift) for _ in range(6) for key, shift in shifts.items()]
    chosen, _ = with_counts(wanted, Pilot(runs=runs, build_seconds=10.0, makings_differ=True), 1)
    assert chosen.rebuilds is not None and chosen.rebuilds > 2
    one, plan = with_counts(wanted, Pilot(runs=runs, build_seconds=10.0), 1)
    assert one.rebuilds == 1 and "same program" in " ".join(plan["notes"])


def test_a_pilot_that_shows_nothing() -> None:
    """No call, or lifetimes so different that no number of them would do."""
    with pytest.raises(NoData, match="no call"):
        with_counts(_wanted(), Pilot(runs=[]), 1)
    rng = np.random.default_rng(3)
    wild = Pilot(runs=[_run(label, rng, shift=rng.normal(0, 9)) for _ in range(3) for label in ("v1", "v2")])
    with pytest.raises(NoData, match="no number of runs"):
        with_counts(_wanted(precision=1e-4), wild, 1)
