"""Utility is nothing where a lifetime was observed enough, and comes back with the next one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specmine.daemon.config.settings import Settings
from specmine.daemon.controller.allocation.function_request import predicted
from specmine.daemon.controller.allocation.means import Means
from specmine.daemon.controller.allocation.scheduler import plan
from specmine.daemon.controller.allocation.utility import priority, utility
from specmine.daemon.controller.call_counts import Paid, ProbeState
from specmine.daemon.controller.function import FunctionState, Identity
from specmine.daemon.controller.history import History, Summary
from specmine.daemon.controller.hotness import total_of
from specmine.daemon.controller.inference import InferenceState
from specmine.daemon.controller.phase import Phase, State
from specmine.daemon.controller.profile import Profile
from specmine.daemon.controller.violations.function_violations import FunctionViolations, OpenViolation
from specmine.mining.assertions.checks import Verification
from specmine.mining.borders.inference import Inference
from specmine.mining.detection.alarm import Alarm, Stream
from specmine.mining.detection.detector import DetectorState
from specmine.mining.detection.innovations import STEPS
from specmine.mining.detection.state import Excursion, first_state
from specmine.mining.regression.lifetime_utility import Lifetimes, with_window
from specmine.model.batch import Lifetime, Prices
from specmine.model.function import Function
from specmine.model.histogram import Histogram
from specmine.model.observation import Kind, Observation
from specmine.model.violation import Direction, Violation, What
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


def seen(function: FunctionState, seconds_ago: float, urgency: float = 0.0) -> FunctionState:
    """Return a function whose last window is so old, and that is suspected to have changed with this evidence."""
    end_ns = NOW_NS - int(seconds_ago * SECOND)
    window = Observation(
        function=FUNCTION.key, lifetime="5", kind=Kind.TIME, start_ns=end_ns - SECOND, end_ns=end_ns,
        histogram=Histogram.from_durations([1000] * 300), calls=300, watched_ns=SECOND,
    )  # fmt: skip
    alarm = Alarm(
        stream=Stream(what=What.LEVEL, part="all"), direction=Direction.SLOWER, factor=2.0, factor_low=1.5,
        factor_high=2.5, since_ns=end_ns, windows=2, log_e=urgency, opened=False,
    )  # fmt: skip
    return replace(
        function,
        history=replace(function.history, timing=(window,)),
        violations=FunctionViolations(alarms=(alarm,) if urgency else ()),
    )


MEANS = Means(budget=1e7, income=1e7, cash=1e8, prices=PRICES, slow_links=False, now_ns=NOW_NS, running=running("5"))


def test_it_is_not_learned_again_but_its_check_is_planned() -> None:
    """Within ten seconds of its last window its probes stay off; then, and for a new lifetime, they are attached."""
    fresh, old = seen(learned(), 2.0), seen(learned(), 11.0)
    assert plan({FUNCTION.key: fresh}, MEANS, Settings()).watches == {}
    assert FUNCTION.key in plan({FUNCTION.key: fresh}, replace(MEANS, running=running("6")), Settings()).watches
    assert FUNCTION.key in plan({FUNCTION.key: old}, MEANS, Settings()).watches
    due = replace(fresh, verification=Verification(checked_ns=NOW_NS - 61 * SECOND))
    assert FUNCTION.key in plan({FUNCTION.key: due}, MEANS, Settings()).watches


def test_debts_are_paid_back_before_more_is_watched_than_promised() -> None:
    """In debt only checks that are due get probes."""
    old = seen(learned(), 11.0)
    assert plan({FUNCTION.key: old}, replace(MEANS, cash=-1.0), Settings()).watches == {}


def test_what_is_suspected_does_not_wait_until_debts_are_paid_back() -> None:
    """One that is suspected gets an on-phase, of the size of what five seconds bring at most; others none."""
    means = replace(MEANS, budget=2e4, income=1e6, cash=-1e6)
    calm, suspected = seen(learned(), 70.0), seen(learned(), 6.0, urgency=9.0)
    assert plan({FUNCTION.key: calm}, means, Settings()).watches == {}
    found = plan({FUNCTION.key: suspected}, means, Settings())
    assert FUNCTION.key in found.watches and -1e6 - 5e6 < found.cash < -1e6
    many = {}
    for place in range(12):
        function = replace(FUNCTION, offset=place + 1)
        many[function.key] = seen(replace(learned(), identity=Identity(function=function)), 6.0, urgency=9.0)
    assert plan(many, means, Settings()).cash >= -1e6 - 5e6


def test_a_suspected_function_comes_first_and_in_short_windows() -> None:
    """It has probes at once, and its windows end after five seconds instead of ten."""
    suspected = seen(replace(learned(), probe=ProbeState(rate=1000.0)), 2.0, urgency=9.0)
    watch = plan({FUNCTION.key: suspected}, MEANS, Settings()).watches[FUNCTION.key]
    assert (watch.window_ns, watch.on_ns) == (5 * SECOND, 0)
    calm = seen(replace(learned(), probe=ProbeState(rate=1000.0)), 11.0)
    assert plan({FUNCTION.key: calm}, MEANS, Settings()).watches[FUNCTION.key].window_ns == 10 * SECOND


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


def test_what_a_suspected_function_calls_is_observed_at_once() -> None:
    """Also through a third, in debt and under full pressure, but once since the change, and no more than four."""
    caller = seen(learned(), 3.0, urgency=9.0)
    middle = replace(FUNCTION, offset=50)
    functions = {
        FUNCTION.key: caller,
        middle.key: FunctionState(
            identity=Identity(function=middle), profile=Profile(callers=((FUNCTION.key, 1.0),)), phase=Phase()
        ),
    }
    names = {}
    for place, (name, ago, above) in enumerate(
        (
            ("below", 5.0, FUNCTION.key),
            ("far below", 5.0, middle.key),
            ("seen since", 1.0, FUNCTION.key),
            ("elsewhere", 5.0, "nobody"),
        )
    ):
        one = replace(FUNCTION, offset=100 + place)
        profile = Profile(callers=((above, 1.0),), inclusive_ns=100.0 + place)
        functions[one.key] = seen(replace(learned(), identity=Identity(function=one), profile=profile), ago)
        names[one.key] = name
    tight = replace(MEANS, budget=2e4, income=1e6, cash=-1e6, pressure=1.0)
    found = plan(functions, tight, Settings())
    assert {names[key] for key in found.watches if key in names} == {"below", "far below"}
    assert FUNCTION.key in found.watches and found.cash >= -1e6 - 5e6
    weak = {**functions, FUNCTION.key: seen(learned(), 3.0, urgency=4.5)}
    assert set(plan(weak, tight, Settings()).watches) == {FUNCTION.key}
    for place in range(8):
        one = replace(FUNCTION, offset=200 + place)
        functions[one.key] = seen(
            replace(learned(), identity=Identity(function=one), profile=Profile(callers=((FUNCTION.key, 1.0),))), 5.0
        )
    many = plan(functions, tight, Settings())
    assert len(many.watches) == 5 and set(found.watches) < set(many.watches)


@pytest.mark.parametrize(
    ("evidence", "step", "ago_s", "again"),
    [(1.5, 0, 6.0, True), (0.5, 0, 6.0, False), (1.5, -1, 6.0, False), (1.5, 0, 4.0, False)],
)
def test_what_deviates_below_a_suspected_function_is_observed_again(
    evidence: float, step: int, ago_s: float, again: bool
) -> None:
    """After one window since the change a little evidence of its own is enough: of being slower, five seconds ago."""
    below = replace(FUNCTION, offset=100)
    excursion = Excursion(
        step=step % len(STEPS), evidence=evidence, size=0.7, unsure=0.1, absorbed=0.0, windows=1, total=0.7, since=0.0
    )
    stream = replace(first_state(Stream(what=What.LEVEL, part="all"), 10.0, 0.001), excursions=(excursion,))
    profile = Profile(callers=((FUNCTION.key, 1.0),), inclusive_ns=100.0)
    callee = seen(replace(learned(), identity=Identity(function=below), profile=profile), ago_s)
    detector = DetectorState(streams=(stream,))
    callee = replace(callee, violations=replace(callee.violations, detector=detector))
    callee = replace(callee, verification=Verification(checked_ns=NOW_NS - round(ago_s * SECOND)))
    functions = {FUNCTION.key: seen(learned(), 8.0, urgency=9.0), below.key: callee}
    tight = replace(MEANS, budget=2e4, income=1e6, cash=-1e6, pressure=1.0)
    assert (below.key in plan(functions, tight, Settings()).watches) is again


def test_learning_gives_way_to_checks() -> None:
    """With debts of our own time checks come each minute until learning is at a quarter, then after up to three."""
    checked = replace(seen(learned(), 2.0), verification=Verification(checked_ns=NOW_NS - 61 * SECOND))
    functions = {FUNCTION.key: checked}
    for stretch, ago_s, due in (
        (1.0, 61, True),
        (2.0, 61, True),
        (3.0, 61, False),
        (3.0, 121, True),
        (4.0, 170, False),
    ):
        tight = replace(MEANS, pressure=1.0, stretch=stretch)
        verification = Verification(checked_ns=NOW_NS - ago_s * SECOND)
        functions[FUNCTION.key] = replace(checked, verification=verification)
        assert (FUNCTION.key in plan(functions, tight, Settings()).watches) is due
    fast = replace(functions[FUNCTION.key], verification=Verification(checked_ns=NOW_NS - 200 * SECOND))
    for rate in (10.0, 1e3, 1e4, 1e5):
        functions[FUNCTION.key] = replace(fast, probe=replace(fast.probe, rate=rate))
        for stretch in (1.0, 2.5, 4.0):
            tight = replace(MEANS, pressure=1.0, stretch=stretch)
            assert FUNCTION.key in plan(functions, tight, Settings()).watches, (rate, stretch)
    apart = {}
    for stretch in (1.0, 2.0, 4.0):
        tight = replace(MEANS, pressure=1.0, stretch=stretch)
        beginning = replace(FUNCTION, offset=900)
        new = FunctionState(
            identity=Identity(function=beginning), profile=Profile(own_ns=1e9, inclusive_ns=1e9),
            phase=Phase(state=State.WAITING), probe=ProbeState(rate=50_000.0),
        )  # fmt: skip
        apart[stretch] = plan({new.key: new}, tight, Settings()).watches[new.key].period_ns
    assert [apart[each] / SECOND for each in (1.0, 2.0, 4.0)] == [10, 40, Settings().limit_ns / SECOND]


def test_what_is_kept_for_watching_is_used_unless_our_own_work_must_be_saved() -> None:
    """A window is due ten seconds after the last check, under full pressure after ``verify_every``."""
    checked = replace(seen(learned(), 2.0), verification=Verification(checked_ns=NOW_NS - 11 * SECOND))
    assert FUNCTION.key in plan({FUNCTION.key: checked}, MEANS, Settings()).watches
    assert plan({FUNCTION.key: checked}, replace(MEANS, pressure=1.0), Settings()).watches == {}


def unseen(number: int) -> FunctionState:
    """Return a hot function that nothing is known of but where it was sampled."""
    found = replace(FUNCTION, offset=100 + number, name=f"g{number}")
    return FunctionState(identity=Identity(function=found), profile=Profile(samples=9, own_ns=1e9, cpu_ns=1e9))


POOR = replace(MEANS, budget=1e6, income=1e6, cash=2.5e6)


def test_what_costs_more_than_can_be_saved_up_is_not_waited_for_for_ever() -> None:
    """With all the savings there can be, a first look begins, and so does a window, at whatever price."""
    dear = replace(PRICES, time_ns=40_000.0)
    rich = replace(POOR, cash=5e6, prices=dear)
    hot = {each.key: each for each in map(unseen, range(16))}
    assert len(plan(hot, rich, Settings()).watches) == 1
    waiting = replace(unseen(1), phase=Phase(state=State.WAITING), probe=ProbeState(rate=5000.0))
    (watch,) = plan({waiting.key: waiting}, rich, Settings()).watches.values()
    assert watch.on_ns > 0
    assert not plan({waiting.key: waiting}, replace(rich, cash=3e6), Settings()).watches


def test_windows_hold_fewer_calls_while_many_functions_wait() -> None:
    """Where few wait, a window is as long as configured; where many do, and calls cost what they were found to, not."""

    def calls(count: int) -> set[int]:
        phase, probe = Phase(state=State.WAITING), ProbeState(rate=5000.0)
        waiting = [replace(unseen(number), phase=phase, probe=probe) for number in range(count)]
        rich = replace(MEANS, budget=1e7, income=1e7, cash=1e9)
        return {
            watch.window_calls for watch in plan({one.key: one for one in waiting}, rich, Settings()).watches.values()
        }

    assert calls(4) == {1000}
    (few,) = calls(200)
    assert 210 <= few < 500


def test_checks_come_in_smaller_windows_where_full_ones_would_come_rarely() -> None:
    """Twenty windows of 840 calls cost 24 ms, which are there each 70 s: each holds a quarter of that, then a tenth."""

    def asked(number: int) -> set[tuple[int, int]]:
        finished = []
        for offset in range(number):
            function = replace(FUNCTION, offset=100 + offset)
            checked = Verification(checked_ns=NOW_NS - 200 * SECOND)
            finished.append(replace(learned(), identity=Identity(function=function), verification=checked))
        made = plan({one.key: one for one in finished}, replace(POOR, cash=1e9), Settings()).watches.values()
        assert all(watch.burst_hits <= 2.3 * watch.window_calls for watch in made)
        return {(watch.window_calls, watch.minimum_calls) for watch in made if watch.on_ns}

    assert asked(4) == {(840, 200)}
    assert asked(20) == {(210, 200)}
    assert asked(100) == {(110, 110)}


def test_an_on_phase_allows_as_many_hits_as_its_window_needs() -> None:
    """Calls that cost more, for their path or in cold caches, are no more calls; hits that none needs are allowed."""

    def burst(paid: Paid, kind: Kind = Kind.TIME) -> int:
        phase = Phase(state=State.EXPLAINING if kind is Kind.PATH else State.WAITING)
        one = replace(unseen(1), phase=phase, probe=ProbeState(rate=50_000.0, paid=paid))
        (watch,) = plan({one.key: one}, replace(MEANS, budget=1e7, income=1e7, cash=1e9), Settings()).watches.values()
        assert watch.kind is kind
        return watch.burst_hits

    times = Paid(calls=1000.0, hits=2000.0, cost_ns=1000 * PRICES.time_ns)
    paths = replace(times, by_path=1000.0, cost_ns=1000 * PRICES.path_ns)
    assert burst(Paid()) == burst(times) == burst(paths, Kind.PATH) == 2200
    assert burst(replace(times, cost_ns=3 * times.cost_ns)) == 2200
    assert burst(replace(times, hits=5000.0)) == 5500


def test_call_paths_do_not_take_the_budget_from_functions_that_wait_for_their_first_levels() -> None:
    """What explains others has a quarter of what is left while one waits, and as much as brings more if none does."""

    def paid_for_paths(*, waits: bool) -> float:
        probe = ProbeState(rate=50_000.0)
        some = [replace(unseen(n), phase=Phase(state=State.EXPLAINING), probe=probe) for n in range(6)]
        some += [replace(unseen(9), phase=Phase(state=State.WAITING), probe=probe)] if waits else []
        by_key, means = {one.key: one for one in some}, replace(POOR, cash=1e9)
        made = plan(by_key, means, Settings()).watches
        return sum(predicted(by_key[key], w, means, Settings()) for key, w in made.items() if w.kind is Kind.PATH)

    assert 0.15 * POOR.budget <= paid_for_paths(waits=True) <= 0.26 * POOR.budget
    assert paid_for_paths(waits=False) >= 0.7 * POOR.budget


def test_checks_take_no_more_than_is_kept_for_them() -> None:
    """Each of fifty finished functions is observed as often as its window can be paid for, at least each minute."""

    def due(age_s: int) -> int:
        checked = Verification(checked_ns=NOW_NS - age_s * SECOND)
        finished = []
        for number in range(50):
            function = replace(FUNCTION, offset=100 + number, name=f"g{number}")
            one = replace(learned(), identity=Identity(function=function), verification=checked)
            finished.append(seen(one, 2.0))
        means = replace(MEANS, budget=1e7, income=1e7, cash=1e9)
        return len(plan({one.key: one for one in finished}, means, Settings(verification=0.2)).watches)

    assert not due(15)  # 50 windows of half their size, 550 calls, cost 36 ms: 2 ms a second pay for them in 18 s
    assert due(20)


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


def test_what_is_shorter_than_the_probes_are_unsure_by_is_learned_last() -> None:
    """Of two with as many samples and calls that one comes first whose changes would be seen."""

    def waiting(number: int, duration_ns: float) -> FunctionState:
        durations = Histogram.from_durations([duration_ns] * 100)
        window = Observation(
            function=FUNCTION.key, lifetime="5", kind=Kind.TIME, start_ns=0, end_ns=SECOND, histogram=durations,
            calls=100, watched_ns=SECOND, uncertainty_ns=300.0,
        )  # fmt: skip
        return replace(
            unseen(number),
            phase=Phase(state=State.WAITING),
            probe=ProbeState(rate=5000.0),
            history=History(timing=(window,), histogram=durations, summary=Summary.of(durations)),
        )

    both = [waiting(1, 150.0), waiting(2, 3000.0)]
    total, means = total_of(both), replace(MEANS, cpu_rate=1e8)
    assert priority(both[1], total, means, Settings()) < priority(both[0], total, means, Settings())


def test_what_the_first_calls_took_bounds_what_samples_say() -> None:
    """A sample that met one of ten short calls a second does not make it a tenth of the program."""
    lucky, work = unseen(1), unseen(2)
    durations = Histogram.from_durations([2000.0] * 100)
    window = Observation(
        function=FUNCTION.key, lifetime="5", kind=Kind.TIME, start_ns=0, end_ns=SECOND, histogram=durations,
        calls=100, watched_ns=SECOND,
    )  # fmt: skip
    history = History(timing=(window,), histogram=durations, summary=Summary.of(durations))
    rare, often = (
        replace(one, phase=Phase(state=State.WAITING), probe=ProbeState(rate=rate), history=history)
        for one, rate in ((lucky, 10.0), (work, 10_000.0))
    )
    total, means = total_of([rare, often]), replace(MEANS, cpu_rate=2e7)
    assert priority(often, total, means, Settings()) < priority(rare, total, means, Settings())


def test_while_many_wait_only_candidates_that_would_come_first_are_looked_at() -> None:
    """A first look costs what those that wait would get; a function that is named has it all the same."""
    probe = ProbeState(rate=5000.0)
    waiting = [replace(unseen(n), phase=Phase(state=State.WAITING), probe=probe) for n in range(40)]
    small = Profile(samples=9, own_ns=3e8, cpu_ns=3e8)
    minor, major = replace(unseen(50), profile=small), unseen(51)
    named = replace(minor, identity=Identity(function=replace(FUNCTION, offset=900, name="h"), hinted=True))

    def looked_at(candidate: FunctionState, others: int, means: Means = MEANS) -> bool:
        functions = {one.key: one for one in (*waiting[:others], candidate)}
        return candidate.key in plan(functions, replace(means, cash=1e9), Settings()).watches

    dear = replace(POOR, prices=replace(PRICES, time_ns=10_000.0))  # fifteen can be learned in five minutes
    assert looked_at(minor, 20)
    assert not looked_at(minor, 20, dear)
    assert looked_at(minor, 10, dear)
    assert not looked_at(major, 20, dear)
    larger = replace(major, profile=replace(major.profile, own_ns=2.2e9, cpu_ns=2.2e9))
    assert looked_at(larger, 20, dear)
    few = replace(larger, profile=replace(larger.profile, samples=3))  # one sample more would be chance
    assert not looked_at(few, 20, dear)
    assert not looked_at(minor, 40) and not looked_at(major, 40)
    assert looked_at(larger, 40) and looked_at(named, 40)


def test_what_mostly_waits_counts_no_more_for_all_the_time_within_it() -> None:
    """A main loop holds all of the program's time, and tells only how much work there is."""
    durations = Histogram.from_durations([3e6] * 100)
    window = Observation(
        function=FUNCTION.key, lifetime="5", kind=Kind.TIME, start_ns=0, end_ns=SECOND, histogram=durations,
        calls=100, watched_ns=SECOND,
    )  # fmt: skip
    history = History(timing=(window,), histogram=durations, summary=Summary.of(durations))
    loop, handler = (
        replace(
            unseen(number), profile=Profile(samples=9), phase=Phase(state=State.WAITING), probe=ProbeState(rate=rate),
            history=history,
        )
        for number, rate in ((1, 300.0), (2, 3.0))
    )  # fmt: skip
    total, means = total_of([loop, handler, unseen(3)]), replace(MEANS, cpu_rate=2e7)
    assert priority(handler, total, means, Settings()) < priority(loop, total, means, Settings())
    waiting = replace(means, idle={handler.key: 0.95})
    assert priority(loop, total, waiting, Settings()) < priority(handler, total, waiting, Settings())


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


def violated(offset: int, seen_s: float) -> FunctionState:
    """Return a function with an open violation whose newest window ended so long ago."""
    one = seen(replace(learned(), identity=Identity(function=replace(FUNCTION, offset=offset))), seen_s)
    one = replace(one, verification=Verification(checked_ns=NOW_NS - SECOND))
    violation = Violation(
        function=one.key, what=What.LEVEL, direction=Direction.SLOWER, factor=3.0, factor_low=2.5, factor_high=3.5,
        since_ns=NOW_NS - 60 * SECOND, found_ns=NOW_NS - 30 * SECOND,
    )  # fmt: skip
    standing = (OpenViolation(violation=violation),)
    return replace(one, violations=replace(one.violations, standing=standing))


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
