"""Kinds of calls: what a call reached is taken as known only where the callee was timed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from specmine.mining.inside.call_kinds import CallKind, kind_windows, known_callees
from specmine.model.call_path import Frame
from specmine.model.histogram import Histogram
from specmine.model.inside.parts import OTHERS, Inside
from specmine.model.observation import Observation
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
