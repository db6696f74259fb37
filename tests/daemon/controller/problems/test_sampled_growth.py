"""In what samples find more CPU time, while calls of a violated function work longer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from specmine.daemon.config.settings import SECOND, Settings
from specmine.daemon.controller.function import FunctionState, Identity
from specmine.daemon.controller.problems.sampled_growth import (
    WORKS_LONGER,
    more_samples,
    steady_samples,
    with_more_samples,
)
from specmine.daemon.controller.sampling.burst import Burst
from specmine.daemon.controller.sampling.history import SampleHistory
from specmine.daemon.controller.sampling.profile import Profile
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.controller.violations.asserted import Asserted
from specmine.daemon.controller.violations.function_violations import FunctionViolations, OpenViolation
from specmine.daemon.controller.violations.yardstick import begun
from specmine.model.function import Function
from specmine.model.histogram import EMPTY, Histogram
from specmine.model.observation import Kind, Observation
from specmine.model.split import Split
from specmine.model.violation import Cause, CauseKind, Direction, MoreSamples, Violation, What
from tests.support.changing import Change, lived
from tests.support.planted import Planted, Way

CALLERS = {
    "serve": (),
    "render": ("serve",),
    "load": ("serve",),
    "checksum": ("load",),
    "work": ("render", "checksum"),
    "flush": (),
}
"""Each function with those that call it."""
USUAL = {"serve": 0.40, "render": 0.10, "load": 0.28, "checksum": 0.08, "work": 0.17, "flush": 0.05}
FUNCTIONS = {name: Function(build_id="b", offset=at, name=name, module="shop") for at, name in enumerate(CALLERS)}


def state_of(now: Mapping[str, float], before: Mapping[str, float] = USUAL, seconds: float = 20.0) -> ControllerState:
    """Return a state in which samples find other CPU times than usual since second 1,000."""
    key_of = {name: each.key for name, each in FUNCTIONS.items()}
    functions = {
        each.key: FunctionState(
            identity=Identity(function=each),
            profile=Profile(callers=tuple((key_of[caller], 1e9) for caller in CALLERS[name])),
        )
        for name, each in FUNCTIONS.items()
        if name != "checksum"
    }
    found = Burst(
        cpus_s={key_of[name]: seconds * cpus for name, cpus in now.items()},
        seconds=seconds,
        ended_ns=1_030 * SECOND,
        hertz=49,
    )
    usual = {key_of[name]: cpus for name, cpus in before.items()}
    return ControllerState(
        functions=functions,
        catalog={each.key: each for each in FUNCTIONS.values()},
        unfollowed={key_of["checksum"]: Profile(callers=((key_of["load"], 1e9),))},
        samples=SampleHistory(usual=usual, seconds=180.0, newest=(found,)),
    )


def found_for(
    name: str, now: Mapping[str, float], part: float, before: Mapping[str, float] = USUAL
) -> MoreSamples | None:
    """Return in what samples find more than usual for a function of which this part of the time is more."""
    state = state_of(now, before)
    return more_samples(state.functions[FUNCTIONS[name].key], 1_000 * SECOND, part, state)


CHECKSUM_TWICE = {"serve": 0.48, "render": 0.10, "load": 0.36, "checksum": 0.16, "work": 0.25, "flush": 0.05}
RENDER_TWICE = {"serve": 0.50, "render": 0.20, "load": 0.28, "checksum": 0.08, "work": 0.27, "flush": 0.05}


@pytest.mark.parametrize("name", ["serve", "load"])
def test_the_function_that_works_longer_is_named_for_its_callers_though_nobody_times_it(name: str) -> None:
    """What calls it grew less, and so did what it calls: that has other callers, too."""
    found = found_for(name, CHECKSUM_TWICE, 0.2)
    assert found == MoreSamples(function="checksum", module="shop", cpus=0.16, usual_cpus=0.08)


def test_of_a_function_with_many_callers_the_one_whose_calls_take_longer_is_named() -> None:
    """The rest of its calls is as usual."""
    found = found_for("work", RENDER_TWICE, 0.3)
    assert found is not None
    assert (found.function, found.is_caller) == ("render", True)


def test_of_functions_that_have_nearly_all_of_it_the_innermost_is_named() -> None:
    """All that load takes more it takes in checksum: both grew by about the same factor."""
    usual = {"serve": 0.40, "render": 0.02, "load": 0.05, "checksum": 0.045, "work": 0.30, "flush": 0.05}
    now = {**usual, "serve": 0.80, "load": 0.46, "checksum": 0.44, "work": 0.5}
    for name in ("serve", "load"):
        found = found_for(name, now, 0.5, usual)
        assert found is not None
        assert found.function == "checksum"


def test_the_function_itself_needs_no_other_name() -> None:
    """Neither its callers nor its callees grew more than it did."""
    assert found_for("render", RENDER_TWICE, 0.5) is None


def test_a_helper_of_many_callers_is_no_better_name() -> None:
    """All that render takes more it takes in work, which others call as before: that one grew by less."""
    usual = {"serve": 0.40, "render": 0.10, "load": 0.04, "checksum": 0.01, "work": 0.12, "flush": 0.05}
    now = {**usual, "serve": 0.60, "render": 0.30, "work": 0.32}
    assert found_for("render", now, 0.6, usual) is None
    found = found_for("serve", now, 0.3, usual)
    assert found is not None
    assert found.function == "render"


def test_functions_on_other_stacks_and_small_growth_are_not_named() -> None:
    """A flush that takes ten times as long beside it says nothing of calls that it is not in."""
    assert found_for("load", {**USUAL, "load": 0.40, "flush": 0.5}, 0.3) is None
    assert found_for("serve", {**CHECKSUM_TWICE, "serve": 0.9}, 0.55) is None


def test_more_of_everything_names_nothing() -> None:
    """Twice the load is on twice as many stacks everywhere."""
    twice = {name: 2 * cpus for name, cpus in USUAL.items()}
    assert [found_for(name, twice, 0.5) for name in ("serve", "load", "work")] == [None] * 3


def test_without_bursts_since_nothing_is_known() -> None:
    """Those that began before the violation say nothing of it."""
    state = state_of(CHECKSUM_TWICE)
    assert more_samples(state.functions[FUNCTIONS["load"].key], 1_020 * SECOND, 0.2, state) is None


def test_numbers_that_hardly_changed_stay() -> None:
    """Another function, or numbers that did change, are news; that samples tell no more is none."""
    told = MoreSamples(function="checksum", module="shop", cpus=0.16, usual_cpus=0.08)
    assert steady_samples(told, replace(told, cpus=0.18)) is told
    assert steady_samples(told, replace(told, cpus=0.3)) == replace(told, cpus=0.3)
    assert steady_samples(told, replace(told, function="render")) == replace(told, function="render")
    assert steady_samples(told, None) is told
    assert steady_samples(None, told) is told


def test_a_daemon_names_what_nobody_watches() -> None:
    """The user named the outer function; samples know the inner one, which takes five times as long."""
    inner = Planted(
        name="inner", rate=500.0, own=0.1, inclusive=0.1, callers=(("outer", 1.0),),
        ways=(Way(callers="main;outer", weight=1.0, classes=((1.0, 20_000.0, 0.2),)),),
    )  # fmt: skip
    outer = Planted(
        name="outer", rate=500.0, own=0.2, inclusive=0.3,
        ways=(Way(callers="main", weight=1.0, classes=((1.0, 60_000.0, 0.2),)),),
    )  # fmt: skip

    def grown(median_ns: float, inclusive: float, own: float) -> Change:
        way = Way(callers="main", weight=1.0, classes=((1.0, median_ns, 0.2),))
        return lambda planted: replace(planted, inclusive=inclusive, own=own, ways=(way,))

    changes = [(400.0, "inner", grown(100_000.0, 0.5, 0.5)), (400.0, "outer", grown(140_000.0, 0.7, 0.2))]
    life = lived((inner, outer), 520.0, changes, settings=Settings(watch=("outer",)))
    (violation,) = life.named("outer").violations.open
    assert violation.cause.more_samples is not None
    assert violation.cause.more_samples.function == "inner"
    assert violation.cause.more_samples.cpus > 3 * violation.cause.more_samples.usual_cpus
    # nothing else tells why: calls a second, code and host are as usual, and the simulation splits no durations
    assert violation.cause.kind is CauseKind.LOAD
    assert violation.cause.text == WORKS_LONGER
    assert violation.cause.evidence[0].kind is CauseKind.LOAD


def window_of(second: int, works_us: float, blocked_us: float) -> Observation:
    """Return a window of calls that work, and are blocked, for so long each."""
    took = Histogram.from_durations([round(1e3 * (works_us + blocked_us)) + place for place in range(300)])
    ran = Histogram.from_durations([round(1e3 * works_us) + place for place in range(300)])
    (bucket,) = set(took.buckets.tolist())
    blocked = Histogram.from_pairs([bucket], [round(300 * 1e3 * blocked_us)]) if blocked_us else EMPTY
    return Observation(
        function=FUNCTIONS["load"].key, lifetime="l", kind=Kind.TIME, start_ns=second * SECOND,
        end_ns=(second + 5) * SECOND, histogram=took, calls=300, watched_ns=5 * SECOND,
        split=Split(waiting_ns=EMPTY, blocked_ns=blocked, on_cpu=ran),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("works_us", "blocked_us", "before", "kind"),
    [
        (150.0, 0.0, 0.08, CauseKind.LOAD),
        (105.0, 45.0, 0.08, CauseKind.UNKNOWN),
        (105.0, 45.0, 0.002, CauseKind.CALLEE),
        (150.0, 0.0, 0.002, CauseKind.LOAD),
    ],
)
def test_more_cpu_time_is_why_only_if_the_difference_is_work(
    works_us: float, blocked_us: float, before: float, kind: CauseKind
) -> None:
    """Whoever waits more often has busier callees, too. They are named in any case; one that is new is what blocks."""
    state = state_of(CHECKSUM_TWICE, {**USUAL, "checksum": before})
    usual, now = [[window_of(at, *took) for at in range(first, first + 60, 10)]
                  for first, took in ((900, (100.0, 0.0)), (1_000, (works_us, blocked_us)))]  # fmt: skip
    violation = Violation(
        function=FUNCTIONS["load"].key, what=What.LEVEL, direction=Direction.SLOWER, factor=2.0, factor_low=1.9,
        factor_high=2.1, since_ns=1_000 * SECOND,
    )  # fmt: skip
    one = state.functions[FUNCTIONS["load"].key]
    one = replace(
        one,
        history=replace(one.history, timing=(*usual, *now)),
        violations=FunctionViolations(
            yardstick=begun("b", Asserted(), usual, 0), standing=(OpenViolation(violation=violation),)
        ),
    )
    cause = with_more_samples(Cause(kind=CauseKind.UNKNOWN), violation, one, state)
    assert cause.kind is kind
    load = with_more_samples(Cause(kind=CauseKind.LOAD), violation, one, state)
    assert load.kind is (CauseKind.CALLEE if kind is CauseKind.CALLEE else CauseKind.LOAD)
    assert with_more_samples(Cause(kind=CauseKind.CODE), violation, one, state).kind is CauseKind.CODE
    assert (cause.text.startswith("It calls checksum, ")) is (kind is CauseKind.CALLEE)
    assert cause.more_samples is not None
    assert cause.more_samples.function == "checksum"
