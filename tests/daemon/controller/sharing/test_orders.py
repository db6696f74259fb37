"""Orders of the fleet are wishes: they lapse, and never touch what the user named or what is suspected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from specmine.daemon.config.settings import Settings
from specmine.daemon.controller.allocation.checks import CHECK_CALLS
from specmine.daemon.controller.decide import decide
from specmine.daemon.controller.events import Assigned, Event, Stated
from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.phase import FINISHED, State
from specmine.daemon.controller.sharing.orders import (
    CHECKED_EVERY_NS,
    CLOSELY_EVERY_NS,
    LEFT_FOR_NS,
    LONE_AFTER_NS,
    MEASURED_EVERY_NS,
    Orders,
    fitted,
    left_out,
    told,
    watched_closely,
)
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.controller.violations.function_violations import URGENT
from specmine.daemon.documents.status import DaemonFacts, status_of
from specmine.daemon.loop import Step, run
from specmine.daemon.worker.process import InlineWorker
from specmine.mining.detection.alarm import Alarm, Stream
from specmine.mining.detection.detector import DetectorState
from specmine.mining.fleet.duty import Duty, Purpose
from specmine.mining.fleet.statement import InheritedStatement
from specmine.model.batch import Watch
from specmine.model.observation import Kind
from specmine.model.violation import Direction, What
from tests.support.planted import Planted, unimodal
from tests.support.simulated import SECOND, FakeClock, SimulatedSource

SHARED = Settings(window_ns=SECOND, limit_ns=10 * SECOND, shares=True)
BEGIN_NS = 100 * SECOND
_NAMES = [f"f{number}" for number in range(6)]


def _program() -> list[Planted]:
    return [unimodal(name, rate=500.0, own=1 / 6, inclusive=1 / 6) for name in _NAMES]


def _key(name: str) -> str:
    return unimodal(name).function.key


def _run(
    settings: Settings, seconds: float, orders: Mapping[float, Assigned | Stated]
) -> tuple[ControllerState, SimulatedSource, list[Step]]:
    """Run the loop over the program; the fleet speaks at the given seconds."""
    clock = FakeClock()
    source = SimulatedSource(_program(), clock)
    due, steps = sorted(orders.items()), list[Step]()

    def inbox(now_ns: int) -> list[Event]:
        found: list[Event] = []
        while due and now_ns >= 100 * SECOND + due[0][0] * SECOND:
            event = due.pop(0)[1]
            found.append(
                replace(event, now_ns=now_ns, told_ns=now_ns)
                if isinstance(event, Assigned)
                else replace(event, now_ns=now_ns)
            )
        return found

    state = run(source, settings, clock, InlineWorker(), inbox=inbox, listeners=[steps.append],  # type: ignore[arg-type]
                deadline_ns=int(seconds * SECOND))  # fmt: skip
    return state, source, steps


def _slower(planted: Planted) -> Planted:
    ways = tuple(
        replace(way, classes=tuple((share, 1.5 * median, sigma) for share, median, sigma in way.classes))
        for way in planted.ways
    )
    return replace(planted, ways=ways)


def _assigned(
    asked: list[str], left: list[str], purpose: Purpose = Purpose.SCOUT, calls: int = 400, now_ns: int = 0
) -> Assigned:
    duties = tuple(Duty(function=_key(name), purpose=purpose, calls=calls) for name in asked)
    return Assigned(now_ns=now_ns, told_ns=now_ns, duties=duties, left=tuple(map(_key, left)))


def _seen(functions: Mapping[str, FunctionState]) -> int:
    """Return the end of the newest window, which those of all others are near."""
    return max(one.end_ns for each in functions.values() for one in each.history.timing[-1:])


def _unmeasured(functions: Mapping[str, FunctionState]) -> dict[str, FunctionState]:
    return {
        key: replace(each, violations=replace(each.violations, detector=DetectorState()))
        for key, each in functions.items()
    }


def _timed(state: ControllerState) -> dict[str, int]:
    return {each.function.name: each.history.totals.timed for each in state.functions.values()}


def test_what_is_left_to_others_costs_nothing() -> None:
    """A scout gives its calls and stops; what others observe is not looked at; the rest is this host's own."""
    order = _assigned(_NAMES[:1], _NAMES[1:5])
    state, source, _ = _run(SHARED, 60.0, {0.0: order, 30.0: order})
    timed = _timed(state)
    assert 400 <= timed["f0"] < 2_000
    assert all(timed.get(name, 0) == 0 for name in _NAMES[1:5])
    assert timed["f5"] > 2_000
    alone, lonely, _ = _run(replace(SHARED, shares=False), 60.0, {0.0: order})
    assert all(number > 2_000 for number in _timed(alone).values())
    assert source.overhead_ns < 0.6 * lonely.overhead_ns
    reasons = {each.function.name: each.reason for each in state.functions.values()}
    assert reasons["f1"] is not None
    assert reasons["f1"].code == "shared"
    fleet = status_of(state, DaemonFacts())["fleet"]
    assert (fleet["in_force"], fleet["duties"]["scout"], fleet["left_to_others"]) == (True, 1, 5)


