"""A restarted daemon goes on where the last one was."""

from __future__ import annotations

import json

import pytest

from specmine.daemon.config.settings import Settings
from specmine.daemon.controller.call_counts import estimated_calls
from specmine.daemon.controller.checkpoint import function_record
from specmine.daemon.controller.events import Arrived, Restored
from specmine.daemon.controller.phase import State
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.documents.specification import specification
from specmine.daemon.loop import Step, run
from specmine.daemon.worker.process import InlineWorker
from specmine.model.observation import Observation
from tests.support.planted import paper_program
from tests.support.simulated import SECOND, FakeClock, SimulatedSource

SHORT = Settings(window_ns=SECOND, limit_ns=10 * SECOND)


def run_of(
    seconds: float, before: tuple[ControllerState, list[Observation]] | None = None, seed: int = 1
) -> tuple[ControllerState, list[Observation], list[Step]]:
    """Run one life of the daemon, from what the one before left in its store."""
    clock = FakeClock((100 if before is None else 500) * SECOND)
    source = SimulatedSource(paper_program(), clock, seed=seed)
    kept: list[Observation] = list(before[1]) if before else []
    steps: list[Step] = []

    def listen(step: Step) -> None:
        steps.append(step)
        if isinstance(step.event, Arrived):
            kept.extend(step.event.batch.observations)

    def restored(now_ns: int) -> Restored:
        assert before is not None
        state, observations = before
        records = {key: function_record(each, state.now_ns) for key, each in state.functions.items()}
        return Restored(
            now_ns=now_ns,
            functions=tuple(each.function for each in state.functions.values()),
            records=json.loads(json.dumps(records)),
            observations=tuple(observations),
        )

    state = run(
        source, SHORT, clock, InlineWorker(), listeners=[listen],
        restored=restored if before else None, deadline_ns=int(seconds * SECOND),
    )  # fmt: skip
    return state, kept, steps


def entry(state: ControllerState, name: str) -> dict[str, object]:
    """Return what the specification says of a function."""
    found: dict[str, object] = next(e for e in specification(state)["functions"] if e["function"] == name)
    return found


def test_assertions_stand_from_the_first_moment() -> None:
    """What was explained before the restart is stated again at once, word for word."""
    state, kept, _ = run_of(11.0)  # no longer: of more than twenty windows the oldest are merged
    again, _, _ = run_of(0.1, (state, kept), seed=2)
    for key in ("state", "borders_seconds", "behaviours", "paths", "classes", "calls_counted"):
        assert entry(again, "z")[key] == entry(state, "z")[key]
    assert entry(state, "z")["state"] == "explained"
    assert entry(again, "z")["calls_exact"] is False


def test_learning_goes_on_where_it_stopped() -> None:
    """A function stopped in the middle of explaining is not timed again from the start."""
    state, kept, _ = run_of(6.0)
    z = next(each for each in state.functions.values() if each.function.name == "z")
    assert z.state is State.EXPLAINING and len(z.history.paths) >= 2
    again, _, steps = run_of(10.0, (state, kept), seed=2)
    states = [each.state for step in steps[1:] for each in step.state.functions.values() if each.function.name == "z"]
    assert State.TIMING not in states and states[0] is State.EXPLAINING
    assert entry(again, "z")["state"] == "explained"


def test_counts_go_on() -> None:
    """Calls, time watched and observations of both lives add up."""
    state, kept, _ = run_of(15.0)
    again, _, _ = run_of(10.0, (state, kept), seed=2)
    for key in ("calls_counted", "watched_seconds", "timed", "observations"):
        assert entry(again, "z")[key] >= entry(state, "z")[key]  # type: ignore[operator]
    z = next(each for each in again.functions.values() if each.function.name == "z")
    assert estimated_calls(z.probe, again.now_ns) == pytest.approx(40_000 * (15 - 1.55 + 10), rel=0.15)


def test_a_record_that_does_not_fit_is_passed_over() -> None:
    """A record of another version costs the knowledge of one function, not the start of the daemon."""
    state, _, _ = run_of(6.0)
    key = next(key for key, each in state.functions.items() if each.function.name == "z")
    clock = FakeClock()
    source = SimulatedSource(paper_program(), clock)
    functions = tuple(each.function for each in state.functions.values())
    event = Restored(now_ns=0, functions=functions, records={key: {"state": "asleep"}})
    again = run(source, SHORT, clock, InlineWorker(), restored=lambda now_ns: event, deadline_ns=SECOND // 10)
    assert next(e for e in again.functions.values() if e.function.name == "z").state is State.CANDIDATE
