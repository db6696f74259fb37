"""Alarms need two looks, keep their evidence, and are one for a cause."""

from __future__ import annotations

import math

import numpy as np

from specmine.mining.regression.acknowledgement import Acknowledgement, apply_acknowledgement
from specmine.mining.regression.alarm import Alarm, Status, causes, discoveries, next_alarm
from specmine.mining.regression.comparison import Change
from specmine.mining.regression.sequential_test import begin, with_lifetime


def test_a_thousand_unchanged_functions_raise_no_alarm() -> None:
    """Eight lifetimes of each looked at one by one: a discovery at 5 % comes in at most one month of twenty."""
    rng = np.random.default_rng(6)
    months = 0
    for _ in range(3):
        states = {str(k): begin(rng.lognormal(0, 0.05, 20).tolist()) for k in range(1000)}
        raised = False
        for _ in range(8):
            states = {key: with_lifetime(each, float(rng.lognormal(0, 0.05))) for key, each in states.items()}
            raised |= bool(discoveries({}, {key: each.log_e for key, each in states.items()}, 1000, 0.05))
        months += raised
    assert months <= 1


def test_an_alarm_needs_two_looks_and_is_told_once() -> None:
    """Suspected, raised, acknowledged, gone, and then quiet about the same change."""
    alarm = Alarm()
    alarm = next_alarm(alarm, Change.WORSE, 9.0, discovered=True, now_ns=1)
    assert alarm.status is Status.SUSPECTED
    assert next_alarm(alarm, Change.UNDECIDED, 1.0, discovered=False, now_ns=2).status is Status.QUIET
    alarm = next_alarm(alarm, Change.WORSE, 9.5, discovered=True, now_ns=2)
    assert (alarm.status, alarm.direction, alarm.since_ns) == (Status.RAISED, Change.WORSE, 1)
    alarm, known = apply_acknowledgement(alarm, Acknowledgement(direction=Change.WORSE, ratio=1.1, utc_ns=0), None)
    assert alarm.status is Status.ACKNOWLEDGED
    alarm = next_alarm(alarm, Change.EQUIVALENT, 1.0, discovered=False, now_ns=3)
    assert alarm.status is Status.ACKNOWLEDGED
    alarm = next_alarm(alarm, Change.EQUIVALENT, 1.0, discovered=False, now_ns=4)
    assert alarm.status is Status.GONE
    assert next_alarm(alarm, Change.WORSE, 12.0, discovered=True, now_ns=5).status is Status.GONE
    assert next_alarm(alarm, Change.BETTER, 12.0, discovered=True, now_ns=5).status is Status.SUSPECTED
    assert apply_acknowledgement(Alarm(), known, None) == (Alarm(), None)


def test_what_was_raised_keeps_its_evidence() -> None:
    """A later look with less evidence takes nothing from the other discoveries."""
    raised = {"a": Alarm(status=Status.RAISED, log_e=math.log(60.0))}
    assert discoveries(raised, {"a": 0.0, "b": math.log(55.0)}, 10, 0.1) == {"a", "b"}


def test_one_alarm_per_cause() -> None:
    """The deepest function is the cause, its callers come with it; a ring is one cause."""
    assert causes({"a", "b", "c", "x"}, {("a", "b"), ("b", "c"), ("x", "quiet")}) == {"c": ("a", "b"), "x": ()}
    assert causes({"p", "q", "top"}, {("p", "q"), ("q", "p"), ("top", "p")}) == {"p": ("q", "top")}
    assert causes(set(), {("a", "b")}) == {}