def test_without_the_fleet_a_host_is_alone_again() -> None:
    """A quarter of an hour after the last word nothing is left out."""
    state, _, _ = _run(SHARED, 20.0, {0.0: _assigned([], _NAMES)})
    assert left_out(state.orders, state.functions, SHARED, state.now_ns) == frozenset(state.functions)
    later = (state.orders.told_ns or 0) + LONE_AFTER_NS
    assert left_out(state.orders, state.functions, SHARED, later - 1) == frozenset(state.functions)
    assert left_out(state.orders, state.functions, SHARED, later) == frozenset()
    source = SimulatedSource(_program(), FakeClock(later))
    source.start()
    state, _ = decide(replace(state, now_ns=later), Assigned(now_ns=later, told_ns=later - LONE_AFTER_NS))
    assert not state.orders.in_force(SHARED, later)


def test_a_host_is_not_blinded() -> None:
    """What others observe is checked rarely all the same, and learned if nothing is stated of it for half an hour."""
    state, _, _ = _run(replace(SHARED, shares=False), 60.0, {})
    finished = [key for key, each in state.functions.items() if each.state in FINISHED]
    assert len(finished) == len(_NAMES)
    now = state.now_ns
    orders = told(Orders(), state.functions, (), finished, told_ns=now, own=0.25)
    assert left_out(orders, state.functions, SHARED, now) == frozenset(finished)
    closely = watched_closely(state.functions, SHARED)
    assert closely == frozenset(finished)  # there are fewer than places of its own
    few = replace(SHARED, own_places=1 / 32)
    most = watched_closely(state.functions, few)
    assert len(most) == 2
    unmeasured = _unmeasured(state.functions)
    for later, functions, expected in (
        (1, state.functions, frozenset(finished)),
        (CLOSELY_EVERY_NS + 2 * SECOND, state.functions, frozenset(finished) - most),
        (MEASURED_EVERY_NS + 2 * SECOND, unmeasured, frozenset[str]()),
        (CHECKED_EVERY_NS - SECOND, state.functions, frozenset(finished) - most),
        (CHECKED_EVERY_NS + 2 * SECOND, state.functions, frozenset[str]()),
    ):
        again = told(orders, functions, (), finished, told_ns=_seen(functions) + later, own=1 / 32)
        assert left_out(again, functions, few, _seen(functions) + later) == expected
    unknown = {key: each.moved(State.WAITING, None, now) for key, each in state.functions.items()}
    again = told(orders, unknown, (), finished, told_ns=now + LEFT_FOR_NS, own=0.25)
    assert left_out(again, unknown, SHARED, now + LEFT_FOR_NS - 1) == frozenset(finished)
    assert left_out(again, unknown, SHARED, now + LEFT_FOR_NS) == frozenset()


@pytest.mark.parametrize(("own", "seconds"), [(0.25, 60), (0.0, 300)])
def test_what_becomes_slower_here_alone_is_found(own: float, seconds: int) -> None:
    """Though other hosts observe it: within a minute where it takes much time, within five where it takes little."""
    settings = replace(SHARED, window_ns=10 * SECOND, own_places=own)
    source, steps = SimulatedSource(_program(), FakeClock()), list[Step]()
    clock, slowed_s = source.clock, 400

    def inbox(now_ns: int) -> list[Event]:
        after_s = (now_ns - BEGIN_NS) // SECOND
        if after_s >= slowed_s:
            source.planted[_key("f3")] = _slower(unimodal("f3", rate=500.0, own=1 / 6, inclusive=1 / 6))
        return [_assigned([], _NAMES if after_s > 1 else [], now_ns=now_ns)] if after_s in (1, 120) else []

    state = run(source, settings, clock, InlineWorker(), inbox=inbox, listeners=[steps.append],  # type: ignore[arg-type]
                deadline_ns=(slowed_s + seconds) * SECOND)  # fmt: skip
    assert state.orders.in_force(settings, state.now_ns)
    assert {each.function.name for each in state.functions.values() if each.violations.open} == {"f3"}


def test_what_is_suspected_has_whole_windows() -> None:
    """As without sharing: the controller asks for as many calls, while all other functions keep to few."""
    state, _, _ = _run(replace(SHARED, window_ns=10 * SECOND), 60.0, {0.0: _assigned([], [])})
    key, other = _key("f1"), _key("f2")
    function = state.functions[key]
    alarm = Alarm(
        stream=Stream(what=What.LEVEL, part="all"), direction=Direction.SLOWER, factor=1.5, factor_low=1.2,
        factor_high=1.8, since_ns=state.now_ns, windows=3, log_e=URGENT + 1, opened=False,
    )  # fmt: skip
    suspected = replace(function, violations=replace(function.violations, alarms=(alarm,), standing=()))
    watch = Watch(function=key, kind=Kind.TIME, window_calls=210)
    functions = {**state.functions, key: suspected}
    found = fitted(state.orders, {key: watch, other: replace(watch, function=other)}, functions, SHARED, state.now_ns)
    assert (found[key].window_calls, found[other].window_calls) == (SHARED.window_calls, CHECK_CALLS)


