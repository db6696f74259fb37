"""Waits are followed of functions whose violation is open, and of those that somebody asked for, for a time."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np

from specmine.daemon.controller.actions import FOLLOWED_PART
from specmine.daemon.controller.decide import decide
from specmine.daemon.controller.events import Arrived, Asked
from specmine.daemon.controller.wait_requests import ASKED_NS, KEPT_PHASES, followed
from specmine.model.batch import Batch, FollowWaits
from specmine.model.buckets import bucket_of
from specmine.model.call_path import Frame
from specmine.model.histogram import Histogram
from specmine.model.inside.waits import Wait, WaitKind, Waits
from specmine.model.json_codec import decode, encode
from specmine.model.violation import CauseKind
from tests.support.changing import Life, lived, slower
from tests.support.planted import Planted, Way


def program() -> tuple[Planted, ...]:
    """Return one function."""
    way = Way(callers="main", weight=1.0, classes=((1.0, 80_000.0, 0.2),))
    return (Planted(name="inner", rate=500.0, own=0.6, inclusive=0.6, ways=(way,)),)


def requests(life: Life) -> list[tuple[float, tuple[str, ...]]]:
    """Return when waits were requested, in seconds after the start, and of which functions."""
    return [
        ((step.state.now_ns - life.began_ns) / 1e9, action.functions)
        for step in life.steps
        for action in step.actions
        if isinstance(action, FollowWaits)
    ]


def phase(function: str, end_ns: int) -> Waits:
    """Return a phase in which each call waited 1 ms for a lock."""
    at = bucket_of(np.array([2_000_000]))
    wait = Wait(
        kind=WaitKind.FUTEX,
        call="futex",
        frames=(Frame("take_lock", "app"),),
        within=Frame("take_lock", "app"),
        waits=Histogram.from_pairs(at, [50]),
        blocked_ns=Histogram.from_pairs(at, [50_000_000]),
    )
    calls = Histogram.from_pairs(at, [50])
    return Waits(function=function, calls=calls, followed_ns=10**9, end_ns=end_ns, waits=(wait,))


def test_an_open_violation_asks_for_waits() -> None:
    """Nothing is requested before; from the moment it is opened on its function is."""
    life = lived(program(), 320.0, [(200.0, "inner", slower(3.0))])
    inner = life.named("inner")
    asked = requests(life)
    opened = min(second for second, _ in life.opened.values())
    assert asked[0][0] >= opened > 200.0
    assert asked[-1][1] == (inner.key,)


def test_waits_are_not_followed_of_calls_that_work_longer() -> None:
    """What they wait for says nothing of that; the cause is the load."""
    life = lived(program(), 320.0, [(200.0, "inner", slower(3.0))])
    inner = life.named("inner")
    (standing,) = inner.violations.standing
    known = replace(standing.violation, cause=replace(standing.violation.cause, kind=CauseKind.LOAD))
    changed = replace(inner.violations, standing=(replace(standing, violation=known),))
    state = replace(life.state, functions={inner.key: replace(inner, violations=changed)})
    assert followed(life.state) == (inner.key,)
    assert followed(state) == ()


def test_who_asks_is_answered_for_a_time() -> None:
    """A function without a violation is followed while somebody wants to know, and no longer; others are not."""
    life = lived(program(), 100.0)
    key, now_ns = life.named("inner").key, life.state.now_ns
    state, actions = decide(life.state, Asked(now_ns=now_ns, functions=(key, "unknown")))
    (asked,) = (each for each in actions if isinstance(each, FollowWaits))
    assert asked.functions == (key,)
    assert asked.cost_ns == FOLLOWED_PART * life.state.account.rate
    state, actions = decide(state, Arrived(batch=Batch(now_ns=now_ns + ASKED_NS // 2)))
    assert not any(isinstance(each, FollowWaits) for each in actions)
    _, actions = decide(state, Arrived(batch=Batch(now_ns=now_ns + ASKED_NS + 1)))
    assert FollowWaits(functions=()) in actions


def test_the_newest_phases_are_kept_and_come_back_from_a_recording() -> None:
    """What a batch says of waits is the same after its way through JSON; older phases give way."""
    life = lived(program(), 30.0)
    key, state = life.named("inner").key, life.state
    for number in range(KEPT_PHASES + 3):
        batch = Batch(now_ns=state.now_ns + 10**9, waits=(phase(key, number), phase("unknown", number)))
        again = decode(Batch, json.loads(json.dumps(encode(batch))))
        assert encode(again) == encode(batch)
        state, _ = decide(state, Arrived(batch=again))
    kept = state.functions[key].waits
    assert [each.end_ns for each in kept] == list(range(3, KEPT_PHASES + 3))
    assert kept[0].waits[0].within == Frame("take_lock", "app")
    late = replace(phase(key, 10**13))
    state, _ = decide(state, Arrived(batch=Batch(now_ns=state.now_ns + 1, waits=(late,))))
    assert [each.end_ns for each in state.functions[key].waits] == [10**13]
