"""When plans are made: what moves is planned for at once, or a little later while our own CPU time must be saved."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specmine.daemon.config.settings import MS, SECOND, Settings
from specmine.daemon.controller.actions import PLAN_CHECKS_NS, PLAN_IN_DEBT_NS, PLAN_MOVED_NS, act
from specmine.daemon.controller.decide import decide
from specmine.daemon.controller.events import Arrived
from specmine.daemon.controller.phase import State
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.loop import run
from specmine.daemon.worker.process import InlineWorker
from specmine.model.batch import Batch
from tests.support.planted import unimodal
from tests.support.simulated import FakeClock, SimulatedSource

SETTINGS = Settings(window_ns=2 * SECOND, limit_ns=20 * SECOND)


def under_pressure(pressure: float) -> ControllerState:
    """Return the state after ten seconds with so much pressure, planned just now."""
    clock = FakeClock()
    source = SimulatedSource((unimodal("f", rate=5_000.0), unimodal("g", rate=5_000.0)), clock)
    state = run(source, SETTINGS, clock, InlineWorker(), deadline_ns=10 * SECOND)
    cost = replace(state.agent_cost, pressure=pressure)
    return replace(state, agent_cost=cost, planned_ns=state.now_ns, plan_by_ns=0, reasoned_ns=state.now_ns)


def moved(state: ControllerState, after_ns: int) -> ControllerState:
    """Let a function move on at some time."""
    key, function = next(iter(state.functions.items()))
    before, now_ns = state.functions, state.now_ns + after_ns
    turned = function.moved(State.UNSTABLE if function.state is not State.UNSTABLE else State.WAITING, None, now_ns)
    after, _ = act(replace(state, now_ns=now_ns, functions={**before, key: turned}), before)
    return after


@pytest.mark.parametrize(("pressure", "waits_ns"), [(0.0, 0), (0.5, PLAN_MOVED_NS // 2), (1.0, PLAN_MOVED_NS)])
def test_what_moved_is_planned_for_soon(pressure: float, waits_ns: int) -> None:
    """Without pressure at once, else by a moment that is not forgotten although nothing else happens."""
    state = under_pressure(pressure)
    after = moved(state, 100 * MS)
    if not waits_ns:
        assert after.planned_ns == after.now_ns
        return
    assert after.planned_ns == state.planned_ns
    assert after.plan_by_ns == state.planned_ns + waits_ns
    early, _ = act(replace(after, now_ns=after.plan_by_ns - 1), after.functions)
    assert early.planned_ns == state.planned_ns
    due, _ = act(replace(early, now_ns=after.plan_by_ns), early.functions)
    assert due.planned_ns == after.plan_by_ns
    assert due.plan_by_ns == 0


def test_nothing_moved_is_planned_for_rarely_under_pressure() -> None:
    """Ten seconds pass where a second does without pressure."""
    for pressure, planned in ((0.0, True), (1.0, False)):
        state = under_pressure(pressure)
        assert state.batch is not None
        later, _ = decide(state, Arrived(batch=Batch(now_ns=state.now_ns + 1_500 * MS, spent=state.batch.spent)))
        assert (later.planned_ns > state.planned_ns) is planned


@pytest.mark.parametrize("stretch", [1.0, 4.0])
@pytest.mark.parametrize(("due_ns", "planned_ns"), [(SECOND, PLAN_CHECKS_NS), (5 * SECOND, 5 * SECOND)])
def test_checks_are_planned_for_in_time_however_little_of_our_own_time_is_left(
    due_ns: int, planned_ns: int, stretch: float
) -> None:
    """Plans come 10 to 40 s apart then, and what is slow until the next one would be seen by no window."""
    state = under_pressure(1.0)
    cost = replace(state.agent_cost, stretch=stretch)
    state = replace(state, agent_cost=cost, check_ns=state.now_ns + due_ns)
    early, _ = act(replace(state, now_ns=state.now_ns + planned_ns - 1), state.functions)
    assert early.planned_ns == state.planned_ns
    due, _ = act(replace(state, now_ns=state.now_ns + planned_ns), state.functions)
    assert due.planned_ns == state.now_ns + planned_ns
    assert due.check_ns != state.check_ns


@pytest.mark.parametrize(("debt_s", "apart_ns"), [(0.1, PLAN_IN_DEBT_NS), (4.0, 4 * SECOND), (60.0, 10 * SECOND)])
def test_a_debt_is_planned_for_as_soon_as_it_can_be_paid_back(debt_s: float, apart_ns: int) -> None:
    """What changes nothing for a minute is not decided anew twice a second: that took 5 % of a CPU."""
    state = under_pressure(1.0)
    account = replace(state.account, balance_ns=-debt_s * state.account.rate)
    state = replace(state, account=account, check_ns=0)
    early, _ = act(replace(state, now_ns=state.planned_ns + apart_ns - MS), state.functions)
    assert early.planned_ns == state.planned_ns
    due, _ = act(replace(state, now_ns=state.planned_ns + apart_ns), state.functions)
    assert due.planned_ns == due.now_ns