def test_what_is_watched_closely_has_short_windows() -> None:
    """More windows for as many calls: those of a function that is on all the time end with just enough calls."""
    state, _, _ = _run(replace(SHARED, window_ns=10 * SECOND), 60.0, {0.0: _assigned([], _NAMES[1:])})
    settings = replace(SHARED, window_ns=10 * SECOND, own_places=1 / 64)
    (most,) = watched_closely(state.functions, settings)
    other = next(key for key in state.functions if key != most)
    watch = Watch(function=most, kind=Kind.TIME, window_calls=1 << 20, window_ns=10 * SECOND)
    watches = {most: watch, other: replace(watch, function=other)}
    found = fitted(state.orders, watches, state.functions, settings, state.now_ns)
    assert (found[most].window_calls, found[most].window_ns) == (CHECK_CALLS, CLOSELY_EVERY_NS)
    assert found[most].minimum_calls == CHECK_CALLS < watch.minimum_calls
    assert found[other] == watches[other]
    alone = fitted(Orders(), watches, state.functions, settings, state.now_ns)
    assert alone == watches


def test_with_no_cpu_time_left_what_is_watched_closely_is_checked_less_often() -> None:
    """Each window costs us some CPU time: under pressure they come four times as rarely."""
    state, _, _ = _run(replace(SHARED, shares=False), 60.0, {})
    finished = [key for key, each in state.functions.items() if each.state in FINISHED]
    orders = told(Orders(), state.functions, (), finished, told_ns=state.now_ns, own=0.25)
    began_ns = min(max(one.start_ns for one in each.history.timing[-1:]) for each in state.functions.values())
    for pressure, every_ns in ((0.0, CLOSELY_EVERY_NS), (1.0, 4 * CLOSELY_EVERY_NS)):
        soon = left_out(orders, state.functions, SHARED, began_ns + every_ns - 1, pressure=pressure)
        later = left_out(orders, state.functions, SHARED, _seen(state.functions) + every_ns, pressure=pressure)
        assert (soon, later) == (frozenset(finished), frozenset())


def test_a_statement_is_confirmed_though_others_observe() -> None:
    """Else a host would state nothing of a function for half an hour."""
    alone, _, _ = _run(replace(SHARED, shares=False), 60.0, {})
    learned = alone.functions[_key("f1")]
    assert learned.inference.learned is not None
    stated = InheritedStatement(
        function=learned.key, build_id="b1d", learned=learned.inference.learned, hosts=8,
        median_ns=learned.history.longest[-1].histogram.quantile(0.5),
    )  # fmt: skip
    order = _assigned([], _NAMES)
    state, _, _ = _run(SHARED, 30.0, {0.0: order, 1.0: Stated(now_ns=0, statements=(stated,))})
    assert state.functions[_key("f1")].state in FINISHED
    assert all(state.functions[_key(name)].state not in FINISHED for name in _NAMES if name != "f1")


def test_hints_of_the_user_are_never_taken_away() -> None:
    """Nor is anything learned that the user excluded, or that is no function of the host's programs."""
    settings = replace(SHARED, ignore=("f2",))
    stranger = Duty(function="ffff+0x10", purpose=Purpose.SCOUT, calls=400)
    order = _assigned(["f2"], ["f1"])
    order = replace(order, duties=(*order.duties, stranger))
    state, source, _ = _run(settings, 30.0, {0.0: order, 10.0: order})
    assert state.functions[_key("f2")].state is State.EXCLUDED
    assert "ffff+0x10" not in state.functions
    assert all(getattr(request, "function", "") not in ("ffff+0x10", _key("f2")) for _, request in source.requests)
    named, _, _ = _run(replace(SHARED, watch=("f1",)), 30.0, {0.0: order})
    assert _timed(named)["f1"] > 1_000
    assert set(_timed(named)) == {"f1"}


def test_the_budget_holds_whatever_is_asked() -> None:
    """Duties for all functions and a million calls cost no more than the host spends by itself."""
    order = _assigned(_NAMES, [], calls=100_000)
    state, source, _ = _run(SHARED, 60.0, {0.0: order})
    spent = source.overhead_ns / (60 * SECOND)
    assert spent <= SHARED.overhead * 1.1
    assert state.account.balance_ns > -2 * state.account.rate


def test_a_quarter_of_the_places_stays_the_hosts_own() -> None:
    """Of a hundred duties to scout at most three quarters of the places are taken."""
    duties = [Duty(function=str(number), purpose=Purpose.SCOUT, calls=10) for number in range(100)]
    assert len(told(Orders(), {}, duties, (), told_ns=1, own=0.25).duties) == 48
    assert len(told(Orders(), {}, duties, (), told_ns=1, own=1.0).duties) == 0
