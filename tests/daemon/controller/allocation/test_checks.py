"""When known functions are checked, with how many calls, and those that are suspected or violated."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specmine.daemon.config.settings import Settings
from specmine.daemon.controller.allocation import checks
from specmine.daemon.controller.allocation.checks import MOST_IN_DEBT
from specmine.daemon.controller.allocation.function_request import (
    DEAREST,
    OVERRUN_MEMORY_NS,
    full_cost,
    least_cost,
    predicted,
    window_cost,
)
from specmine.daemon.controller.allocation.means import Means, Plan
from specmine.daemon.controller.allocation.scheduler import plan
from specmine.daemon.controller.call_counts import Paid, ProbeState, with_activity
from specmine.daemon.controller.function import FunctionState, Identity
from specmine.daemon.controller.phase import Phase, State
from specmine.daemon.controller.sampling.profile import Profile
from specmine.daemon.controller.violations.asserted import Asserted
from specmine.daemon.controller.violations.yardstick import begun
from specmine.mining.assertions.checks import Verification
from specmine.model.batch import Activity, Watch
from specmine.model.observation import Kind
from tests.support.planned import FUNCTION, MEANS, NOW_NS, POOR, learned, seen, unseen, violated
from tests.support.simulated import SECOND


def test_what_is_suspected_does_not_wait_until_debts_are_paid_back() -> None:
    """One that is suspected gets an on-phase, of the size of what five seconds bring at most; others none."""
    means = replace(MEANS, budget=2e4, income=1e6, cash=-1e6)
    calm, suspected = seen(learned(), 6.0), seen(learned(), 6.0, urgency=9.0)
    assert plan({FUNCTION.key: calm}, means, Settings()).watches == {}
    found = plan({FUNCTION.key: suspected}, means, Settings())
    assert FUNCTION.key in found.watches and -1e6 - 5e6 < found.cash < -1e6
    many = {}
    for place in range(12):
        function = replace(FUNCTION, offset=place + 1)
        many[function.key] = seen(replace(learned(), identity=Identity(function=function)), 6.0, urgency=9.0)
    assert plan(many, means, Settings()).cash >= -1e6 - 5e6


def test_in_debt_a_check_borrows_what_checks_are_kept_of_the_time_since_the_last_window() -> None:
    """Else what one violation has cost keeps all functions unobserved for minutes, and the next change unseen."""
    means = replace(MEANS, budget=2e4, income=1e6, cash=-2e7)
    one = replace(learned(), probe=ProbeState(rate=100.0))  # 110 calls of 1.1 us
    age_s = (100.0, 70.0)

    def watched(since_s: float) -> bool:
        """Tell whether it is checked, if a window of another function ended so long ago."""
        other = seen(replace(one, identity=Identity(function=replace(FUNCTION, offset=99))), since_s)
        due = replace(seen(one, age_s[0]), verification=Verification(checked_ns=NOW_NS - round(age_s[0] * SECOND)))
        other = replace(other, verification=Verification(checked_ns=NOW_NS))
        return due.key in plan({due.key: due, other.key: other}, means, Settings()).watches

    assert watched(5.0)
    assert not watched(0.1)
    means = replace(means, prices=replace(means.prices, time_ns=20_000.0))  # as amid cold caches: 2.4 ms a window
    assert watched(10.0)
    assert not watched(5.0)
    means = replace(means, cash=-3e7)  # half of it, the other half pays back
    assert not watched(10.0)
    assert watched(20.0)


def test_few_suspected_functions_are_observed_in_a_deep_debt() -> None:
    """Those whose windows say most, each: what is new before those that many windows did not decide."""
    many = {}
    for place in range(12):
        function = replace(FUNCTION, offset=place + 1)
        one = seen(replace(learned(), identity=Identity(function=function)), 6.0, urgency=5.0 + place)
        alarms = tuple(replace(each, windows=1 if place < MOST_IN_DEBT else 10) for each in one.violations.alarms)
        many[function.key] = replace(one, violations=replace(one.violations, alarms=alarms))
    means = replace(MEANS, budget=2e4, income=2e6, cash=-3e7)
    usual = plan(many, means, Settings())
    assert len(usual.watches) > 2 * MOST_IN_DEBT
    owed = plan(many, replace(means, cash=-5e7), Settings())
    assert set(owed.watches) == set(list(many)[:MOST_IN_DEBT])


def test_no_more_is_borrowed_than_the_usual_income_pays_back() -> None:
    """A scan brings ten times the budget while it lasts. What is owed then is owed for ten times as long after it."""
    many = {}
    for place in range(12):
        function = replace(FUNCTION, offset=place + 1)
        many[function.key] = seen(replace(learned(), identity=Identity(function=function)), 6.0, urgency=9.0)
    for usual in (1e7, 1e6):
        means = replace(MEANS, budget=2e4, income=1e7, usual_income=usual, cash=-1e6)
        assert -1e6 - 5 * usual <= plan(many, means, Settings()).cash < -1e6
    deep = replace(means, cash=-2.1e7)
    assert len(plan(many, deep, Settings()).watches) == MOST_IN_DEBT
    assert len(plan(many, replace(deep, usual_income=1e7), Settings()).watches) > MOST_IN_DEBT


def test_what_overruns_its_bucket_by_far_gets_no_window_for_a_while() -> None:
    """Hits at a function that is called for each row of a scan cost more until its probes are off than ten seconds
    bring; if the usual income is large, or it is long ago, it gets one."""
    activity = Activity(
        function=FUNCTION.key, kind=Kind.TIME, watched_ns=12_000_000, hits=35_000, calls=200, cost_ns=1.4e8,
        limited=True, timed=200,
    )  # fmt: skip
    look = Watch(function=FUNCTION.key, kind=Kind.TIME, window_calls=210, window_ns=SECOND, burst_hits=420)
    probe = with_activity(ProbeState(rate=1000.0, watch=look), activity, NOW_NS, counting=False)
    assert probe.overrun_ns == pytest.approx(1.4e8 * (35_000 - 420) / 35_000)
    one = replace(seen(learned(), 100.0), probe=replace(probe, rate=1000.0))
    one = replace(one, verification=Verification(checked_ns=NOW_NS - 100 * SECOND))

    def watched(means: Means) -> bool:
        return one.key in plan({one.key: one}, means, Settings()).watches

    means = replace(MEANS, income=1e7, usual_income=1e7, cash=5e7)
    assert not watched(means)
    assert watched(replace(means, income=2e7, usual_income=2e7))
    assert not watched(replace(means, income=2e7, usual_income=1e6))
    assert watched(replace(means, now_ns=NOW_NS + OVERRUN_MEMORY_NS))


def test_a_suspected_function_comes_first_and_in_short_windows() -> None:
    """It has probes at once, and its windows end after five seconds instead of ten."""
    suspected = seen(replace(learned(), probe=ProbeState(rate=1000.0)), 2.0, urgency=9.0)
    watch = plan({FUNCTION.key: suspected}, MEANS, Settings()).watches[FUNCTION.key]
    assert (watch.window_ns, watch.on_ns) == (5 * SECOND, 0)
    calm = seen(replace(learned(), probe=ProbeState(rate=1000.0)), 11.0)
    assert plan({FUNCTION.key: calm}, MEANS, Settings()).watches[FUNCTION.key].window_ns == 10 * SECOND


@pytest.mark.parametrize("state", [State.TIMING, State.WAITING, State.EXPLAINING])
@pytest.mark.parametrize(
    ("urgency", "measured_by", "first"),
    [(9.0, "its windows", True), (0.0, "its windows", False), (9.0, "another build", False), (9.0, "", False)],
)
def test_one_that_is_being_learned_comes_first_too_once_it_is_suspected(
    state: State, urgency: float, measured_by: str, first: bool
) -> None:
    """Five windows are enough to see a change; a new build is learned first, in lives that may be short."""
    one = seen(replace(learned(), phase=Phase(state=state)), 6.0, urgency=urgency)
    yardstick = begun("b", Asserted(), one.history.timing * 5, NOW_NS)
    if measured_by == "another build":
        yardstick = replace(yardstick, inherited_ns=NOW_NS)
    one = replace(one, violations=replace(one.violations, yardstick=yardstick if measured_by else None))
    tight = replace(MEANS, budget=2e4, income=1e6, cash=-1e6, pressure=1.0)
    assert (FUNCTION.key in plan({FUNCTION.key: one}, tight, Settings()).watches) is first


def test_several_suspected_functions_all_get_windows() -> None:
    """However often they are called, none takes the place of others."""
    many = {}
    for place in range(6):
        function = replace(FUNCTION, offset=place + 1)
        one = seen(replace(learned(), identity=Identity(function=function)), 6.0, urgency=9.0 + place)
        many[function.key] = one
    tight = replace(MEANS, budget=1e6, income=1e6, cash=1e7)
    assert set(plan(many, tight, Settings()).watches) == set(many)


def test_what_is_suspected_does_not_take_the_place_of_checks_that_are_due() -> None:
    """A third of the budget is kept for those, however much of it suspicions ask for."""
    functions = {}
    for place in range(8):
        function = replace(FUNCTION, offset=place + 1)
        one = replace(learned(), identity=Identity(function=function), probe=ProbeState(rate=2000.0))
        suspected = place < 4
        one = seen(one, 6.0 if suspected else 70.0, urgency=9.0 if suspected else 0.0)
        if not suspected:
            one = replace(one, verification=Verification(checked_ns=NOW_NS - 70 * SECOND))
        functions[function.key] = one
    tight = replace(MEANS, budget=1e6, income=1e6, cash=1e8)
    assert set(plan(functions, tight, Settings()).watches) == set(functions)


def test_what_sampling_finds_more_of_is_timed_before_others() -> None:
    """Of finished functions with windows of one age the one that surprised gets the next, though none is due."""
    functions = {}
    for place in range(4):
        function = replace(FUNCTION, offset=place + 1)
        one = replace(learned(), identity=Identity(function=function), probe=ProbeState(rate=20_000.0))
        functions[function.key] = seen(replace(one, verification=Verification(checked_ns=NOW_NS - SECOND)), 6.0)
    key = list(functions)[2]
    tight = replace(MEANS, budget=1e6, income=1e6, cash=-1e5)
    assert plan(functions, tight, Settings()).watches == {}
    assert set(plan(functions, replace(tight, surprising=frozenset({key})), Settings()).watches) == {key}


def test_a_wait_for_work_gets_no_more_than_its_checks() -> None:
    """It is never violated: suspicions and what is left go to others, and a window each minute tells its levels."""

    def watched(age_s: int, urgency: float, *, waits: bool) -> bool:
        one = replace(learned(), profile=Profile(loop_bottom=waits), probe=ProbeState(rate=20_000.0))
        one = seen(replace(one, verification=Verification(checked_ns=NOW_NS - age_s * SECOND)), float(age_s), urgency)
        return bool(plan({one.key: one}, replace(MEANS, budget=1e6, income=1e6, cash=1e9), Settings()).watches)

    assert watched(20, 0.0, waits=False)
    assert watched(20, 10.0, waits=False)
    assert not watched(20, 0.0, waits=True)
    assert not watched(20, 10.0, waits=True)
    assert watched(70, 0.0, waits=True)


def test_debts_are_paid_back_before_more_is_watched_than_promised() -> None:
    """In debt only checks that are due get probes."""
    old = seen(learned(), 11.0)
    assert plan({FUNCTION.key: old}, replace(MEANS, cash=-1.0), Settings()).watches == {}


def test_what_is_kept_for_watching_is_used_unless_our_own_work_must_be_saved() -> None:
    """A window is due ten seconds after the last check, under full pressure after ``verify_every``."""
    checked = replace(seen(learned(), 2.0), verification=Verification(checked_ns=NOW_NS - 11 * SECOND))
    assert FUNCTION.key in plan({FUNCTION.key: checked}, MEANS, Settings()).watches
    assert plan({FUNCTION.key: checked}, replace(MEANS, pressure=1.0), Settings()).watches == {}


def test_checks_come_in_smaller_windows_where_full_ones_would_come_rarely() -> None:
    """Twenty windows of 840 calls cost 24 ms, which are there each 70 s: each holds a quarter of that, then a tenth.

    What an on-phase has brought by its end is looked at, from 30 calls on.
    """

    def asked(number: int) -> set[tuple[int, int]]:
        finished = []
        for offset in range(number):
            function = replace(FUNCTION, offset=100 + offset)
            checked = Verification(checked_ns=NOW_NS - 200 * SECOND)
            finished.append(replace(learned(), identity=Identity(function=function), verification=checked))
        made = plan({one.key: one for one in finished}, replace(POOR, cash=1e9), Settings()).watches.values()
        assert all(watch.burst_hits <= 2.3 * watch.window_calls for watch in made)
        return {(watch.window_calls, watch.minimum_calls) for watch in made if watch.on_ns}

    assert asked(4) == {(840, 30)}
    assert asked(20) == {(210, 30)}
    assert asked(100) == {(110, 30)}


def test_checks_take_no_more_than_is_kept_for_them() -> None:
    """Each of fifty finished functions is observed as often as its window can be paid for, at least each minute."""

    # 50 windows of half their size, 550 calls, cost 36 ms: 2 ms a second do so in 18 s
    assert not asked_for(15, 0.2).watches
    assert len(asked_for(20, 0.2).watches) > 1


def asked_for(checked_s: float, seen_s: float, watched: Watch | None = None) -> Plan:
    """Return what fifty finished functions get that were all checked, and seen, so long ago; one may be watched."""
    finished = []
    for number in range(50):
        function = replace(FUNCTION, offset=100 + number, name=f"g{number}")
        verification = Verification(checked_ns=NOW_NS - round(checked_s * SECOND))
        one = replace(learned(), identity=Identity(function=function), verification=verification)
        finished.append(seen(one, seen_s))
    finished[7] = replace(finished[7], probe=replace(finished[7].probe, watch=watched))
    means = replace(MEANS, budget=1e7, income=1e7, cash=1e9)
    return plan({one.key: one for one in finished}, means, Settings(verification=0.2))


def test_functions_that_were_observed_at_the_same_time_are_checked_one_by_one() -> None:
    """Each 18 s: all together would leave the program unseen until then. Fifty of them come 0.36 s apart."""
    early, late = asked_for(0.3, 0.3), asked_for(0.4, 0.4)
    assert not early.watches
    assert early.check_ns - NOW_NS == pytest.approx(0.06 * SECOND, rel=0.2)  # when the next plan must be made
    (first,) = late.watches.values()
    assert first.on_ns
    assert first.function not in asked_for(0.4, 0.4, watched=first).watches
    assert len(asked_for(5, 5).watches) == 1


def test_an_overdue_check_does_not_wait_until_others_have_paid_their_debts() -> None:
    """One that is due waits in debt; five seconds later it borrows, up to what is kept for checks in that time."""

    def checked(seconds_ago: int, offset: int = 1) -> FunctionState:
        one = replace(learned(), identity=Identity(function=replace(FUNCTION, offset=offset)))
        return seen(replace(one, verification=Verification(checked_ns=NOW_NS - seconds_ago * SECOND)), 6.0)

    debt = replace(MEANS, cash=-1e5)
    assert plan({FUNCTION.key: checked(11)}, debt, Settings()).watches == {}
    overdue = plan({FUNCTION.key: checked(20)}, debt, Settings())
    assert FUNCTION.key in overdue.watches and overdue.cash < debt.cash
    many = {one.key: one for one in (checked(500, offset) for offset in range(1, 200))}
    assert plan(many, debt, Settings()).cash >= debt.cash - Settings().verification * debt.budget * 5


@pytest.mark.parametrize("recover_s", [30, 300])
def test_a_function_with_an_open_violation_is_observed_ten_times_in_recover_after(recover_s: int) -> None:
    """Neither debts nor our own CPU time keep it waiting; before its window is due it gets none."""
    settings = replace(Settings(), recover_after_ns=recover_s * SECOND)
    every_s = max(5.0, recover_s / 10)
    poor = replace(MEANS, cash=-1e5, pressure=1.0)
    due, early = violated(1, every_s + 1), violated(1, every_s - 1)
    assert due.key in plan({due.key: due}, poor, settings).watches
    assert early.key not in plan({early.key: early}, poor, settings).watches


def test_many_open_violations_share_a_third_of_the_budget() -> None:
    """Their windows come less often then, and few of them at once."""
    many = {one.key: one for one in (violated(offset, 7.0) for offset in range(1, 41))}
    poor = replace(MEANS, cash=-1e5, pressure=1.0)
    assert not plan(many, poor, Settings()).watches
    later = {one.key: one for one in (violated(offset, 400.0) for offset in range(1, 41))}
    made = plan(later, poor, Settings())
    assert made.watches
    assert poor.cash - made.cash <= 2 * poor.savable
    spent = sum(predicted(later[key], watch, poor, Settings()) for key, watch in made.watches.items())
    assert spent <= 0.5 * poor.income


def test_with_no_cpu_time_of_our_own_checks_come_three_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those whose check would be due soon, and none that calls another: probes inside a call add to it."""

    def among(calls_first: int = -1) -> set[str]:
        """Return what is observed of ten functions of which one is due; another may be called by that one."""
        finished = {}
        for number in range(10):
            function = replace(FUNCTION, offset=100 + number, name=f"g{number}")
            age_s = 61.0 if number == 0 else 55.0 - 5 * number
            one = replace(
                learned(),
                identity=Identity(function=function),
                verification=Verification(checked_ns=NOW_NS - round(age_s * SECOND)),
                probe=ProbeState(rate=1e5),
            )
            if number == calls_first:
                called = replace(FUNCTION, offset=100)
                one = replace(one, profile=replace(one.profile, callers=((called.key, 1.0),)))
            finished[function.key] = seen(one, 10.0)
        made = plan(finished, replace(MEANS, pressure=1.0, cash=1e9), Settings(verify_every_ns=60 * SECOND))
        return {finished[key].function.name for key, watch in made.watches.items() if watch.inside_of in ("", key)}

    assert among() == {"g0", "g1", "g2"}
    assert among(calls_first=1) == {"g0", "g2", "g3"}
    monkeypatch.setattr(checks, "TOGETHER", 1)
    assert among() == {"g0"}


