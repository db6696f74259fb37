"""A function that is slow if and only if it reaches a callee, on one path, is explained by that at a small budget."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from specmine.daemon.config.settings import Settings
from specmine.daemon.controller.allocation.looks_inside import with_looks
from specmine.daemon.controller.allocation.means import Means, Plan
from specmine.daemon.controller.call_counts import ProbeState
from specmine.daemon.controller.explanation import explained, job_for
from specmine.daemon.controller.function import ExplanationState, FunctionState, Identity
from specmine.daemon.controller.history import with_observation
from specmine.daemon.controller.inference import InferenceState
from specmine.daemon.controller.phase import Phase, State
from specmine.daemon.controller.sampling.profile import Profile
from specmine.daemon.worker.jobs import run_job
from specmine.mining.assertions.explanation import Explanation
from specmine.mining.borders.inference import Inference
from specmine.model.batch import Prices
from specmine.model.buckets import bucket_of
from specmine.model.function import Function
from tests.support.patience import patient
from tests.support.source_driver import counts_of, driven, running

Programs = Callable[..., Path]

SLOW_NS = 130_000
"""Calls that reach miss() take 200 us, others 50."""
RATES = {"request": 3500.0, "parse": 3500.0, "miss": 900.0, "render": 3500.0}
PRICES = Prices(count_ns=700, time_ns=1300, path_ns=2300, stepped_ns=9000, sample_ns=5000, bias_ns=400)
INCOME_NS = 4e6
"""What 1 % of two fifths of a CPU is in a second: the program spins for so long."""
REST_S = 0.3
"""The daemon's loop rests as long, so it learns of nothing earlier."""


def finished(function: Function, caller: str, state: State) -> FunctionState:
    """Return a function that was learned: where its time goes is known, and what explains it is not."""
    edge = int(bucket_of(SLOW_NS))
    chain = Inference(chain=10, start_ns=0, end_ns=1, stable=True)
    nothing = Explanation(borders=(edge,), bias_ns=0.0, class_calls=(3, 1), behaviours=(), paths=(), why="one path")
    return FunctionState(
        identity=Identity(function=function),
        phase=Phase(state=state),
        profile=Profile(samples=9, inclusive_ns=1e9, callers=((caller, 1e9),)),
        probe=ProbeState(rate=RATES[function.name]),
        explanation=ExplanationState(result=nothing if state is State.UNEXPLAINED else None),
        inference=InferenceState(chain=chain, learned=replace(chain, borders=(cast(Any, SimpleNamespace(edge=edge)),))),
    )


@pytest.mark.kernel
def test_what_a_callee_decides_is_found_at_the_default_budget(program: Programs) -> None:
    """Timed together in planned on-phases, the calls say: slow are those that reach miss(). It takes most of them."""
    settings = Settings()
    with running(program("misses"), 600) as child, driven(child.pid, *RATES, isolate=False) as driver:
        keys = {name: driver.key(name) for name in RATES}
        functions = {
            name: finished(
                driver.functions[key], keys["request"], State.UNEXPLAINED if name == "request" else State.SINGLE
            )
            for name, key in keys.items()
        }
        function = functions["request"]
        means = Means(budget=INCOME_NS, income=INCOME_NS, cash=INCOME_NS, prices=PRICES, slow_links=False, now_ns=1)
        made = with_looks(tuple(functions.values()), Plan(left=INCOME_NS, cash=INCOME_NS), means, settings)
        assert set(made.watches) == set(keys.values())
        for watch in made.watches.values():
            driver.source.apply(watch)
        end, job, taken = time.monotonic() + patient(180), None, 0
        while job is None:
            assert time.monotonic() < end, f"{function.history}"
            driver.step()
            time.sleep(REST_S)
            fresh, taken = driver.observations[taken:], len(driver.observations)
            for each in (one for one in fresh if one.function == function.key):
                function = replace(function, history=with_observation(function.history, each, settings.mining))
            job = job_for(function, settings, ("misses",), 1)
        truth = counts_of(child)
    alone = replace(job, observations=tuple(replace(each, inside=()) for each in job.observations))
    assert run_job(alone).why, "all calls come over one path"
    function = explained(function, run_job(job), 1, settings)
    assert function.state is State.EXPLAINED
    result = function.explanation.result
    assert result is not None
    assert {each.expression for each in result.behaviours} == {"calls miss", "not calls miss"}
    sets = [each for one in job.observations for part in one.inside for each in part.sets]
    took = Counter[str]()
    for kind in (one for one in sets if "miss" in [callee.callee.name for callee in one.callees]):
        for callee in kind.callees:  # neighbours take the CPU away: what runs is compared
            away_ns = callee.waiting_ns.total + callee.blocked_ns.total
            took[callee.callee.name] += callee.time_ns.total - away_ns
    true = {name: int(str(truth[name])) for name in ("parse", "miss", "render")}
    assert set(took) == set(true)
    for name, true_ns in true.items():
        assert took[name] / took.total() == pytest.approx(true_ns / sum(true.values()), abs=0.1)
