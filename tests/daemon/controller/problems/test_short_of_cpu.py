"""Which functions show first that their program is short of CPU time, and which program a function belongs to."""

from __future__ import annotations

from dataclasses import replace

from specmine.daemon.controller.allocation.account import BudgetAccount
from specmine.daemon.controller.decide import decide
from specmine.daemon.controller.events import Arrived
from specmine.daemon.controller.function import FunctionState, Identity
from specmine.daemon.controller.problems.short_of_cpu import (
    MOST_TIMED,
    TIMED_NS,
    first_to_show,
    others_of,
    shortage_of,
)
from specmine.daemon.controller.sampling.profile import Profile
from specmine.daemon.controller.violations.cpu_shortage import NEWEST, Shortage
from specmine.model.batch import Batch
from specmine.model.host.cpu_shortage import CpuShortage
from tests.support.changing import lived
from tests.support.planned import FUNCTION, NOW_NS, learned
from tests.support.planted import Planted, Way
from tests.support.simulated import SECOND

SHORT = Shortage(
    newest=(CpuShortage(program="shop", waiting=0.9),),
    usual=CpuShortage(program="shop", waiting=0.1),
    looks=50,
    since_ns=NOW_NS - 10 * SECOND,
)


def function(place: int, *programs: str, loop_bottom: bool = False) -> FunctionState:
    """Return a function that was learned, with more of the time the higher its place."""
    one = replace(FUNCTION, offset=place)
    profile = Profile(inclusive_ns=place * 1e6, loop_bottom=loop_bottom)
    return replace(learned(), identity=Identity(function=one, programs=programs), profile=profile)


def test_those_with_most_time_are_timed_first_for_a_while() -> None:
    """Only what is known, of that program, and works."""
    functions = {each.key: each for each in (function(place, "shop") for place in range(1, 9))}
    waits, other = function(20, "shop", loop_bottom=True), function(21, "redis")
    functions |= {waits.key: waits, other.key: other}
    found = first_to_show({"shop": SHORT}, functions, NOW_NS)
    assert sorted(functions[key].function.offset for key in found) == [9 - MOST_TIMED, 6, 7, 8]
    assert not first_to_show({"shop": SHORT}, functions, NOW_NS + TIMED_NS)
    assert not first_to_show({"shop": replace(SHORT, since_ns=0)}, functions, NOW_NS)


def test_a_function_is_short_of_cpu_time_with_its_program() -> None:
    """One of several programs, or that was never observed, with the one that lacks it."""
    calm = replace(SHORT, since_ns=0, newest=(CpuShortage(program="redis", waiting=0.2),))
    known = {"redis": calm, "shop": SHORT}
    assert shortage_of(function(1, "redis"), known) is calm
    assert shortage_of(function(1, "shop"), known) is SHORT
    assert shortage_of(function(1, "redis", "shop"), known) is SHORT
    assert shortage_of(function(1), known) is SHORT
    assert shortage_of(function(1), {}) is None


def test_others_are_what_the_host_does_besides_the_programs() -> None:
    """Never less than nothing: the two are read at different moments."""
    account = BudgetAccount(cpu_rate=5e8, usual_cpu_rate=6e8, host_rate=2e9, usual_host_rate=5e8)
    assert others_of(account) == (1.5, 0.0)


def test_functions_are_planned_for_at_once_when_it_begins() -> None:
    """The next plan would come up to ten seconds later."""
    way = Way(callers="main", weight=1.0, classes=((1.0, 80_000.0, 0.2),))
    state = lived((Planted(name="inner", rate=500.0, own=0.6, inclusive=0.6, ways=(way,)),), 60.0).state
    assert state.batch is not None

    def looked(waiting: float, looks: int) -> None:
        nonlocal state
        for _ in range(looks):
            look = CpuShortage(program="app", waiting=waiting)
            batch = Batch(now_ns=state.now_ns + 1, spent=state.batch.spent if state.batch else Batch(now_ns=0).spent)
            state, _ = decide(state, Arrived(batch=replace(batch, cpu_shortages=(look,))))

    looked(0.1, 20)
    planned_ns = state.planned_ns
    assert planned_ns < state.now_ns
    assert not state.shortages["app"].since_ns
    looked(0.9, NEWEST)
    assert state.shortages["app"].since_ns
    assert state.planned_ns > planned_ns