def test_a_function_that_only_others_pay_for_is_observed_briefly() -> None:
    """Nobody calls it any more, and calls of others pass the places that it returned to, 400 times a second."""
    called = ProbeState(rate=0.0, recent_ns=4 * SECOND, recent_cost_ns=28e6)
    one = replace(seen(learned(), 100.0), probe=called, verification=Verification(checked_ns=NOW_NS - 100 * SECOND))
    free = replace(one, probe=replace(called, recent_cost_ns=0.0))
    means = replace(MEANS, budget=1e6, income=1e6, cash=5e6)
    (usual,) = plan({one.key: free}, means, Settings()).watches.values()
    assert usual.on_ns == 0
    (watch,) = plan({one.key: one}, means, Settings()).watches.values()
    window = window_cost(one, means, replace(Settings(), window_calls=watch.window_calls))
    assert 7e6 * watch.on_ns / SECOND == pytest.approx(max(window, 7e6 * 0.05), rel=0.01)
    assert full_cost(one, means) == 7e6


def test_while_a_change_is_suspected_nothing_is_looked_at_for_the_first_time() -> None:
    """A look at a function that is called a million times a second takes what the windows of others need."""
    suspected, new = seen(learned(), 6.0, urgency=9.0), unseen(1)
    both = {suspected.key: suspected, new.key: new}
    pressed = replace(MEANS, pressure=1.0)
    assert new.key in plan(both, MEANS, Settings()).watches
    assert new.key not in plan(both, pressed, Settings()).watches
    assert new.key in plan({new.key: new, suspected.key: seen(learned(), 6.0)}, pressed, Settings()).watches


