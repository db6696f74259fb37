"""Utility is nothing where a lifetime was observed enough, and comes back with the next one."""

from __future__ import annotations

from dataclasses import replace

from specmine.daemon.config.settings import Settings
from specmine.daemon.controller.call_counts import ProbeState
from specmine.daemon.controller.function import FunctionState, Identity
from specmine.daemon.controller.history import History
from specmine.daemon.controller.inference import InferenceState
from specmine.daemon.controller.phase import Phase, State
from specmine.daemon.controller.scheduler import Means, plan, utility
from specmine.mining.assertions.checks import Verification
from specmine.mining.borders.inference import Inference
from specmine.mining.regression.lifetime_utility import Lifetimes, with_window
from specmine.model.batch import Lifetime, Prices
from specmine.model.function import Function
from tests.support.simulated import SECOND

FUNCTION = Function(build_id="b", offset=1, name="f", module="m", in_program=True)
PRICES = Prices(count_ns=700, time_ns=1300, path_ns=2300, stepped_ns=9000, sample_ns=5000, bias_ns=400)
NOW_NS = 1000 * SECOND


def running(*names: str, build: str = "b") -> tuple[Lifetime, ...]:
    """Return lifetimes that run now."""
    return tuple(
        Lifetime(id=each, pid=1, executable="/m", build_id=build, start_ns=NOW_NS - 9 * SECOND, processes=1)
        for each in names
    )


def learned() -> FunctionState:
    """Return a function whose lifetimes differ by far more than their windows; its chain has become old."""
    seen = Lifetimes()
    for number in range(6):
        for window in range(4):
            seen = with_window(seen, str(number), 10 + 0.1 * (number % 3) + 0.001 * (window % 2))
    chain = Inference(chain=10, start_ns=100 * SECOND, end_ns=200 * SECOND, stable=True)
    return FunctionState(
        identity=Identity(function=FUNCTION),
        phase=Phase(state=State.SINGLE),
        probe=ProbeState(rate=20_000.0),
        history=History(lifetimes=seen),
        inference=InferenceState(chain=chain, learned=chain),
        verification=Verification(checked_ns=NOW_NS - SECOND),
    )


def test_utility_follows_the_lifetimes_that_run() -> None:
    """One seen enough: 0. Another one, or none function: what its age says. Violated: all."""
    function = learned()
    assert utility(function, NOW_NS) == 1.0
    assert utility(function, NOW_NS, running("5")) == 0.0
    assert utility(function, NOW_NS, running("5", "6")) == 0.5
    assert utility(function, NOW_NS, running("6")) == 1.0
    assert utility(function, NOW_NS, running("5") + running("x", build="other")) == 0.0
    assert utility(function, NOW_NS, running("x", build="other")) == 1.0
    assert utility(replace(function, verification=Verification(violations=1)), NOW_NS, running("5")) == 1.0


def test_it_is_not_learned_again_but_its_check_is_planned() -> None:
    """Between two checks its probes stay off; once a check is due they are attached."""
    means = Means(
        budget=1e7, income=1e7, cash=1e8, prices=PRICES, slow_links=False, now_ns=NOW_NS, running=running("5")
    )
    function = learned()
    assert plan({FUNCTION.key: function}, means, Settings()).watches == {}
    assert FUNCTION.key in plan({FUNCTION.key: function}, replace(means, running=running("6")), Settings()).watches
    due = replace(function, verification=Verification(checked_ns=NOW_NS - 61 * SECOND))
    assert FUNCTION.key in plan({FUNCTION.key: due}, means, Settings()).watches
