"""Whose calls are looked into: one function at a time with its callees, for a fixed share of the budget, in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from specmine.daemon.config.settings import SECOND, Settings
from specmine.daemon.controller.allocation.checks import with_checks
from specmine.daemon.controller.allocation.function_request import same_enough
from specmine.daemon.controller.allocation.learning import with_learning
from specmine.daemon.controller.allocation.looks_inside import CALLEES, LATER, LOOKING_INSIDE, TURN_NS, with_looks
from specmine.daemon.controller.allocation.means import Means, Plan
from specmine.daemon.controller.call_counts import Paid, ProbeState
from specmine.daemon.controller.function import ExplanationState, FunctionState, Identity
from specmine.daemon.controller.history import History
from specmine.daemon.controller.hotness import total_of
from specmine.daemon.controller.phase import Phase, State
from specmine.daemon.controller.sampling.profile import Profile
from specmine.mining.assertions.explanation import Explanation
from specmine.mining.detection.values import LEAST_CALLS
from specmine.model.batch import Prices, Watch
from specmine.model.function import Function
from specmine.model.histogram import Histogram
from specmine.model.inside.parts import Inside
from specmine.model.json_codec import decode, encode
from specmine.model.observation import Kind, Observation

PRICES = Prices(count_ns=700, time_ns=1300, path_ns=2300, stepped_ns=9000, sample_ns=5000, bias_ns=400)
MEANS = Means(budget=1e7, income=1e7, cash=5e7, prices=PRICES, slow_links=False, now_ns=2 * TURN_NS)
UNEXPLAINED = Explanation(borders=(300,), bias_ns=400.0, class_calls=(1, 1), behaviours=(), paths=(), why="why")


def finished(name: str, rate: float, *callers: FunctionState, state: State = State.SINGLE) -> FunctionState:
    """Return a finished function with so many calls a second, and so much time, that these call."""
    function = Function(build_id="b", offset=sum(map(ord, name)), name=name, module="m", in_program=True)
    return FunctionState(
        identity=Identity(function=function),
        phase=Phase(state=state),
        profile=Profile(samples=9, inclusive_ns=rate * 1e5, callers=tuple((each.key, rate * 1e5) for each in callers)),
        probe=ProbeState(rate=rate),
        explanation=ExplanationState(result=UNEXPLAINED if state is State.UNEXPLAINED else None),
    )


def with_known(function: FunctionState, *callees: FunctionState, windows: int = 6) -> FunctionState:
    """Return a function with windows during which these callees were timed."""
    calls = Histogram.from_durations([1000] * 210)
    part = Inside(calls=calls, timed=tuple(sorted(each.function.frame for each in callees)))
    window = Observation(
        function=function.key, lifetime="5", kind=Kind.TIME, start_ns=0, end_ns=SECOND, histogram=calls, calls=210,
        watched_ns=SECOND, inside=(part,),
    )  # fmt: skip
    return replace(function, history=History(timing=(window,) * windows))


def planned(functions: Sequence[FunctionState], means: Means = MEANS, so_far: Plan | None = None) -> dict[str, Watch]:
    """Return what is requested, by the name of the function."""
    names = {each.key: each.function.name for each in functions}
    start = so_far or Plan(left=means.budget, cash=means.cash)
    return {names[key]: watch for key, watch in with_looks(functions, start, means, Settings()).watches.items()}


TOP = finished("top", 4000.0)
CALLED = [finished("parse", 4000.0, TOP), finished("miss", 1000.0, TOP)]


def test_a_function_and_its_callees_are_timed_together() -> None:
    """All follow the function, which ends its on-phase by its calls; the buckets of callees do not run empty before."""
    made = planned([TOP, *CALLED])
    assert set(made) == {"top", "parse", "miss"}
    assert {watch.inside_of for watch in made.values()} == {TOP.key}
    assert made["top"].looks_inside and not made["top"].follows
    assert made["parse"].follows and made["miss"].follows
    assert made["top"].burst_hits == pytest.approx(2 * 231, abs=1)
    assert made["parse"].burst_hits > 2 * 2 * 231
    assert made["top"].on_ns == pytest.approx(LATER * 231 / 4000 * SECOND, rel=0.01)
    assert made["parse"].on_ns > made["top"].on_ns


def test_it_takes_a_fixed_share_of_the_budget() -> None:
    """What function and callees cost in an on-phase, over its period, is that share, however dear their calls are."""
    for dear in (1.0, 4.0):
        calls = 1000.0
        paid = Paid(calls=calls, hits=2 * calls, cost_ns=dear * calls * PRICES.time_ns)
        functions = [replace(each, probe=replace(each.probe, paid=paid)) for each in (TOP, *CALLED)]
        means = replace(MEANS, budget=2e6, income=2e6, cash=9e6)
        made = planned(functions, means)
        seconds = made["top"].on_ns / SECOND / LATER
        cost_ns = dear * PRICES.time_ns * seconds * sum(each.probe.rate or 0.0 for each in functions)
        assert cost_ns * SECOND / made["top"].period_ns == pytest.approx(LOOKING_INSIDE * means.income, rel=0.1)


def test_the_bucket_of_the_function_ends_an_on_phase_that_must_be_short() -> None:
    """With a callee that is called all the time only some calls can be paid for: no more than these are timed."""
    busy = finished("busy", 200_000.0, TOP)
    means = replace(MEANS, budget=1e6, income=1e6, cash=5e6)
    made = planned([TOP, busy], means)
    calls = made["top"].burst_hits / 2
    assert 20 <= calls < 120
    assert PRICES.time_ns * calls * (1 + 200_000 / 4000) <= means.savable


def test_each_on_phase_of_a_finished_function_is_looked_at() -> None:
    """A window of several would show a change minutes later. What is being explained needs whole ones."""
    made = planned([TOP, *CALLED])
    assert {watch.minimum_calls for watch in made.values()} == {LEAST_CALLS}
    explaining = finished("top", 4000.0, state=State.EXPLAINING)
    called = [finished("parse", 4000.0, explaining), finished("miss", 1000.0, explaining)]
    made = planned([explaining, *called])
    assert {name: watch.minimum_calls for name, watch in made.items()} == {
        "top": Settings().minimum_calls, "parse": LEAST_CALLS, "miss": LEAST_CALLS
    }  # fmt: skip


@pytest.mark.parametrize(
    "means",
    [
        replace(MEANS, slow_links=True),
        replace(MEANS, cash=-1e7),
        replace(MEANS, cash=0.0),
        replace(MEANS, budget=1e4, income=1e4, cash=5e4),
    ],
    ids=["slow links", "debt", "no cash", "too little"],
)
def test_nothing_is_begun_that_cannot_be_afforded(means: Means) -> None:
    """Not over slow links, in debt, or for a handful of calls."""
    assert planned([TOP, *CALLED], means) == {}


def test_what_has_begun_goes_on_in_a_small_debt() -> None:
    """An on-phase may cost what some seconds bring, and is paid back before the next; a larger debt ends it."""
    watch = planned([TOP, *CALLED])["top"]
    on = [replace(TOP, probe=replace(TOP.probe, watch=watch, watched_since_ns=MEANS.now_ns)), *CALLED]
    assert set(planned(on, replace(MEANS, cash=-2e7))) == {"top", "parse", "miss"}
    assert planned(on, replace(MEANS, cash=-4e7)) == {}


def test_what_is_known_is_not_looked_into() -> None:
    """Once enough windows had all these callees timed; a part of them is not enough."""
    assert planned([with_known(TOP, *CALLED), *CALLED]) == {}
    assert planned([with_known(TOP, CALLED[0]), *CALLED])
    assert planned([with_known(TOP, *CALLED, windows=4), *CALLED])


def test_what_nothing_explains_comes_first_and_others_have_turns() -> None:
    """Unexplained functions have two of three turns, unless their callees were known when that was found."""
    other = finished("other", 9000.0)
    odd = finished("odd", 50.0, state=State.UNEXPLAINED)
    functions = [TOP, *CALLED, other, finished("a", 9000.0, other), odd, finished("b", 50.0, odd)]

    def led(turn: int, among: Sequence[FunctionState] = functions) -> str:
        made = planned(among, replace(MEANS, now_ns=turn * TURN_NS + 1))
        (leader,) = (name for name, watch in made.items() if watch.looks_inside)
        return leader

    turns = [led(turn) for turn in range(12)]
    assert turns.count("odd") >= 8
    assert {"top", "other"} <= set(turns)
    tried = [
        replace(each, explanation=replace(each.explanation, callees=1)) if each is odd else each for each in functions
    ]
    assert {led(turn, tried) for turn in range(12)} == {"top", "other", "odd"}
    assert [led(turn, tried) for turn in range(12)].count("odd") == 4


def test_one_has_its_whole_turn() -> None:
    """While it goes on another is not taken up, though the order has changed; then it is the next one's turn."""
    other = finished("other", 9000.0)
    functions = [TOP, *CALLED, other, finished("a", 9000.0, other)]
    means = replace(MEANS, now_ns=7 * TURN_NS + 1)
    first = planned(functions, means)
    (leader,) = (name for name, watch in first.items() if watch.looks_inside)
    looked_into = [
        replace(each, probe=replace(each.probe, watch=first[leader], watched_since_ns=means.now_ns))
        if each.function.name == leader
        else each
        for each in functions
    ]
    extra = finished("extra", 5000.0)
    looked_into += [extra, finished("x", 5000.0, extra), finished("y", 5000.0, extra)]
    assert planned(looked_into, replace(means, now_ns=8 * TURN_NS - 1))[leader].looks_inside
    leaders = set()
    for turn in range(8, 11):
        made = planned(looked_into, replace(means, now_ns=turn * TURN_NS))
        leaders |= {name for name, watch in made.items() if watch.looks_inside}
    assert leaders == {"top", "other", "extra"}


