"""Which function comes first, and how many calls a window of it holds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specmine.daemon.config.settings import SECOND, Settings
from specmine.daemon.controller.allocation.function_request import predicted
from specmine.daemon.controller.allocation.means import Means
from specmine.daemon.controller.allocation.request import FIRST_LEVEL, FIRST_NUMBERS, affordable_window, first_look
from specmine.daemon.controller.call_counts import ProbeState
from specmine.daemon.controller.function import FunctionState, Identity
from specmine.daemon.controller.hotness import (
    Ancestry,
    Total,
    in_order,
    is_doubted,
    is_idle,
    own_share,
    share,
    total_of,
    waits_for_work,
)
from specmine.daemon.controller.sampling.profile import Profile
from specmine.mining.detection.alarm import Alarm, Stream
from specmine.model.batch import HotSample, Prices, Watch
from specmine.model.function import Function
from specmine.model.observation import Kind
from specmine.model.violation import Direction, What

MS = 1_000_000
PRICES = Prices(count_ns=700.0, time_ns=2000.0, path_ns=2600.0, stepped_ns=8000.0, sample_ns=10_000.0, bias_ns=650.0)


def sampled(name: str, profile: Profile) -> FunctionState:
    """Return a function of which only the profile is known."""
    function = Function(name=name, module="m", build_id="b", offset=sum(map(ord, name)))
    return FunctionState(identity=Identity(function=function), profile=profile)


def test_windows_shrink_where_calls_are_dear() -> None:
    """Eight windows fit into what a budget earns in the time of one; 210 calls at least, at most as many as asked."""
    settings = replace(Settings(), window_ns=3 * SECOND)
    assert affordable_window(10.0 * MS, PRICES, settings) == 1000
    dear = replace(PRICES, time_ns=10_000.0)
    assert 210 <= affordable_window(10.0 * MS, dear, settings) <= 375
    assert affordable_window(0.1 * MS, dear, settings) == 210
    assert affordable_window(10.0 * MS, dear, replace(settings, window_calls=250)) == 250
    assert affordable_window(10.0 * MS, dear, replace(settings, window_ns=30 * SECOND)) == 1000


def test_a_pure_wrapper_comes_last() -> None:
    """Of functions around one wait only that which does something else, too, has anything to tell."""
    wait = sampled("wait", Profile(samples=100, own_ns=900.0, inclusive_ns=900.0))
    wrapper = sampled("wrapper", Profile(samples=100, inclusive_ns=900.0, callee_ns=900.0))
    handler = sampled("handler", Profile(samples=100, inclusive_ns=1000.0, callee_ns=900.0))
    work = sampled("work", Profile(samples=50, own_ns=50.0, cpu_ns=50.0, inclusive_ns=50.0))
    every = [wait, wrapper, handler, work]
    total = total_of(every)
    assert own_share(wrapper, total) == 0.0
    ordered = in_order(every, total)
    assert [each.function.name for each in ordered] == ["work", "wait", "handler", "wrapper"]


def test_what_waits_in_a_main_loop_comes_last() -> None:
    """Time in callees counts as far as it is no wait for work; a function of nothing else comes after all others."""
    reader = sampled("reader", Profile(samples=100, own_ns=20.0, cpu_ns=20.0, inclusive_ns=900.0))
    handler = sampled("handler", Profile(samples=50, inclusive_ns=100.0))
    leaf = sampled("leaf", Profile(samples=1, own_ns=1.0, cpu_ns=1.0, inclusive_ns=1.0))
    every, idle = [reader, handler, leaf], {reader.key: 0.95}
    total = Total(wall_ns=1000.0, cpu_ns=100.0)
    assert [each.function.name for each in in_order(every, total)] == ["reader", "handler", "leaf"]
    assert [each.function.name for each in in_order(every, total, idle)] == ["handler", "leaf", "reader"]
    assert own_share(reader, total, 0.95) < own_share(reader, total)


def test_cpu_counts_where_others_only_wait() -> None:
    """A function with all of a program's CPU time is worth as much as a wait that fills all of its threads' time."""
    work = sampled("work", Profile(samples=50, own_ns=50.0, cpu_ns=50.0, inclusive_ns=50.0))
    assert own_share(work, Total(wall_ns=10_000.0, cpu_ns=50.0)) == pytest.approx(1.0, rel=1e-3)
    assert own_share(work, Total(wall_ns=0.0, cpu_ns=0.0)) == 0.0


def test_a_caller_of_what_others_call_too_comes_before_what_takes_next_to_nothing() -> None:
    """Also in a program that mostly waits: time in callees is compared with the program's CPU time."""
    caller = sampled("caller", Profile(samples=50, inclusive_ns=50.0, callee_ns=10.0))
    leaf = sampled("leaf", Profile(samples=1, own_ns=1.0, cpu_ns=1.0, inclusive_ns=1.0))
    total = Total(wall_ns=10_000.0, cpu_ns=100.0)
    assert own_share(caller, total) > own_share(leaf, total) > 0.0
    assert own_share(caller, total) < 0.4


