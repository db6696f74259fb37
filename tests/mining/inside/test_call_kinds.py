"""Kinds of calls: what a call reached is taken as known only where the callee was timed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from specmine.mining.inside.call_kinds import CallKind, kind_windows, known_callees, knows_blocked
from specmine.mining.inside.callers import BLOCKED_CALL
from specmine.model.call_path import Frame
from specmine.model.histogram import EMPTY, Histogram
from specmine.model.inside.parts import ANYWHERE, OTHERS, Inside
from specmine.model.observation import Observation
from specmine.model.split import Split, unbroken
from tests.support.insides import inside_of_calls, observation_of

FLUSH, PARSE = Frame("flush", "libc"), Frame("parse", "app")


def reached(flush: int, parse: int, neither: int) -> Inside:
    """Return so many calls that reached one callee, 1 us each."""
    order = np.repeat([0, 1, 2], [flush, parse, neither])
    return inside_of_calls({FLUSH: 1e3 * (order == 0), PARSE: 1e3 * (order == 1)}, np.full(len(order), 1e4))


def calls(window: Observation, *timed: Frame) -> dict[CallKind, int]:
    """Return the calls of each kind."""
    (one,) = kind_windows((window,), timed)
    return {kind: histogram.total for kind, histogram in one.calls.items()}


def test_calls_divide_by_the_callees_that_they_reached() -> None:
    """Those that reached none are a kind too; a callee that is not asked for makes none."""
    window = observation_of(reached(3, 20, 100))
    assert calls(window, FLUSH, PARSE) == {CallKind((FLUSH,)): 3, CallKind((PARSE,)): 20, CallKind(()): 100}
    assert calls(window, FLUSH) == {CallKind((FLUSH,)): 3, CallKind(()): 120}


def test_calls_during_which_a_callee_was_not_timed_are_of_no_kind() -> None:
    """They would pass for calls that did not reach it."""
    whole = reached(3, 20, 100)
    less = replace(whole, timed=(PARSE,), partly=(FLUSH,))
    assert calls(observation_of(less, whole), FLUSH) == {CallKind((FLUSH,)): 3, CallKind(()): 120}
    assert kind_windows((observation_of(less),), (FLUSH,)) == ()


def test_calls_that_reached_more_than_is_told_apart_are_incomplete() -> None:
    """Which callees these are is not known, so what is not among the others may be."""
    whole = reached(3, 20, 100)
    (flush,) = (one for one in whole.sets if one.callees[0].callee == FLUSH)
    others = replace(flush, callees=(replace(flush.callees[0], callee=OTHERS),))
    window = observation_of(replace(whole, sets=(others, *(one for one in whole.sets if one is not flush))))
    assert calls(window, FLUSH, PARSE)[CallKind((), complete=False)] == 3


def test_callees_are_known_from_enough_windows_and_calls() -> None:
    """Of sets of callees the largest that was timed in five windows and a thousand calls."""
    both, one = reached(30, 170, 100), replace(reached(30, 170, 100), timed=(PARSE,))
    assert known_callees([observation_of(both)] * 5) == (FLUSH, PARSE)
    assert known_callees([observation_of(both)] * 4) == ()
    assert known_callees([observation_of(reached(3, 17, 10))] * 9) == ()
    assert known_callees([observation_of(both), *[observation_of(one)] * 4]) == (PARSE,)
    assert known_callees([observation_of(Inside(calls=Histogram.from_pairs([9], [9999]), timed=()))] * 9) == ()


def test_calls_divide_by_where_they_were_blocked_too() -> None:
    """For an eighth of their time at least: within a callee, or anywhere."""
    blocked_ns = np.repeat([1e4, 1e3, 0.0], [3, 20, 100])
    inside = inside_of_calls({FLUSH: 1e2 + blocked_ns}, np.full(123, 1e4), blocked={FLUSH: blocked_ns})
    (one,) = kind_windows([observation_of(inside)], (FLUSH,), blocked=True)
    slow, fast = CallKind((FLUSH,), blocked=(ANYWHERE, FLUSH)), CallKind((FLUSH,))
    assert {kind: histogram.total for kind, histogram in one.calls.items()} == {slow: 3, fast: 120}
    assert one.blocked_ns[slow] == 30_000
    assert (BLOCKED_CALL, FLUSH) in slow.edges()
    (anywhere,) = kind_windows([observation_of(inside)], (), blocked=True)
    assert {kind: histogram.total for kind, histogram in anywhere.calls.items()} == {
        CallKind((), blocked=(ANYWHERE,)): 3,
        CallKind(()): 120,
    }


def test_windows_that_do_not_tell_what_calls_did_of_their_time_do_not_tell_that_none_was_blocked() -> None:
    """A window without a split is left out; one whose split has no blocked time tells that no call was."""
    inside = replace(reached(3, 20, 100), split=False)
    assert kind_windows([observation_of(inside)], (), blocked=True) == ()
    bare = replace(observation_of(inside), inside=())
    assert not knows_blocked([bare] * 50)
    known = replace(bare, split=unbroken(bare.histogram))
    (one,) = kind_windows([known], (), blocked=True)
    assert one.calls == {CallKind(()): known.histogram}
    assert knows_blocked([known] * 50)
    assert not knows_blocked([known] * 4)
    stood = Split(waiting_ns=EMPTY, blocked_ns=known.histogram, on_cpu=known.histogram)
    assert kind_windows([replace(known, split=stood)], (), blocked=True) == (), "which calls were blocked is not known"