def test_only_the_callees_with_most_time_follow() -> None:
    """Four of them; one that is on anyway keeps its watch, and so does a function that is on all the time."""
    many = [finished(f"callee{rate}", float(rate), TOP) for rate in range(1000, 1007)]
    followers = {name for name, watch in planned([TOP, *many]).items() if watch.follows}
    assert followers == {f"callee{rate}" for rate in range(1007 - CALLEES, 1007)}
    on = Watch(function=CALLED[0].key, kind=Kind.TIME)
    made = planned([TOP, *CALLED], so_far=Plan(watches={CALLED[0].key: on}, left=1e7, cash=5e7))
    assert made["parse"] is on and made["miss"].follows
    alone = Plan(watches={TOP.key: replace(on, function=TOP.key)}, left=1e7, cash=5e7)
    assert set(planned([TOP, *CALLED], so_far=alone)) == {"top"}


def test_callees_are_known_from_windows_where_nothing_is_sampled() -> None:
    """Of functions that the user named no stack is sampled; their probes were hit inside calls all the same."""
    top, parse, miss = (replace(each, profile=Profile()) for each in (TOP, *CALLED))
    assert planned([top, parse, miss]) == {}
    seen = with_known(top, parse, windows=1)
    assert {name for name, watch in planned([seen, parse, miss]).items() if watch.follows} == {"parse"}
    (window,) = seen.history.timing
    partly = tuple(
        replace(part, timed=(), partly=(miss.function.frame, parse.function.frame)) for part in window.inside
    )
    seen = replace(seen, history=History(timing=(replace(window, inside=partly),)))
    assert {name for name, watch in planned([seen, parse, miss]).items() if watch.follows} == {"miss", "parse"}