def test_code_made_at_run_time_is_part_of_the_whole() -> None:
    """A program that is at work in what its JIT made spends little elsewhere, though that is all that has names."""
    work = sampled("work", Profile(samples=5, own_ns=50.0, cpu_ns=50.0, inclusive_ns=50.0))
    made = Profile(own_ns=950.0, cpu_ns=950.0)
    assert share(work, total_of([work])) == 1.0
    assert share(work, total_of([work], made)) == pytest.approx(0.05)


def test_what_lies_in_one_callee_adds_up_and_fades() -> None:
    """Findings add to it as to the inclusive time."""
    sample = HotSample(function="f", samples=1, on_cpu_ns=0.0, off_cpu_ns=0.0, inclusive_ns=10.0, callee_ns=8.0)
    profile = Profile().with_sample(sample).with_sample(sample).faded(0.5)
    assert (profile.inclusive_ns, profile.callee_ns) == (10.0, 8.0)


def test_what_is_predicted_goes_by_the_windows_asked_for() -> None:
    """On-phases of a third of the calls cost a third, whatever size of window is set."""
    each = replace(sampled("hot", Profile()), probe=ProbeState(rate=100_000.0))
    means = Means(budget=1e7, income=1e7, cash=0.0, prices=PRICES, slow_links=False, now_ns=0)
    large, small = (
        Watch(function=each.function.key, kind=Kind.TIME, window_calls=calls, on_ns=50 * MS, period_ns=SECOND)
        for calls in (900, 300)
    )
    overrun_ns = 300 * PRICES.count_ns  # of 3 ms until the links are off
    full, third = (predicted(each, watch, means, Settings()) - overrun_ns for watch in (large, small))
    assert third == pytest.approx(full / 3)


def calling(callers: dict[str, tuple[str, ...]]) -> Ancestry:
    """Return the ancestry of functions by the callers of each."""
    return Ancestry(
        {
            name: FunctionState(
                identity=Identity(function=Function(build_id="b", offset=number, name=name, module="m")),
                profile=Profile(callers=tuple((caller, 1.0) for caller in of)),
            )
            for number, (name, of) in enumerate(callers.items())
        }
    )


def test_callers_are_followed_outward() -> None:
    """Callers of callers count, a recursion ends, and siblings are apart."""
    ancestry = calling({"main": (), "a": ("main", "a"), "b": ("a",), "c": ("main",)})
    assert ancestry.of("b") == {"a", "main"}
    assert not ancestry.is_apart("b", ["c", "main"])
    assert not ancestry.is_apart("main", ["b"])
    assert ancestry.is_apart("b", ["c"])
    assert ancestry.is_apart("c", ["a", "b"])
    assert ancestry.is_apart("main", [])


def test_the_first_of_functions_that_are_apart_are_chosen() -> None:
    """None calls another, or one of those that come besides."""
    made: dict[str, FunctionState] = {}
    for number, (name, caller) in enumerate({"main": "", "a": "main", "b": "a", "c": "main", "d": "c"}.items()):
        callers = ((made[caller].key, 1.0),) if caller else ()
        function = Function(build_id="b", offset=number, name=name, module="m")
        made[name] = FunctionState(identity=Identity(function=function), profile=Profile(callers=callers))
    ancestry = Ancestry({one.key: one for one in made.values()})

    def chosen(names: str, others: str, most: int) -> str:
        found = ancestry.first_apart([made[one] for one in names], [made[one] for one in others], most)
        return "".join(one.function.name for one in found)

    assert chosen("abcd", "", 9) == "ac"
    assert chosen("bacd", "", 1) == "b"
    assert chosen("abc", "d", 9) == "a"


