"""One problem a cause: callers that are slower only through a callee are explained by it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specmine.daemon.config.settings import SECOND, Settings
from specmine.daemon.controller.function import FunctionState, Identity
from specmine.daemon.controller.history import History
from specmine.daemon.controller.problems.call_edges import calls_among
from specmine.daemon.controller.problems.causes import lost_share
from specmine.model.function import Function
from specmine.model.histogram import Histogram
from specmine.model.inside.parts import CalleeSet, CalleeTime, Inside
from specmine.model.observation import Kind, Observation
from specmine.model.violation import CauseKind
from tests.support.changing import Change, Life, lived, slower
from tests.support.planted import Planted, Way

INNER_NS, OWN_NS = 80_000.0, 20_000.0
CALLS = 500.0


def program() -> tuple[Planted, ...]:
    """Return an inner function, and an outer one that calls it once in each call."""
    inner = Planted(
        name="inner", rate=CALLS, own=0.6, inclusive=0.6, callers=(("outer", 1.0),),
        ways=(Way(callers="main;outer", weight=1.0, classes=((1.0, INNER_NS, 0.2),)),),
    )  # fmt: skip
    outer = Planted(
        name="outer", rate=CALLS, own=0.2, inclusive=0.8,
        ways=(Way(callers="main", weight=1.0, classes=((1.0, INNER_NS + OWN_NS, 0.2),)),),
    )  # fmt: skip
    return inner, outer


def longer(more_ns: float) -> Change:
    """Return the change that makes each call take so much longer."""

    def change(planted: Planted) -> Planted:
        (way,) = planted.ways
        ((share, median, sigma),) = way.classes
        return replace(planted, ways=(replace(way, classes=((share, median + more_ns, sigma),)),))

    return change


def because_of(life: Life) -> dict[str, str]:
    """Return which function explains each one that is violated, '' for a cause."""
    names = {key: each.function.name for key, each in life.state.functions.items()}
    return {
        each.function.name: names.get(one.because, "")
        for each in life.state.functions.values()
        for one in each.violations.open
    }


def test_a_caller_is_explained_by_its_callee() -> None:
    """The callee is the cause; the caller has it in because, with its share of the difference."""
    changes = [(200.0, "inner", slower(3.0)), (200.0, "outer", longer(2 * INNER_NS))]
    life = lived(program(), 320.0, changes)
    assert because_of(life) == {"inner": "", "outer": "inner"}
    (outer,) = life.named("outer").violations.open
    assert outer.cause.kind is CauseKind.CALLEE and "inner" in outer.cause.text
    (inner,) = life.named("inner").violations.open
    assert inner.cause.kind is not CauseKind.CALLEE
    assert 0.2 < inner.time_share < 0.9


def test_named_functions_are_explained_through_others_that_nobody_watches() -> None:
    """The user names two functions; a third lies between them on stacks. Shares of the time are known too."""
    inner, outer = program()
    inner = replace(inner, callers=(("between", 1.0),))
    between = replace(outer, name="between", own=0.1, inclusive=0.7, callers=(("outer", 1.0),))
    changes = [(200.0, "inner", slower(3.0)), (200.0, "outer", longer(2 * INNER_NS))]
    life = lived((inner, between, outer), 320.0, changes, settings=Settings(watch=("inner", "outer")))
    assert {each.function.name for each in life.state.functions.values()} == {"inner", "outer"}
    assert because_of(life) == {"inner": "", "outer": "inner"}
    (violation,) = life.named("inner").violations.open
    assert 0.2 < violation.time_share < 0.9


def test_a_caller_with_a_difference_of_its_own_is_a_cause() -> None:
    """A callee that has a tenth of the difference explains nothing."""
    changes = [(200.0, "inner", slower(2.0)), (200.0, "outer", longer(10 * INNER_NS))]
    assert because_of(lived(program(), 320.0, changes)) == {"inner": "", "outer": ""}


def test_what_was_timed_inside_calls_is_a_call_edge() -> None:
    """Where neither paths nor samples tell who calls a function, the calls around it do."""
    inner, outer = (
        Function(build_id="b", offset=at, name=name, module="app") for at, name in enumerate(("inner", "outer"))
    )
    calls = Histogram.from_durations([1_000.0] * 50)
    timed = CalleeTime(callee=inner.frame, calls=calls, time_ns=calls)
    inside = Inside(calls=calls, timed=(inner.frame,), sets=(CalleeSet(calls=calls, callees=(timed,)),))
    window = Observation(
        function=outer.key, lifetime="a", kind=Kind.TIME, start_ns=0, end_ns=SECOND, histogram=calls, calls=50,
        watched_ns=SECOND, inside=(inside,),
    )  # fmt: skip
    functions = {
        inner.key: FunctionState(identity=Identity(function=inner)),
        outer.key: FunctionState(identity=Identity(function=outer), history=History(timing=(window,))),
    }
    assert calls_among(tuple(functions), functions, {}) == {(outer.key, inner.key)}
    bare = {**functions, outer.key: FunctionState(identity=Identity(function=outer))}
    assert calls_among(tuple(bare), bare, {}) == set()


@pytest.mark.parametrize("renewed", [0.0, 0.2, 0.7, 1.0])
@pytest.mark.parametrize("times", [1.5, 4.0, 30.0])
def test_what_a_change_costs_does_not_depend_on_how_long_ago_it_began(renewed: float, times: float) -> None:
    """Samples from before the change are remembered for minutes: they hold the share that it had then."""
    before = 0.02
    remembered = renewed * times * before + (1 - renewed) * before
    assert lost_share(remembered, times, renewed) == pytest.approx(before * (times - 1))
    assert lost_share(remembered, 1 / times, renewed) == 0.0
    assert lost_share(0.5, 100.0, 0.0) == 1.0
