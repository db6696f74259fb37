"""Who waits for calls of another violated function, in other threads, is explained by it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from specmine.daemon.controller.decide import decide
from specmine.daemon.controller.events import Arrived
from specmine.daemon.controller.function import FunctionState
from specmine.daemon.controller.problems.wait_edges import waits_among
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.controller.violations.usual import Usual
from specmine.model.batch import Batch
from specmine.model.buckets import bucket_of
from specmine.model.call_path import Frame
from specmine.model.histogram import EMPTY, Histogram
from specmine.model.inside.waits import Wait, WaitKind, Waits, Waker
from specmine.model.split import Split
from specmine.model.violation import CauseKind
from tests.support.changing import Life, lived, slower
from tests.support.planted import Planted, Way

USUAL_NS = 80_000.0
LOCK = (Frame("futex", "libc.so.6"), Frame("take_lock", "app"))


def program() -> tuple[Planted, ...]:
    """Return two functions that do not call each other."""
    return tuple(
        Planted(
            name=name, rate=500.0, own=0.3, inclusive=0.3,
            ways=(Way(callers="main", weight=1.0, classes=((1.0, USUAL_NS, 0.2),)),),
        )
        for name in ("waiter", "holder")
    )  # fmt: skip


def violated() -> Life:
    """Return a life in which both take three times as long, and the calls of one of them are blocked for that time."""
    return lived(program(), 320.0, [(200.0, "waiter", slower(3.0)), (200.0, "holder", slower(3.0))])


def blocked(function: FunctionState) -> FunctionState:
    """Return a function whose calls never were blocked, and are now for two thirds of their time."""
    yardstick = function.violations.yardstick
    assert yardstick is not None
    calls = yardstick.usual.calls
    usual = replace(
        yardstick.usual, split_calls=calls, split_ns=yardstick.usual.total_ns, waiting_ns=0.0, blocked_ns=0.0
    )
    windows = tuple(replace(one, split=_split(one.histogram)) for one in function.history.longest)
    changed = replace(function.violations, yardstick=replace(yardstick, usual=usual))
    return replace(function, violations=changed, history=replace(function.history, timing=windows, paths=()))


def _split(durations: Histogram) -> Split:
    """Return that calls run for the usual time, and are blocked for twice that."""
    ran = Histogram.from_pairs(bucket_of(np.array([USUAL_NS])), [durations.total])
    away = Histogram.from_pairs(durations.buckets, durations.counts.astype(np.int64) * round(2 * USUAL_NS))
    return Split(waiting_ns=EMPTY, blocked_ns=away, on_cpu=ran)


def ended_by(function: FunctionState, *stack: Frame, share: float = 0.9) -> Waits:
    """Return a phase in which each call waited for a lock, and a stack ended some of that time."""
    at = bucket_of(np.array([3 * USUAL_NS]))
    ns = round(50 * 2 * USUAL_NS)
    wait = Wait(
        kind=WaitKind.FUTEX, call="futex", frames=LOCK, within=None,
        waits=Histogram.from_pairs(at, [50]), blocked_ns=Histogram.from_pairs(at, [ns]),
        wakers=(Waker(frames=stack, blocked_ns=Histogram.from_pairs(at, [round(share * ns)])),),
    )  # fmt: skip
    calls = Histogram.from_pairs(at, [50])
    end_ns = function.violations.open[0].since_ns + 10**9
    return Waits(function=function.key, calls=calls, followed_ns=10**9, end_ns=end_ns, waits=(wait,))


def state_with(life: Life) -> tuple[ControllerState, FunctionState, FunctionState]:
    """Return the state in which the waiter's calls are blocked, and both functions."""
    waiter, holder = blocked(life.named("waiter")), life.named("holder")
    functions = {**life.state.functions, waiter.key: waiter}
    return replace(life.state, functions=functions), waiter, holder


def test_who_waits_for_another_function_is_explained_by_it() -> None:
    """From the moment when the waits that it ended are told: by the innermost violated function on the stack."""
    state, waiter, holder = state_with(violated())
    assert waiter.violations.open and holder.violations.open
    phase = ended_by(waiter, Frame("unlock", "app"), holder.function.frame, Frame("main", "app"))
    told, _ = decide(state, Arrived(batch=Batch(now_ns=state.now_ns + 10**9, waits=(phase,))))
    (violation,) = told.functions[waiter.key].violations.open
    assert violation.because == holder.key
    (other,) = told.functions[holder.key].violations.open
    assert other.because == ""
    assert violation.cause.kind is CauseKind.WAIT
    assert violation.cause.text.startswith("It waits for what holder (app) does in other threads: ")


def test_only_what_has_half_of_the_difference_explains() -> None:
    """Not who ended a third, another program, or a function that calls the one that waits, or that waits for it."""
    _, waiter, holder = state_with(violated())
    stack = (Frame("unlock", "app"), holder.function.frame)

    def found(phase: Waits, called: dict[str, set[str]] | None = None) -> set[tuple[str, str]]:
        opened = {waiter.key: replace(waiter, waits=(phase,)), holder.key: holder}
        return set(waits_among(opened, called or {}))

    assert found(ended_by(waiter, *stack)) == {(waiter.key, holder.key)}
    assert found(ended_by(waiter, *stack, share=0.3)) == set()
    assert found(ended_by(waiter)) == set()
    assert found(ended_by(waiter, *stack), {holder.key: {waiter.key}}) == set()
    both = {
        waiter.key: replace(waiter, waits=(ended_by(waiter, *stack),)),
        holder.key: replace(blocked(holder), waits=(ended_by(holder, waiter.function.frame),)),
    }
    assert waits_among(both, {}) == {}


def test_without_waits_that_were_followed_nothing_is_said() -> None:
    """Nor of a function whose usual time is not known."""
    _, waiter, holder = state_with(violated())
    assert waits_among({waiter.key: waiter, holder.key: holder}, {}) == {}
    yardstick = waiter.violations.yardstick
    assert yardstick is not None
    unknown = replace(waiter.violations, yardstick=replace(yardstick, usual=Usual()))
    phase = ended_by(waiter, holder.function.frame)
    assert waits_among({waiter.key: replace(waiter, violations=unknown, waits=(phase,)), holder.key: holder}, {}) == {}
