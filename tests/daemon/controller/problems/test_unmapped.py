"""Functions of builds that no process maps leave the plans, and in time what is known of them."""

from __future__ import annotations

from dataclasses import replace

from specmine.daemon.config.settings import SECOND, Settings
from specmine.daemon.controller.decide import decide
from specmine.daemon.controller.events import Arrived, Begun
from specmine.daemon.controller.function import FunctionState, Identity
from specmine.daemon.controller.history import History, Totals
from specmine.daemon.controller.phase import Phase, State
from specmine.daemon.controller.problems.unmapped import BEGINNING_NS, KEPT, SWEEP_NS, away, swept, with_builds
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.controller.violations.function_violations import FunctionViolations
from specmine.daemon.controller.violations.yardstick import Yardstick
from specmine.model.batch import Batch, Lifetime, Spent, Started, Unwatch, Watch
from specmine.model.function import Function
from tests.support.simulated import PRICES

NOW_NS = 100 * SECOND


def function(build: str, name: str = "work", *, since_ns: int = 0, measured_by: str = "") -> FunctionState:
    """Return a function that was observed and is finished."""
    yardstick = Yardstick(since_ns=0, build_id=measured_by) if measured_by else None
    return FunctionState(
        identity=Identity(
            function=Function(build_id=build, offset=len(name), name=name, module="app", in_program=True)
        ),
        phase=Phase(state=State.SINGLE, since_ns=since_ns),
        history=History(totals=Totals(observations=5)),
        violations=FunctionViolations(yardstick=yardstick),
    )


def state_of(*functions: FunctionState, mapped: frozenset[str] = frozenset({"now"})) -> ControllerState:
    """Return a state that knows these functions."""
    return ControllerState(
        now_ns=NOW_NS,
        started=Started(now_ns=0, host={}, prices=PRICES),
        functions={each.key: each for each in functions},
        catalog={each.key: each.function for each in functions},
        mapped=mapped,
    )


def builds(state: ControllerState) -> list[str]:
    """Return the builds of which functions are known."""
    return sorted(each.function.build_id for each in state.functions.values())


def test_of_old_builds_the_newest_stay() -> None:
    """Twenty builds of one function: eight are remembered beside the one that runs, with their names."""
    old = [function(f"b{number:02}", since_ns=number) for number in range(20)]
    after = swept(state_of(*old, function("now")))
    assert builds(after) == [*(f"b{number}" for number in range(20 - KEPT, 20)), "now"]
    assert set(after.catalog) == set(after.functions)


def test_what_was_never_observed_goes_at_once() -> None:
    """A candidate of an old build is found again by sampling should that build come back."""
    seen = replace(function("old", "idle"), history=History(), phase=Phase(state=State.CANDIDATE))
    assert builds(swept(state_of(seen, function("now")))) == ["now"]


def test_the_build_by_which_others_are_measured_stays() -> None:
    """Whether a callee's machine code changed is seen there, so its candidates stay as well."""
    first = [function("b00", since_ns=0), replace(function("b00", "callee"), history=History())]
    old = [function(f"b{number:02}", since_ns=number) for number in range(1, 20)]
    after = swept(state_of(*first, *old, function("now", measured_by="b00")))
    assert builds(after)[:2] == ["b00", "b00"]
    assert len(after.functions) == 2 + KEPT + 1


def test_what_is_still_measured_stays() -> None:
    """A plan takes the probes off first."""
    watched = function("old")
    watched = replace(
        watched,
        history=History(),
        probe=replace(watched.probe, watch=Watch(function=watched.key, kind="time")),  # type: ignore[arg-type]
    )
    assert builds(swept(state_of(watched, function("now")))) == ["now", "old"]


def test_nothing_goes_where_the_source_does_not_tell() -> None:
    """Recordings of earlier versions say nothing of what is mapped."""
    state = state_of(function("old"), mapped=frozenset())
    assert away(state) == frozenset()
    assert swept(state).functions == state.functions


def test_builds_come_and_go() -> None:
    """Of a batch in which one build takes the place of another, the new one is mapped."""
    mapped = with_builds(frozenset({"libc", "a"}), Batch(now_ns=1, mapped=("b",), unmapped=("a",)))
    assert mapped == {"libc", "b"}
    assert with_builds(mapped, Batch(now_ns=2)) is mapped


def test_a_build_that_nothing_maps_gets_no_probes_until_it_is_back() -> None:
    """Its function is unwatched, says why, and is timed again in the batch after it returned."""
    work = Function(build_id="one", offset=1, name="work", module="app", in_program=True)
    life = Lifetime(id="b:1:1", pid=1, executable="/app", build_id="one", start_ns=0, processes=1)
    started = Started(now_ns=SECOND, host={}, prices=PRICES, lifetimes=(life,))
    state, _ = decide(ControllerState(), Begun(started=started, settings=Settings(watch=("work",))))

    def arrived(**what: object) -> list[object]:
        nonlocal state
        now_ns = state.now_ns + BEGINNING_NS + SWEEP_NS
        batch = Batch(now_ns=now_ns, spent=Spent(program_cpu_ns=now_ns), **what)  # type: ignore[arg-type]
        state, actions = decide(state, Arrived(batch=batch))
        return [each for each in actions if isinstance(each, Watch | Unwatch)]

    assert any(isinstance(each, Watch) for each in arrived(functions=(work,), mapped=("one", "libc")))
    assert arrived(unmapped=("one",)) == [Unwatch(function=work.key)]
    (waits,) = state.functions.values()
    assert waits.reason is not None and waits.reason.code == "unmapped"
    assert arrived() == [] and state.functions == {}
    assert any(isinstance(each, Watch) for each in arrived(functions=(work,), mapped=("one",)))