def test_waits_for_work_come_last() -> None:
    """A library's wait that is mostly off its CPU is idle; a program's own function of that name is not."""

    def wait(name: str, *, cpu_ns: float, in_program: bool = False) -> FunctionState:
        function = Function(build_id="b", offset=1, name=name, module="m", in_program=in_program)
        return FunctionState(identity=Identity(function=function), profile=Profile(own_ns=100.0, cpu_ns=cpu_ns))

    assert is_idle(wait("epoll_wait", cpu_ns=5.0))
    assert not is_idle(wait("epoll_wait", cpu_ns=90.0))
    assert not is_idle(wait("epoll_wait", cpu_ns=5.0, in_program=True))
    assert not is_idle(wait("fdatasync", cpu_ns=5.0))


def test_what_waits_for_work_is_never_violated_and_what_waits_for_a_disk_may_be() -> None:
    """A sleep is as long as its caller says; at the bottom of a main loop others are waits for work, too."""

    def named(name: str, *, loop_bottom: bool = False) -> FunctionState:
        function = Function(build_id="b", offset=1, name=name, module="libc.so.6", in_program=False)
        return FunctionState(
            identity=Identity(function=function), profile=Profile(own_ns=100.0, cpu_ns=1.0, loop_bottom=loop_bottom)
        )

    assert waits_for_work(named("clock_nanosleep"))
    assert waits_for_work(named("epoll_wait"))
    assert waits_for_work(named("read", loop_bottom=True))
    assert not waits_for_work(named("read"))
    assert not waits_for_work(named("__lll_lock_wait"))
    assert not waits_for_work(named("fdatasync", loop_bottom=True))


def test_of_what_waits_for_work_nothing_is_doubted() -> None:
    """It gets no windows that would decide a change, so its doubt would stand, and turns would never be spared."""
    alarm = Alarm(
        stream=Stream(what=What.LEVEL, part="all"), direction=Direction.SLOWER, factor=2.0, factor_low=1.5,
        factor_high=2.5, since_ns=SECOND, windows=2, log_e=5.0, opened=False,
    )  # fmt: skip

    def suspected(cpu_ns: float) -> FunctionState:
        function = Function(build_id="b", offset=1, name="clock_nanosleep", module="libc.so.6", in_program=False)
        one = FunctionState(identity=Identity(function=function), profile=Profile(own_ns=100.0, cpu_ns=cpu_ns))
        return replace(one, violations=replace(one.violations, alarms=(alarm,)))

    assert is_doubted([suspected(99.0)])
    assert not is_doubted([suspected(1.0)])
    assert is_doubted([suspected(1.0), suspected(99.0)])


def test_a_look_is_a_window_where_the_budget_allows_it() -> None:
    """With more it brings all of a level, else it ends with the first numbers; its price bounds what it may take."""
    function = Function(build_id="b", offset=1, name="f", module="m")
    level, _ = first_look(function, 2000.0, 10.0 * MS, Settings())
    rich, cost_ns = first_look(function, 2000.0, 2.0 * MS, Settings())
    poor, less_ns = first_look(function, 2000.0, 1.0 * MS, Settings())
    assert level.burst_hits >= 2 * FIRST_LEVEL > rich.burst_hits
    assert first_look(function, 2000.0, 10.0 * MS, replace(Settings(), shares=True))[0].burst_hits == rich.burst_hits
    assert rich.burst_hits > 2 * Settings().minimum_calls > poor.burst_hits >= 2 * FIRST_NUMBERS
    assert cost_ns == pytest.approx(rich.burst_hits / 2 * 2000.0, rel=0.01)
    assert less_ns == pytest.approx(poor.burst_hits / 2 * 2000.0, rel=0.01)
    assert rich.minimum_calls == poor.minimum_calls == FIRST_NUMBERS