def test_a_function_that_is_being_explained_is_looked_into_as_well() -> None:
    """These on-phases bring call paths, and learning leaves it to them; a callee has to be finished."""
    explaining = replace(TOP, phase=Phase(state=State.EXPLAINING))
    made = planned([explaining, *CALLED])
    assert made["top"].looks_inside and made["top"].kind is Kind.PATH
    functions = {each.key: each for each in (explaining, *CALLED)}
    total = total_of(functions.values())
    start = Plan(watches={made["top"].function: made["top"]}, left=1e7, cash=5e7)
    assert with_learning(functions.values(), total, start, MEANS, Settings()).watches[TOP.key] is made["top"]
    timing = replace(CALLED[0], phase=Phase(state=State.TIMING))
    assert set(planned([explaining, timing, CALLED[1]])) == {"top", "miss"}


def test_what_may_have_changed_keeps_its_own_on_phases() -> None:
    """Neither is it looked into, nor does it follow: its windows are wanted as often as can be."""
    surprising = replace(MEANS, surprising=frozenset({CALLED[0].key}))
    assert set(planned([TOP, *CALLED], surprising)) == {"top", "miss"}
    assert planned([TOP, *CALLED], replace(MEANS, surprising=frozenset({TOP.key}))) == {}


def test_on_phases_are_rare_while_our_own_cpu_time_is_short() -> None:
    """Each brings several windows. A turn still has enough of them, since that time may be short for hours."""
    usual, sparing = (planned([TOP, *CALLED], replace(MEANS, pressure=each))["top"].period_ns for each in (0.0, 1.0))
    assert usual < 2 * SECOND
    assert 5 < TURN_NS / sparing < 10


def test_on_phases_of_their_own_give_way() -> None:
    """A check that is due is made in the on-phases that are shared."""
    functions = [TOP, *CALLED]
    checked = with_checks(
        functions, total_of(functions), Plan(left=1e6, cash=9e6), replace(MEANS, budget=1e6, income=1e6), Settings()
    )
    assert any(watch.on_ns for watch in checked.watches.values())
    made = planned(functions, replace(MEANS, budget=1e6, income=1e6), checked)
    assert {watch.inside_of for watch in made.values()} == {TOP.key}


def test_requests_differ_by_what_they_look_into() -> None:
    """A change of that is requested at once, and one of the bucket of a callee; recordings hold both kinds."""
    watch = planned([TOP, *CALLED])["parse"]
    assert same_enough(watch, replace(watch, period_ns=watch.period_ns + 1))
    assert not same_enough(watch, replace(watch, inside_of=""))
    assert not same_enough(watch, replace(watch, burst_hits=2 * watch.burst_hits))
    assert decode(Watch, encode(watch)) == watch
    assert "inside_of" not in encode(Watch(function="f", kind=Kind.TIME)), "as in recordings before there was any"


def test_no_calls_are_looked_into_while_many_functions_wait_for_their_levels() -> None:
    """What callees take is told of functions that are known; others come first while few are."""
    assert set(planned([TOP, *CALLED], replace(MEANS, backlog=0.5))) == {"top", "parse", "miss"}
    assert planned([TOP, *CALLED], replace(MEANS, backlog=0.6)) == {}