def test_while_a_fault_takes_cpu_time_nothing_is_looked_at_for_the_first_time() -> None:
    """What is hot since then may be hot because of it; a load that grows while all is as asserted is no reason."""
    new, calm, slower = unseen(1), seen(learned(), 6.0), violated(9, 1.0)
    busy = replace(MEANS, usual_income=MEANS.income / 3)
    assert new.key not in plan({new.key: new, slower.key: slower}, busy, Settings()).watches
    assert new.key in plan({new.key: new, calm.key: calm}, busy, Settings()).watches
    assert new.key in plan({new.key: new, slower.key: slower}, MEANS, Settings()).watches


@pytest.mark.parametrize(("times", "expected"), [(1.0, 1.0), (5.0, 5.0), (0.5, 1.0), (50.0, DEAREST)])
def test_a_call_that_is_only_counted_costs_what_hits_were_found_to_cost(times: float, expected: float) -> None:
    """After a sleep caches are cold: a hit costs five times the usual, also where no call is timed."""
    means = replace(MEANS, prices=replace(MEANS.prices, untimed_ns=300.0))
    paid = Paid(calls=200.0, hits=1600.0, cost_ns=times * 1600 * MEANS.prices.time_ns / 2)
    one = replace(learned(), probe=ProbeState(rate=3000.0, paid=paid))
    assert least_cost(one, means) == pytest.approx(3000.0 * 300.0 * expected)
    assert least_cost(replace(one, probe=ProbeState(rate=3000.0)), means) == 3000.0 * 300.0
