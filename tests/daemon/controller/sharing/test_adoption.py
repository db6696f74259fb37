"""Statements of the fleet: confirmed by a host's own windows, marked, and never above its own evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import pytest

from specmine.daemon.config.settings import Settings
from specmine.daemon.controller.checkpoint import function_record, restored
from specmine.daemon.controller.events import Event, Stated
from specmine.daemon.controller.phase import FINISHED, State
from specmine.daemon.controller.state import ControllerState
from specmine.daemon.documents.specification import specification
from specmine.daemon.loop import run
from specmine.daemon.replay import recorder, replay
from specmine.daemon.worker.process import InlineWorker
from specmine.mining.fleet.statement import InheritedStatement
from tests.support.planted import MIXED, Planted, Way, paper_program, unimodal
from tests.support.simulated import SECOND, FakeClock, SimulatedSource

SHORT = Settings(window_ns=SECOND, limit_ns=10 * SECOND)
_SMOOTH = unimodal().function.key


def _run(
    planted: Sequence[Planted],
    seconds: float,
    statements: Sequence[InheritedStatement] = (),
    listeners: Sequence[object] = (),
    seed: int = 1,
) -> ControllerState:
    clock = FakeClock()
    waiting = [Stated(now_ns=0, statements=tuple(statements))] if statements else []

    def inbox(now_ns: int) -> list[Event]:
        return [replace(waiting.pop(), now_ns=now_ns)] if waiting else []

    return run(
        SimulatedSource(planted, clock, seed=seed), SHORT, clock, InlineWorker(), inbox=inbox,  # type: ignore[arg-type]
        listeners=list(listeners), deadline_ns=int(seconds * SECOND),  # type: ignore[arg-type]
    )  # fmt: skip


def _stated(state: ControllerState, key: str, **more: object) -> InheritedStatement:
    """Return what a host learned as the fleet would state it."""
    function = state.functions[key]
    learned = function.inference.learned
    assert learned is not None
    windows = function.history.longest
    given = {
        "function": key, "build_id": function.function.build_id, "learned": learned,
        "result": function.explanation.result, "hosts": 8,
        "median_ns": windows[-1].histogram.quantile(0.5) - windows[-1].bias_ns,
    } | more  # fmt: skip
    return InheritedStatement(**given)  # type: ignore[arg-type]


@cache
def _learned() -> ControllerState:
    return _run([*paper_program(), unimodal()], 40.0)


def _key(name: str) -> str:
    return next(each.function.key for each in paper_program() if each.name == name)


def test_a_statement_is_taken_after_two_windows_and_marked() -> None:
    """A host that begins with statements states them far sooner than one that learns from nothing, and says whose."""
    z = _key("z")
    statements = [_stated(_learned(), key) for key in (z, _SMOOTH)]
    seconds = 6.0
    alone = _run([*paper_program(), unimodal()], seconds, seed=2)
    helped = _run([*paper_program(), unimodal()], seconds, statements, seed=2)
    assert alone.functions[z].state not in FINISHED
    assert helped.functions[z].state is State.EXPLAINED
    assert helped.functions[z].inference.inherited is not None
    entry = next(each for each in specification(helped)["functions"] if each["key"] == z)
    assert entry["inherited"]["hosts"] == 8
    assert [each["expression"] for each in entry["behaviours"]] == [
        each["expression"] for each in next(
            one for one in specification(_learned())["functions"] if one["key"] == z)["behaviours"]
    ]  # fmt: skip
    assert next(each for each in specification(alone)["functions"] if each["key"] == z)["inherited"] is None


def test_own_evidence_wins() -> None:
    """A statement that the host's windows contradict is not taken; one of its own is not replaced."""
    two = Planted(name="smooth", rate=2000.0, ways=(Way(callers="main", weight=1.0, classes=MIXED),))
    single = _stated(_learned(), _SMOOTH)
    state = _run([two], 30.0, [single])
    learned = state.functions[_SMOOTH]
    assert learned.inference.inherited is None
    assert learned.inference.learned is not None
    assert len(learned.inference.learned.borders) == 1
    before = _learned()
    from specmine.daemon.controller.decide import decide  # noqa: PLC0415

    after, _ = decide(before, Stated(now_ns=before.now_ns + 1, statements=(replace(single, hosts=99),)))
    assert after.functions[_SMOOTH].provisional is None
    assert after.functions[_SMOOTH].inference.inherited is None


@pytest.mark.parametrize("slower", [1.3, 0.75])
def test_a_slower_host_takes_the_shape_on_its_own_scale(slower: float) -> None:
    """Borders move with the host's durations; levels are its own from the start."""
    ways = tuple(
        replace(way, classes=tuple((share, median * slower, sigma) for share, median, sigma in way.classes))
        for way in paper_program()[0].ways
    )
    program = [replace(paper_program()[0], ways=ways), *paper_program()[1:]]
    z = _key("z")
    stated = _stated(_learned(), z)
    state = _run(program, 2.0, [stated], seed=3)
    learned = state.functions[z].inference.learned
    assert state.functions[z].inference.inherited is not None
    assert learned is not None
    border = learned.borders[0].duration_ns
    assert 20_000 * slower * 1.2 < border < 200_000 * slower / 1.2


def test_its_own_windows_confirm_what_it_took() -> None:
    """After a chain of its own a host states a function by itself."""
    state = _run([unimodal()], 30.0, [_stated(_learned(), _SMOOTH)], seed=4)
    assert state.functions[_SMOOTH].state is State.SINGLE
    assert state.functions[_SMOOTH].inference.inherited is None


def test_a_far_host_learns_by_itself() -> None:
    """Where durations lie more than a factor of two apart, no border is shared."""
    z = _key("z")
    stated = _stated(_learned(), z)
    far = replace(stated, median_ns=stated.median_ns * 5, learned=replace(stated.learned, borders=tuple(
        replace(each, edge=each.edge + 70, duration_ns=each.duration_ns * 4.5) for each in stated.learned.borders
    )))  # fmt: skip
    state = _run([*paper_program(), unimodal()], 40.0, [replace(far, result=None)], seed=5)
    assert state.functions[z].inference.inherited is None
    assert state.functions[z].state is State.EXPLAINED


def test_it_replays_and_outlives_a_restart(tmp_path: object) -> None:
    """Statements are recorded events, and whose a statement is stands in the store."""
    z = _key("z")
    path = f"{tmp_path}/run.jsonl"
    recording, listener = recorder(path, "0")
    with recording:
        state = _run([*paper_program(), unimodal()], 6.0, [_stated(_learned(), z)], [listener], seed=2)
    assert replay(path) == specification(state)
    function = state.functions[z]
    record = function_record(function, state.now_ns)
    again = restored([function.function], {z: record}, function.history.paths, state.now_ns, SHORT.mining)[z]
    assert again.inference.inherited is not None
    assert again.inference.inherited.hosts == 8
