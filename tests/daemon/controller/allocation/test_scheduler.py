"""Who gets the budget: first looks, windows, learning after checks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specmine.daemon.config.settings import Settings
from specmine.daemon.controller.allocation.function_request import predicted
from specmine.daemon.controller.allocation.means import Means
from specmine.daemon.controller.allocation.scheduler import plan
from specmine.daemon.controller.call_counts import Paid, ProbeState
from specmine.daemon.controller.function import FunctionState, Identity
from specmine.daemon.controller.history import History
from specmine.daemon.controller.phase import Phase, State
from specmine.daemon.controller.sampling.profile import Profile
from specmine.mining.assertions.checks import Verification
from specmine.model.observation import Kind
from tests.support.planned import FUNCTION, MEANS, NOW_NS, POOR, PRICES, learned, seen, unseen
from tests.support.simulated import SECOND


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


def test_first_looks_wait_until_a_deep_debt_is_paid_back() -> None:
    """A small one does not keep them waiting, as that of sampling at the start: one at a time."""
    hot = {each.key: each for each in map(unseen, range(16))}
    for owed_s, looks in ((-1.0, 16), (1.0, 1), (9.0, 1), (11.0, 0)):
        means = replace(MEANS, income=1e6, budget=1e6, cash=-owed_s * 1e6)
        assert len(plan(hot, means, Settings()).watches) <= looks, owed_s
        assert bool(plan(hot, means, Settings()).watches) is bool(looks)


def test_first_looks_are_rare_while_our_own_cpu_time_is_short() -> None:
    """One at a time, fifteen seconds apart, and further with what is owed; not of what something else asks for."""
    hot = {each.key: each for each in map(unseen, range(16))}

    def looks(pressure: float, since_s: float, stretch: float = 1.0, *, hinted: bool = False) -> int:
        last = replace(unseen(99), phase=Phase(state=State.WAITING), probe=ProbeState(first_watch_ns=1))
        known = {key: replace(one, identity=replace(one.identity, hinted=hinted)) for key, one in hot.items()}
        now_ns = round(since_s * SECOND) + 1
        means = replace(MEANS, cash=1e9, pressure=pressure, stretch=stretch, now_ns=now_ns)
        return len(plan({**known, last.key: last}, means, Settings()).watches.keys() & hot.keys())

    assert looks(0.0, 1) == 16
    assert (looks(1.0, 14), looks(1.0, 16)) == (0, 1)
    assert (looks(1.0, 59, 4.0), looks(1.0, 61, 4.0)) == (0, 1)
    assert (looks(0.5, 7), looks(0.5, 8)) == (0, 8)
    assert looks(1.0, 1, hinted=True) == 16


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
    """Those have a quarter of what is left while one waits, less while many do, and most of it if none does."""

    def paid_for_paths(*, waits: int) -> float:
        probe = ProbeState(rate=50_000.0)
        some = [replace(unseen(n), phase=Phase(state=State.EXPLAINING), probe=probe) for n in range(6)]
        some += [replace(unseen(9 + n), phase=Phase(state=State.WAITING), probe=probe) for n in range(waits)]
        by_key, means = {one.key: one for one in some}, replace(POOR, cash=1e9)
        made = plan(by_key, means, Settings()).watches
        return sum(predicted(by_key[key], w, means, Settings()) for key, w in made.items() if w.kind is Kind.PATH)

    assert 0.15 * POOR.budget <= paid_for_paths(waits=1) <= 0.26 * POOR.budget
    assert 0 < paid_for_paths(waits=8) <= 0.1 * POOR.budget
    assert paid_for_paths(waits=0) >= 0.7 * POOR.budget


def test_until_enough_functions_are_known_others_come_before_checks_and_call_paths() -> None:
    """Not if they are hardly called, or have become stable in none of many windows: these may wait for hours."""
    known = replace(seen(learned(), 2.0), verification=Verification(checked_ns=NOW_NS - 2 * SECOND))
    wait = ProbeState(rate=5000.0)

    def apart_s(waiting: int, known_too: int = 0, probe: ProbeState = wait, tried: int = 0) -> float:
        """Return how far apart checks are, a function's."""
        others = [
            replace(unseen(n), phase=Phase(state=State.WAITING), probe=probe, history=replace(History(), tried=tried))
            for n in range(waiting)
        ]
        others += [replace(known, identity=replace(known.identity, function=replace(FUNCTION, offset=500 + n)))
                   for n in range(known_too)]  # fmt: skip
        functions = {one.key: one for one in (known, *others)}
        made = plan(functions, replace(MEANS, cash=1e9), Settings())
        return (made.check_ns - NOW_NS + 2 * SECOND) * (1 + known_too) / SECOND

    assert apart_s(0) == apart_s(8, probe=ProbeState(rate=0.5)) == apart_s(8, tried=16) == pytest.approx(10)
    assert 30 < apart_s(4) < 40 < apart_s(8) < 60
    assert 30 < apart_s(8, known_too=11) < 40
    assert apart_s(8, known_too=23) == pytest.approx(10, rel=0.1)


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


def test_what_others_save_for_is_not_spent_on_more_windows_of_what_is_known() -> None:
    """A finished function that is on, and would tell more, goes off while another one saves for a window."""
    known = replace(learned(), probe=ProbeState(rate=20_000.0, watch=None))
    means = replace(POOR, cash=5e5, running=())
    (on,) = plan({known.key: known}, replace(means, cash=1e9), Settings()).watches.values()
    known = replace(known, probe=replace(known.probe, watch=on))
    saving = replace(unseen(1), phase=Phase(state=State.WAITING), probe=ProbeState(rate=5000.0))
    assert known.key in plan({known.key: known}, means, Settings()).watches
    made = plan({known.key: known, saving.key: saving}, means, Settings())
    assert saving.key in made.waiting
    assert not made.watches
