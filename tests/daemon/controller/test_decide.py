"""What the controller asks for when programs come and go."""

from __future__ import annotations

from dataclasses import replace

from specmine.daemon.config.settings import SECOND, Settings
from specmine.daemon.controller.call_counts import ProbeState
from specmine.daemon.controller.decide import decide
from specmine.daemon.controller.events import Arrived, Begun, Reloaded
from specmine.daemon.controller.function import FunctionState, Identity
from specmine.daemon.controller.phase import State
from specmine.daemon.controller.sampling.rhythm import FIND_NS
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.documents.timestamps import date_of
from specmine.model.batch import Batch, HotSample, Lifetime, Sampling, Spent, Started, Unwatch, Watch
from specmine.model.function import Function
from tests.support.simulated import PRICES

OLD = Lifetime(id="b:1:1", pid=1, executable="/app", build_id="one", start_ns=0, processes=1)
WORK = Function(build_id="one", offset=1, name="work", module="app", in_program=True)


def between_bursts() -> ControllerState:
    """Return the state after the first search for functions, some seconds before the next burst of sampling."""
    started = Started(now_ns=SECOND, host={}, prices=PRICES, lifetimes=(OLD,))
    state, _ = decide(ControllerState(), Begun(started=started, settings=Settings()))
    hot = HotSample(function=WORK.key, samples=90, on_cpu_ns=9e8, off_cpu_ns=0.0, inclusive_ns=9e8)
    state, _ = decide(state, Arrived(batch=Batch(now_ns=2 * SECOND, functions=(WORK,), hot_samples=(hot,))))
    functions = {key: each.moved(State.WAITING, None, SECOND) for key, each in state.functions.items()}
    state = replace(state, functions=functions)
    for now_ns in (FIND_NS + 5 * SECOND, FIND_NS + 7 * SECOND):
        busy = Spent(program_cpu_ns=now_ns)  # one CPU, all the time
        state, _ = decide(state, Arrived(batch=Batch(now_ns=now_ns, spent=busy)))
    assert state.hertz == 0
    return state


def sampled(state: ControllerState, *lifetimes: Lifetime) -> bool:
    """Tell whether sampling begins with a batch that reports these lifetimes."""
    batch = Batch(now_ns=state.now_ns + SECOND, lifetimes=lifetimes)
    return any(isinstance(each, Sampling) and each.hertz for each in decide(state, Arrived(batch=batch))[1])


def test_a_new_build_is_sampled_at_once() -> None:
    """A person waits for what a deployment did; a restart of a known build has nothing new to find."""
    state = between_bursts()
    new = replace(OLD, id="b:2:2", build_id="two")
    assert sampled(state, new)
    assert not sampled(state)
    assert not sampled(state, replace(OLD, id="b:3:3"))
    assert not sampled(state, replace(new, processes=0))


def test_where_functions_are_named_only_those_are_measured() -> None:
    """What a store knows of others is kept, and a reload that names them measures them again."""
    other = replace(WORK, offset=2, name="other")
    settings = Settings(watch=("work",))
    started = Started(now_ns=SECOND, host={}, prices=PRICES, lifetimes=(OLD,))
    state, _ = decide(ControllerState(), Begun(started=started, settings=settings))
    known = {
        each.key: FunctionState(identity=Identity(function=each, hinted=each is WORK), probe=ProbeState(rate=100.0))
        for each in (WORK, other)
    }
    known = {key: each.moved(State.WAITING, None, SECOND) for key, each in known.items()}
    state = replace(state, functions=known, catalog={key: each.function for key, each in known.items()})
    batch = Batch(now_ns=FIND_NS + 5 * SECOND)
    state, actions = decide(state, Arrived(batch=batch))
    assert {each.function for each in actions if isinstance(each, Watch)} == {WORK.key}
    assert other.key in state.functions
    state, actions = decide(state, Reloaded(now_ns=batch.now_ns + SECOND, settings=Settings(watch=("work", "other"))))
    assert {each.function for each in actions if isinstance(each, Watch)} == {other.key}
    state, actions = decide(state, Reloaded(now_ns=batch.now_ns + 2 * SECOND, settings=settings))
    assert [each.function for each in actions if isinstance(each, Unwatch)] == [other.key]


def test_a_clock_that_is_set_moves_all_dates() -> None:
    """Times are kept on the clock of the kernel's events; only their dates follow the wall clock."""
    started = Started(now_ns=SECOND, host={"utc_offset_ns": "0"}, prices=PRICES, lifetimes=(OLD,))
    state, _ = decide(ControllerState(), Begun(started=started, settings=Settings()))
    state, _ = decide(state, Arrived(batch=Batch(now_ns=2 * SECOND, utc_offset_ns=3600 * SECOND)))
    assert date_of(state, SECOND) == "1970-01-01T01:00:01.000Z"
    state, _ = decide(state, Arrived(batch=Batch(now_ns=3 * SECOND)))
    assert (state.utc_offset_ns, state.now_ns) == (3600 * SECOND, 3 * SECOND)
