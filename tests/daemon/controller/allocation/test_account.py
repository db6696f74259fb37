"""The budget in simulation: what is spent stays below what is allowed, and still everything is learned."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specmine.daemon.config.settings import Settings
from specmine.daemon.controller.allocation.account import BudgetAccount, spendable, usual_rate, with_batch
from specmine.daemon.controller.allocation.request import CallCosts, on_phase, watch_for
from specmine.daemon.controller.call_counts import calls_interval, estimated_calls
from specmine.daemon.controller.decide import decide
from specmine.daemon.controller.events import Arrived
from specmine.daemon.controller.phase import State
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.loop import Step, run
from specmine.daemon.worker.process import InlineWorker
from specmine.model.batch import Activity, Batch, Spent, Unwatch
from specmine.model.function import Function
from specmine.model.observation import Kind
from tests.support.planted import Planted, paper_program, unimodal
from tests.support.simulated import MS, PRICES, SECOND, FakeClock, SimulatedSource

SHORT = Settings(window_ns=SECOND, limit_ns=10 * SECOND)
FUNCTION = Function(build_id="b", offset=0, name="f", module="m")


def spent_and_allowed(
    planted: tuple[Planted, ...], seconds: float, chosen: Settings, cpus: float = 1.0
) -> tuple[float, float, ControllerState, float]:
    """Mine; return what was spent and allowed at the end in ns, the last state, and the worst debt in ns."""
    clock, worst = FakeClock(), 0.0
    source = SimulatedSource(planted, clock, cpus=cpus)

    def listen(step: Step) -> None:
        nonlocal worst
        worst = min(worst, step.state.account.balance_ns)

    state = run(source, chosen, clock, InlineWorker(), listeners=[listen], deadline_ns=int(seconds * SECOND))
    return source.overhead_ns, state.account.earned_ns, state, -worst


@pytest.mark.parametrize("budget", [0.002, 0.01, 0.05])
def test_the_papers_example_stays_within_budget(budget: float) -> None:
    """At any budget the cost inside the program is at most what was promised."""
    spent, allowed, _, debt = spent_and_allowed(paper_program(), 20.0, replace(SHORT, overhead=budget))
    assert 0 < spent <= allowed
    assert debt <= 6 * MS  # on-phases cost 1.5 to 3 ms and begin at random: a few may meet


def test_many_hot_functions_stay_within_budget() -> None:
    """Thirty functions that would cost thirty times the CPU there is are learned one after the other."""
    planted = tuple(unimodal(f"f{number:02d}", rate=200_000.0, own=0.03) for number in range(30))
    spent, allowed, state, _ = spent_and_allowed(planted, 30.0, SHORT)
    assert spent <= allowed
    learned = [each for each in state.functions.values() if each.state is State.SINGLE]
    waiting = [each for each in state.functions.values() if each.state is State.WAITING]
    assert len(learned) >= 5
    assert all(each.reason is not None and each.reason.code == "budget" for each in waiting)


def test_sixty_functions_are_learned_in_three_minutes_at_one_percent() -> None:
    """What is finished takes its share for checks, not more, and one window a check: the others do not wait for it."""
    rates = np.geomspace(1_000.0, 200_000.0, 60)
    planted = tuple(unimodal(f"f{place}", rate=rate, own=1 / 60) for place, rate in enumerate(rates))
    spent, allowed, state, _ = spent_and_allowed(planted, 180.0, Settings())
    assert spent <= allowed
    assert sum(each.state is State.SINGLE for each in state.functions.values()) >= 55


def test_a_function_of_a_million_calls_a_second_gets_its_windows() -> None:
    """Rare short phases bring windows of 1,000 calls even where a second of watching would cost 1.3 s."""
    spent, allowed, state, _ = spent_and_allowed((unimodal("hot", rate=1e6),), 20.0, SHORT)
    hot = next(iter(state.functions.values()))
    assert spent <= allowed
    assert hot.state is State.SINGLE
    assert hot.probe.counts.gaps and estimated_calls(hot.probe, state.now_ns) == pytest.approx(1e6 * 18.4, rel=0.1)
    low, high = calls_interval(hot.probe, state.now_ns) or (0, 0)
    assert 0.8 * 1e6 * 18.4 < low < 1.005e6 * hot.probe.span_ns(state.now_ns) / SECOND
    assert high is None  # the probes would take all of the time


def test_an_idle_program_gets_the_floor() -> None:
    """A program that hardly runs may be charged a millisecond a second, not a share of nothing."""
    spent, allowed, state, _ = spent_and_allowed((unimodal("rare", rate=300.0),), 20.0, SHORT, cpus=0.05)
    assert allowed == pytest.approx(20 * MS, rel=0.01)
    assert spent <= allowed
    assert next(iter(state.functions.values())).state is State.SINGLE


def test_recursive_functions_stay_within_budget() -> None:
    """Inner calls trap too: a function that costs several times its price is paid back."""
    spent, allowed, _, _ = spent_and_allowed((unimodal("deep", rate=50_000.0, inner=5.0),), 30.0, SHORT)
    assert spent <= allowed


def test_a_function_that_is_given_up_between_plans_is_unwatched() -> None:
    """Its bucket ran empty and no plan watches it again at once: probes that are forgotten cost unseen."""
    clock = FakeClock()
    source = SimulatedSource((unimodal("f", rate=1_000.0),), clock)
    state = run(source, SHORT, clock, InlineWorker(), deadline_ns=3 * SECOND)
    key, watch = next((key, each.probe.watch) for key, each in state.functions.items() if each.probe.watch is not None)
    assert watch.on_ns == 0
    activity = Activity(
        function=key, kind=watch.kind, watched_ns=SECOND, hits=9_000, calls=4_500, cost_ns=1e6, limited=True
    )
    after, actions = decide(state, Arrived(batch=Batch(now_ns=state.planned_ns + 1, activity=(activity,))))
    assert after.functions[key].probe.watch is None
    assert Unwatch(function=key) in actions


def test_checks_come_every_minute() -> None:
    """A finished function is observed again about once in verify_every, and the verdict is kept."""
    planted = (unimodal("steady", rate=50_000.0),)
    chosen = Settings(verify_every_ns=20 * SECOND, window_ns=2 * SECOND, limit_ns=20 * SECOND)
    clock, checked = FakeClock(), set()
    source = SimulatedSource(planted, clock)

    def listen(step: Step) -> None:
        for each in step.state.functions.values():
            if each.state is State.SINGLE and each.verification.checked_ns:
                checked.add(each.verification.checked_ns)

    state = run(source, chosen, clock, InlineWorker(), listeners=[listen], deadline_ns=200 * SECOND)
    gaps = [after - before for before, after in zip(sorted(checked), sorted(checked)[1:], strict=False)]
    assert max(gaps) <= 1.5 * chosen.verify_every_ns
    assert [each.verdict for each in next(iter(state.functions.values())).verification.checks] == ["holds"]


@given(
    rate=st.floats(0.0, 3e6),
    grant=st.floats(1e3, 1e9),
    kind=st.sampled_from([Kind.TIME, Kind.PATH]),
    stepped=st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_what_is_requested_fits_its_grant(rate: float, grant: float, kind: Kind, stepped: bool) -> None:
    """The predicted mean cost of a request is at most the grant, on-phases last at least 50 ms, buckets bound them."""
    function = replace(FUNCTION, stepped=stepped)
    costs = CallCosts(function=function, kind=kind, rate=rate, prices=PRICES)
    watch = watch_for(costs, grant, SHORT, duty=True)
    call_ns = (PRICES.time_ns if kind is Kind.TIME else PRICES.path_ns) + (PRICES.stepped_ns if stepped else 0)
    if watch is None:
        one = on_phase(costs, SHORT)
        assert one.cost_ns * SECOND / SHORT.limit_ns >= 0.99 * grant or 1.25 * one.on_ns > SHORT.limit_ns
        return
    assert watch.burst_hits > 0 and watch.hits_per_second > 0
    if watch.on_ns == 0:
        assert rate * call_ns <= 1.001 * grant
        return
    one = on_phase(costs, SHORT)
    assert one.cost_ns * SECOND / watch.period_ns <= 1.001 * grant
    assert 50 * MS <= watch.on_ns < watch.period_ns <= SHORT.limit_ns
    assert watch.burst_hits >= 2 * SHORT.window_calls


@given(st.lists(st.tuples(st.integers(1, 200), st.floats(0, 4), st.floats(0, 0.05)), min_size=1, max_size=50))
@settings(max_examples=100, deadline=None)
def test_the_account_never_holds_more_than_was_earned(turns: list[tuple[int, float, float]]) -> None:
    """Whatever happens, balance + spent <= earned, the floor is earned, the rate planned with is bounded."""
    account, now, cpu, inside = BudgetAccount(), 0, 0, 0.0
    for passed_ms, cpus, cost in turns:
        now, cpu, inside = now + passed_ms * MS, cpu + int(cpus * passed_ms * MS), inside + cost * passed_ms * MS
        account = with_batch(account, Batch(now_ns=now, spent=Spent(overhead_ns=inside, program_cpu_ns=cpu)), SHORT)
        assert account.balance_ns + inside <= account.earned_ns * (1 + 1e-9) + 1
        assert account.earned_ns >= SHORT.floor_ns * now / SECOND * (1 - 1e-9)
        assert 0 < spendable(account) <= 1.5 * account.rate


def test_what_programs_usually_take_follows_slowly() -> None:
    """Half a minute of four times as much moves it by a few percent; the mean of the last seconds is there at once."""
    account, cpu_ns, now_ns = BudgetAccount(), 0, 0
    for second in range(930):
        now_ns += SECOND
        cpu_ns += round((0.4 if second < 900 else 1.6) * SECOND)
        batch = Batch(now_ns=now_ns, spent=Spent(program_cpu_ns=cpu_ns))
        account = with_batch(account, batch, Settings())
        if second == 899:
            assert account.usual_cpu_rate == pytest.approx(0.4 * SECOND, rel=0.01)
    assert account.cpu_rate == pytest.approx(1.6 * SECOND, rel=0.01)
    assert account.usual_cpu_rate == pytest.approx(0.44 * SECOND, rel=0.05)


def test_what_the_host_takes_is_followed_once_it_is_known() -> None:
    """The first look says since when CPUs were busy, and not how busy they are; without one nothing is known."""
    account = with_batch(BudgetAccount(), Batch(now_ns=SECOND), Settings())
    assert account.host_rate == account.usual_host_rate == 0.0
    busy_ns = 10**15
    for second in range(2, 62):
        busy_ns += round((0.5 if second < 52 else 2.0) * SECOND)
        account = with_batch(account, Batch(now_ns=second * SECOND, host_busy_ns=busy_ns), Settings())
    assert account.host_rate == pytest.approx(2.0 * SECOND, rel=0.03)
    assert 0.5 * SECOND < account.usual_host_rate < 0.9 * SECOND


def test_what_programs_usually_use_is_known_after_two_minutes() -> None:
    """Ten times the CPU time for half a minute is not usual."""
    account = BudgetAccount()
    for second in range(1, 631):
        cpus = 1.0 if second > 600 else 0.1
        spent = Spent(program_cpu_ns=account.spent.program_cpu_ns + int(cpus * SECOND), overhead_ns=0.0)
        account = with_batch(account, Batch(now_ns=second * SECOND, spent=spent), Settings())
        if second == 100:
            assert usual_rate(account, Settings()) == math.inf
    assert account.rate == pytest.approx(0.01 * SECOND, rel=0.01)
    assert usual_rate(account, Settings()) == pytest.approx(0.0014 * SECOND, rel=0.1)
