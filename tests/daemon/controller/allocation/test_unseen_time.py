"""Learned first is the function in whose calls most of the program's time is that no known function has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specmine.daemon.config.settings import Settings
from specmine.daemon.controller.allocation.scheduler import plan
from specmine.daemon.controller.allocation.unseen_time import LEAST_SHARE, most_unseen
from specmine.daemon.controller.call_counts import ProbeState
from specmine.daemon.controller.function import FunctionState, Identity
from specmine.daemon.controller.history import History
from specmine.daemon.controller.hotness import Total, total_of
from specmine.daemon.controller.phase import Phase, State
from specmine.daemon.controller.sampling.profile import Profile
from specmine.model.function import Function
from tests.support.planned import MEANS

ROWS = {
    # own time, inclusive time, time through each caller
    "main": (0.0, 100.0, {}),
    "loop": (0.0, 100.0, {"main": 100.0}),
    "connection": (1.0, 80.0, {"loop": 80.0}),
    "request": (4.0, 79.0, {"connection": 79.0}),
    "compress": (50.0, 60.0, {"request": 60.0}),
    "copy": (25.0, 25.0, {"request": 15.0, "compress": 10.0}),
    "log": (12.0, 12.0, {"loop": 12.0}),
    "tick": (8.0, 8.0, {"loop": 8.0}),
}
LOOPS = {"main": 0.9, "loop": 0.9}
SETTINGS = Settings()


def program(**states: State) -> dict[str, FunctionState]:
    """Return functions by name, each called 200 times a second and waiting, but for those in another state."""
    keys = {name: Function(name=name, module="m", build_id="b", offset=16 * at) for at, name in enumerate(ROWS)}
    return {
        keys[name].key: FunctionState(
            identity=Identity(function=keys[name]),
            phase=Phase(state=states.get(name, State.WAITING)),
            probe=ProbeState(rate=200.0),
            profile=Profile(
                samples=10, own_ns=own, cpu_ns=own, inclusive_ns=inclusive,
                callers=tuple((keys[caller].key, ns) for caller, ns in callers.items()),
            ),
        )
        for name, (own, inclusive, callers) in ROWS.items()
    }  # fmt: skip


def first(functions: dict[str, FunctionState]) -> str:
    """Return the name of the one that comes first."""
    keys = {one.function.name: key for key, one in functions.items()}
    loops = {keys[name]: share for name, share in LOOPS.items()}
    key = most_unseen(functions, total_of(functions.values()), loops, SETTINGS)
    return functions[key].function.name if key else ""


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ((), "connection"),
        (("connection",), "log"),  # who wraps it, or is called by it, adds nothing
        (("request",), "log"),
        (("compress", "copy"), "log"),  # request() adds less than a tenth to these
        (("compress",), "connection"),  # of which it has three quarters
        (("copy",), "connection"),
        (("connection", "log"), ""),  # tick() has less than a tenth
    ],
)
def test_what_adds_most_comes_first(known: tuple[str, ...], expected: str) -> None:
    """Loops that wait for work never do."""
    assert first(program(**dict.fromkeys(known, State.SINGLE))) == expected


def test_who_is_hardly_called_or_never_becomes_stable_does_not_hold_up_the_others() -> None:
    """Nor who is refused. Of a candidate nobody knows how often it is called."""
    functions = program()
    (key,) = (key for key, one in functions.items() if one.function.name == "connection")

    def without(**changes: object) -> str:
        return first({**functions, key: replace(functions[key], **changes)})  # type: ignore[arg-type]

    tried = SETTINGS.mining.recent + SETTINGS.mining.chain_observations + 1
    assert without(probe=ProbeState(rate=0.2)) == "request"
    assert without(probe=ProbeState(rate=None)) == "request"
    assert without(history=History(tried=tried)) == "request"
    assert without(phase=Phase(state=State.REFUSED)) == "request"
    assert without(phase=Phase(), probe=ProbeState(rate=None)) == "connection"


def test_without_samples_none_comes_first() -> None:
    """Where the user names functions nothing is sampled."""
    assert most_unseen(program(), Total(wall_ns=0.0, cpu_ns=0.0), {}, SETTINGS) == ""
    assert LEAST_SHARE > 0


def test_with_few_places_it_has_one() -> None:
    """Four are learned at once with no CPU time of our own left: not only those with most time of their own."""
    functions = program()
    keys = {one.function.name: key for key, one in functions.items()}
    loops = {keys[name]: share for name, share in LOOPS.items()}
    means = replace(MEANS, pressure=1.0, loop_waits=loops, budget=1e9, income=1e9, cash=1e9)
    learned = {functions[key].function.name for key in plan(functions, means, SETTINGS).watches}
    assert learned == {"connection", "compress", "copy", "log"}
    known = {**functions, keys["connection"]: replace(functions[keys["connection"]], phase=Phase(state=State.UNSTABLE))}
    learned = {functions[key].function.name for key in plan(known, means, SETTINGS).watches}
    assert learned == {"request", "compress", "copy", "log"}


def test_its_first_look_comes_first() -> None:
    """Before those of its callees: probes within its calls would add to them."""
    functions = {key: replace(one, phase=Phase(), probe=ProbeState()) for key, one in program().items()}
    keys = {one.function.name: key for key, one in functions.items()}
    loops = {keys[name]: share for name, share in LOOPS.items()}
    means = replace(MEANS, loop_waits=loops, budget=1e9, income=1e9, cash=1e9)
    looked = {functions[key].function.name for key in plan(functions, means, SETTINGS).watches}
    assert "connection" in looked
    assert not looked & {"request", "compress", "copy"}
